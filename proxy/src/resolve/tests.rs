//! The resolver against a name server that lies.

#![expect(clippy::needless_pass_by_value, reason = "a check takes what was seen as it came")]

use std::{fs, time::Duration};

use exeat_config::{
    AddressRange, DomainName, Host, HostPattern, NetworkPolicy, Origin, Ports, Rule, Target,
    settings::{DnsSettings, Metadata, Mode},
};
use hickory_resolver::proto::{op::ResponseCode, rr::RecordType};
use tempfile::TempDir;

use super::{
    lying::{LyingServer, Question, Reply},
    *,
};
use crate::decide::{Audience, Floor, Layers, Overlay, Policy, Verdict, decide};

const PUBLIC: &str = "93.184.215.14";
const OTHER: &str = "151.101.1.69";
const PUBLIC6: &str = "2606:2800:21f:cb07:6820:80da:af6b:8b2c";

/// A name, as parsed.
pub(crate) fn name(text: &str) -> DomainName {
    match Host::parse(text).unwrap() {
        Host::Name(name) => name,
        Host::Addr(_) => panic!("{text} is an address"),
    }
}

/// A target, as parsed.
pub(crate) fn target(text: &str) -> Target {
    Target::parse_authority(text.as_bytes()).unwrap()
}

/// The permit for a target under a policy that allows every name below `test` and `example`, `localhost`, and
/// names to lead into these ranges.
pub(crate) fn permit_with(target: &Target, admitted: &[&str]) -> Permit {
    let rule =
        |pattern| Rule { pattern, ports: Ports::all(), resolves_to: None, origin: Origin::flag("--allow") };
    let mut allowed: Vec<Rule> =
        ["test", "example", "localhost"].map(|suffix| rule(HostPattern::Below(name(suffix)))).into();
    allowed.push(rule(HostPattern::Exact(name("localhost"))));
    allowed.push(rule(HostPattern::Any));
    let admitted = admitted
        .iter()
        .map(|net| AddressRange {
            net: net.parse().unwrap(),
            ports: Ports::all(),
            origin: Origin::flag("--admit"),
        })
        .collect();
    let network = NetworkPolicy { allowed: Some(allowed), denied: Vec::new(), admitted };
    let policy = Arc::new(Policy::compile(&network, Mode::Enforce, false, 1));
    let floor = Arc::new(Floor::new(Metadata::Deny, Vec::new()));
    let overlay = Arc::new(Overlay::default());
    match decide(
        &Layers { overlay: &overlay, policy: &policy, floor: &floor, audience: Audience::Absent },
        target,
    ) {
        Verdict::Permit(permit) => permit,
        refused => panic!("{target} is not permitted: {refused:?}"),
    }
}

/// A resolver that asks `server` and reads the files in a directory of its own.
struct Room {
    resolver: Resolver,
    server: LyingServer,
    dir: TempDir,
}

impl Room {
    async fn new(script: impl Fn(&Question) -> Reply + Send + Sync + 'static) -> Self {
        let server = LyingServer::start(script).await;
        let dir = tempfile::tempdir().unwrap();
        let resolver = resolver(&dir, vec![server.addr]);
        Self { resolver, server, dir }
    }

    /// Resolves a target: the addresses admitted and dropped, or the reason and the sentence.
    async fn resolve(&self, text: &str) -> Result<Seen, (Reason, String)> {
        self.resolve_admitting(text, &[]).await
    }

    async fn resolve_admitting(&self, text: &str, ranges: &[&str]) -> Result<Seen, (Reason, String)> {
        let target = target(text);
        see(self.resolver.resolve(&permit_with(&target, ranges), &target).await)
    }
}

fn resolver(dir: &TempDir, servers: Vec<SocketAddr>) -> Resolver {
    let (hosts, resolv_conf) = (dir.path().join("hosts"), dir.path().join("resolv.conf"));
    Resolver::with_files(&DnsSettings { servers }, hosts, resolv_conf).unwrap()
}

/// What is admitted, what is denied, and from where.
type Seen = (Vec<String>, Vec<String>, Source);

fn see(resolved: Result<Resolved, Failure>) -> Result<Seen, (Reason, String)> {
    let resolved = resolved.map_err(|failure| {
        assert!(failure.sentence.is_ascii() && failure.sentence.len() <= 100, "{}", failure.sentence);
        (failure.reason, failure.sentence)
    })?;
    let admitted = resolved.admitted.iter().map(|addr| addr.get().ip().to_string()).collect();
    let denied = resolved.denied.iter().map(|(addr, class)| format!("{addr} {class:?}")).collect();
    Ok((admitted, denied, resolved.source))
}

#[track_caller]
fn check(seen: Result<Seen, (Reason, String)>, admitted: &[&str], denied: &[&str], source: Source) {
    let expected = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(seen, Ok((expected(admitted), expected(denied), source)));
}

#[track_caller]
fn check_failure(seen: Result<Seen, (Reason, String)>, reason: Reason, sentence: &str) {
    assert_eq!(seen, Err((reason, sentence.to_owned())));
}

/// Time passes, for the cache alone: real sockets need real time.
async fn pass(duration: Duration) {
    tokio::time::pause();
    tokio::time::advance(duration).await;
    tokio::time::resume();
}

/// Answers A with `v4` and AAAA with `v6`, for whatever name.
fn dual(
    v4: Vec<(&'static str, u32, &'static str)>,
    v6: Vec<(&'static str, u32, &'static str)>,
) -> impl Fn(&Question) -> Reply {
    move |question| {
        let records = if question.kind == RecordType::A { &v4 } else { &v6 };
        if records.is_empty() {
            return Reply::Nothing(ResponseCode::NoError, Some(60));
        }
        Reply::Records(records.clone())
    }
}

#[tokio::test]
async fn literals_and_localhost_never_reach_dns() {
    let room = Room::new(|_| Reply::Silence).await;
    fs::write(room.dir.path().join("hosts"), "10.0.0.1 localhost x.localhost\n").unwrap();
    check(room.resolve("93.184.215.14:443").await, &[PUBLIC], &[], Source::Literal);
    check(room.resolve_admitting("[::1]:443", &["::1/128"]).await, &["::1"], &[], Source::Literal);
    for name in ["localhost:80", "LOCALHOST:80", "a.b.localhost:80", "x.localhost:80"] {
        check(room.resolve(name).await, &["::1", "127.0.0.1"], &[], Source::Localhost);
    }
    assert_eq!(room.server.asked(), []);
}

#[test]
fn only_localhost_is_localhost() {
    for (text, expected) in [
        ("localhost", true),
        ("a.localhost", true),
        ("notlocalhost", false),
        ("localhost.test", false),
        ("localhost.localdomain", false),
    ] {
        assert_eq!(is_localhost(&name(text)), expected, "{text}");
    }
}

#[tokio::test]
async fn interleaves_and_drops_what_is_denied() {
    let v4 = vec![("mix.test.", 60, PUBLIC), ("mix.test.", 60, "10.0.0.5"), ("mix.test.", 60, OTHER)];
    let v6 = vec![("mix.test.", 60, "::ffff:127.0.0.1"), ("mix.test.", 60, PUBLIC6)];
    let room = Room::new(dual(v4, v6)).await;
    let seen = room.resolve("mix.test:443").await;
    let denied = &["127.0.0.1 Loopback", "10.0.0.5 Private"];
    check(seen, &[PUBLIC6, PUBLIC, OTHER], denied, Source::Query);
    // From the cache, and judged again: this permit admits one of them.
    let seen = room.resolve_admitting("mix.test:443", &["10.0.0.0/8"]).await;
    check(seen, &[PUBLIC6, PUBLIC, "10.0.0.5", OTHER], &["127.0.0.1 Loopback"], Source::Cache);
    assert_eq!(room.server.asked().len(), 2);
}

#[tokio::test]
async fn all_denied_is_a_refusal_by_policy() {
    let room =
        Room::new(dual(vec![("any.test.", 60, "10.0.0.5"), ("any.test.", 60, "192.168.0.1")], vec![])).await;
    let target = target("any.test:443");
    let failure = room.resolver.resolve(&permit_with(&target, &[]), &target).await.unwrap_err();
    assert_eq!(failure.reason, Reason::DeniedAddress);
    assert_eq!(failure.sentence, "any.test resolves to 10.0.0.5, a private address");
    assert_eq!(failure.hint.as_deref(), Some("`--admit 10.0.0.5/32` lets allowed names lead there"));
    let denied: Vec<_> = failure.addresses.iter().map(|(addr, _)| addr.to_string()).collect();
    assert_eq!(denied, ["10.0.0.5", "192.168.0.1"]);
    assert!(failure.addresses.iter().all(|(_, fate)| matches!(fate, AddressFate::Denied(_))));
}

#[tokio::test]
async fn metadata_services_are_told_apart() {
    let v4 = vec![("meta.test.", 60, "10.0.0.5"), ("meta.test.", 60, "169.254.169.254")];
    let room = Room::new(dual(v4, vec![])).await;
    let sentence = "meta.test resolves to 169.254.169.254, a cloud metadata service";
    check_failure(room.resolve("meta.test:80").await, Reason::Metadata, sentence);
    let seen = room.resolve_admitting("meta.test:80", &["169.254.0.0/16"]).await;
    check_failure(seen, Reason::Metadata, sentence);
}

#[tokio::test]
async fn an_alias_is_followed_to_what_it_hides() {
    let room = Room::new(|question: &Question| match (&*question.name, question.kind) {
        ("alias.test.", RecordType::A) => Reply::Records(vec![
            ("alias.test.", 60, "inside.test."),
            ("inside.test.", 60, "10.0.0.5"),
            ("other.test.", 60, PUBLIC),
        ]),
        // The rest of the chain has to be asked for.
        ("split.test.", _) => Reply::Records(vec![("split.test.", 60, "further.test.")]),
        ("further.test.", RecordType::A) => Reply::Records(vec![("further.test.", 60, PUBLIC)]),
        ("loop.test.", _) => {
            Reply::Records(vec![("loop.test.", 60, "pool.test."), ("pool.test.", 60, "loop.test.")])
        }
        ("pool.test.", _) => Reply::Records(vec![("pool.test.", 60, "loop.test.")]),
        ("home.test.", _) => Reply::Records(vec![("home.test.", 60, "localhost.")]),
        // Addresses for a name that nobody asked about.
        ("forged.test.", RecordType::A) => Reply::Records(vec![("bank.test.", 60, OTHER)]),
        _ => Reply::Nothing(ResponseCode::NoError, Some(60)),
    })
    .await;
    check_failure(
        room.resolve("alias.test:443").await,
        Reason::DeniedAddress,
        "alias.test resolves to 10.0.0.5, a private address",
    );
    check(room.resolve("split.test:443").await, &[PUBLIC], &[], Source::Query);
    // This machine is nobody's alias, and no server is asked about it.
    assert!(matches!(room.resolve("home.test:443").await, Err((Reason::DnsNotFound, _))));
    assert!(matches!(room.resolve("loop.test:443").await, Err((Reason::DnsNotFound | Reason::DnsFailed, _))));
    check_failure(
        room.resolve("forged.test:443").await,
        Reason::DnsNotFound,
        "forged.test has no address in DNS",
    );
    assert!(!room.server.asked().iter().any(|question| question.name.contains("localhost")));
}

#[tokio::test]
async fn a_rebinding_name_is_judged_each_time() {
    let room = Room::new({
        let answers = std::sync::atomic::AtomicUsize::new(0);
        move |question: &Question| match question.kind {
            RecordType::A if answers.fetch_add(1, Ordering::Relaxed) == 0 => {
                Reply::Records(vec![("rebind.test.", 0, PUBLIC)])
            }
            RecordType::A => Reply::Records(vec![("rebind.test.", 0, "127.0.0.1")]),
            _ => Reply::Nothing(ResponseCode::NoError, Some(60)),
        }
    })
    .await;
    check(room.resolve("rebind.test:80").await, &[PUBLIC], &[], Source::Query);
    check(room.resolve("rebind.test:80").await, &[PUBLIC], &[], Source::Cache);
    pass(Duration::from_secs(1)).await;
    check_failure(
        room.resolve("rebind.test:80").await,
        Reason::DeniedAddress,
        "rebind.test resolves to 127.0.0.1, a loopback address",
    );
}

#[tokio::test]
async fn answers_last_as_long_as_their_ttl() {
    let room = Room::new(dual(vec![("ttl.test.", 100, PUBLIC)], vec![("ttl.test.", 90, PUBLIC6)])).await;
    check(room.resolve("ttl.test:443").await, &[PUBLIC6, PUBLIC], &[], Source::Query);
    pass(Duration::from_secs(89)).await;
    check(room.resolve("ttl.test:443").await, &[PUBLIC6, PUBLIC], &[], Source::Cache);
    pass(Duration::from_secs(2)).await;
    check(room.resolve("ttl.test:443").await, &[PUBLIC6, PUBLIC], &[], Source::Query);
    assert_eq!(room.server.asked().len(), 4);
}

#[tokio::test]
async fn that_a_name_is_not_there_is_remembered_too() {
    let room = Room::new(|question: &Question| match &*question.name {
        "gone.test." => Reply::Nothing(ResponseCode::NXDomain, Some(10)),
        "bare.test." => Reply::Nothing(ResponseCode::NoError, None),
        _ => Reply::Nothing(ResponseCode::NXDomain, Some(86_400)),
    })
    .await;
    let sentence = "gone.test has no address in DNS";
    for asked in [2, 2] {
        check_failure(room.resolve("gone.test:443").await, Reason::DnsNotFound, sentence);
        assert_eq!(room.server.asked().len(), asked);
    }
    pass(Duration::from_secs(11)).await;
    check_failure(room.resolve("gone.test:443").await, Reason::DnsNotFound, sentence);
    assert_eq!(room.server.asked().len(), 4);
    // Without an SOA for a second, and with one for no more than 30.
    for (target, seconds) in [("bare.test:443", 1), ("long.test:443", 30)] {
        let before = room.server.asked().len();
        for _ in 0..2 {
            assert!(matches!(room.resolve(target).await, Err((Reason::DnsNotFound, _))));
        }
        assert_eq!(room.server.asked().len(), before + 2, "{target}");
        pass(Duration::from_secs(seconds)).await;
        assert!(matches!(room.resolve(target).await, Err((Reason::DnsNotFound, _))));
        assert_eq!(room.server.asked().len(), before + 4, "{target}");
    }
}

#[tokio::test]
async fn a_failing_server_is_not_a_missing_name() {
    let room = Room::new(|question: &Question| match &*question.name {
        "servfail.test." => Reply::Nothing(ResponseCode::ServFail, None),
        "refused.test." => Reply::Nothing(ResponseCode::Refused, None),
        "garbage.test." => Reply::Garbage,
        // A server that cannot do AAAA does not take the A away.
        _ if question.kind == RecordType::A => Reply::Records(vec![("half.test.", 60, PUBLIC)]),
        _ => Reply::Nothing(ResponseCode::ServFail, None),
    })
    .await;
    for (target, sentence) in [
        ("servfail.test:443", "servfail.test cannot be resolved: the name server said SERVFAIL"),
        ("refused.test:443", "refused.test cannot be resolved: the name server said REFUSED"),
        ("garbage.test:443", "garbage.test cannot be resolved: malformed answer"),
    ] {
        check_failure(room.resolve(target).await, Reason::DnsFailed, sentence);
    }
    check(room.resolve("half.test:443").await, &[PUBLIC], &[], Source::Query);
    // Remembered for a second, so that a broken server is not stormed.
    let before = room.server.asked().len();
    assert!(room.resolve("servfail.test:443").await.is_err());
    assert_eq!(room.server.asked().len(), before);
    pass(Duration::from_secs(1)).await;
    assert!(room.resolve("servfail.test:443").await.is_err());
    assert_eq!(room.server.asked().len(), before + 2);
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_ends_in_a_timeout() {
    let room = Room::new(|_| Reply::Silence).await;
    let begin = clock::now();
    check_failure(
        room.resolve("silent.test:443").await,
        Reason::DnsTimeout,
        "silent.test cannot be resolved: no answer from DNS within 5 s",
    );
    assert_eq!(begin.elapsed().as_secs(), 5);
}

#[tokio::test]
async fn truncated_answers_are_asked_for_over_tcp() {
    let room = Room::new(|question: &Question| match (question.tcp, question.kind) {
        (false, _) => Reply::Truncated,
        (true, RecordType::A) => Reply::Records(vec![("big.test.", 60, PUBLIC)]),
        (true, _) => Reply::Nothing(ResponseCode::NoError, Some(60)),
    })
    .await;
    check(room.resolve("big.test:443").await, &[PUBLIC], &[], Source::Query);
    assert!(room.server.asked().iter().any(|question| question.tcp));
}

#[tokio::test]
async fn many_who_ask_together_are_one_query() {
    let room = Arc::new(Room::new(dual(vec![("busy.test.", 60, PUBLIC)], vec![])).await);
    let asking: Vec<_> = (0..100)
        .map(|_| {
            let room = Arc::clone(&room);
            tokio::spawn(async move { room.resolve("busy.test:443").await })
        })
        .collect();
    for one in asking {
        check(one.await.unwrap(), &[PUBLIC], &[], Source::Query);
    }
    let mut kinds: Vec<_> = room.server.asked().iter().map(|question| question.kind).collect();
    kinds.sort();
    assert_eq!(kinds, [RecordType::A, RecordType::AAAA]);
}

#[tokio::test]
async fn lookups_at_once_are_bounded() {
    let room = Room::new(dual(vec![("any.test.", 60, PUBLIC)], vec![])).await;
    let all = u32::try_from(limits::MAX_LOOKUPS).unwrap();
    let taken = Arc::clone(&room.resolver.lookups.slots).try_acquire_many_owned(all).unwrap();
    let sentence = "any.test cannot be resolved now: too many lookups";
    check_failure(room.resolve("any.test:443").await, Reason::Limit, sentence);
    assert_eq!(room.server.asked(), []);
    drop(taken);
    check(room.resolve("any.test:443").await, &[PUBLIC], &[], Source::Query);
    // Every flight gives its place back when it has ended.
    while room.resolver.lookups.slots.available_permits() < limits::MAX_LOOKUPS {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_one_who_asked_first_may_leave() {
    let room = Arc::new(
        Room::new(|question: &Question| match question.kind {
            RecordType::A => Reply::Later(vec![("left.test.", 60, PUBLIC)]),
            _ => Reply::Nothing(ResponseCode::NoError, Some(60)),
        })
        .await,
    );
    let ask = |room: Arc<Room>| tokio::spawn(async move { room.resolve("left.test:443").await });
    let leader = ask(Arc::clone(&room));
    while room.server.asked().len() < 2 {
        tokio::task::yield_now().await;
    }
    let follower = ask(Arc::clone(&room));
    tokio::task::yield_now().await;
    leader.abort();
    assert!(leader.await.unwrap_err().is_cancelled());
    room.server.open_gate();
    check(follower.await.unwrap(), &[PUBLIC], &[], Source::Query);
}

#[tokio::test]
async fn a_late_family_is_not_waited_for_but_kept() {
    let room = Room::new(|question: &Question| match question.kind {
        RecordType::A => Reply::Records(vec![("late.test.", 60, PUBLIC)]),
        _ => Reply::Later(vec![("late.test.", 60, PUBLIC6)]),
    })
    .await;
    check(room.resolve("late.test:443").await, &[PUBLIC], &[], Source::Query);
    check(room.resolve("late.test:443").await, &[PUBLIC], &[], Source::Cache);
    room.server.open_gate();
    let complete = async {
        while room.resolve("late.test:443").await.unwrap().0.len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(3), complete).await.unwrap();
    check(room.resolve("late.test:443").await, &[PUBLIC6, PUBLIC], &[], Source::Cache);
}

#[tokio::test]
async fn names_are_asked_for_as_they_are() {
    let room = Room::new(|_| Reply::Nothing(ResponseCode::NXDomain, Some(60))).await;
    // Neither few dots nor failure bring a search domain in.
    fs::write(room.dir.path().join("resolv.conf"), "search corp.example\noptions ndots:9\n").unwrap();
    for text in ["a.test:443", "foo_bar.test:443", "_dmarc.b.test:443"] {
        assert!(matches!(room.resolve(text).await, Err((Reason::DnsNotFound, _))));
    }
    let mut names: Vec<_> = room.server.asked().into_iter().map(|question| question.name).collect();
    names.dedup();
    assert_eq!(names, ["a.test.", "foo_bar.test.", "_dmarc.b.test."]);
    let long = format!("{0}.{0}.{0}.end.test:443", "a".repeat(63));
    let (reason, sentence) = room.resolve(&long).await.unwrap_err();
    assert_eq!(reason, Reason::DnsNotFound);
    assert!(sentence.starts_with("...aa.aaa") && sentence.ends_with("aaa.end.test has no address in DNS"));
}

#[tokio::test]
async fn the_next_server_helps_one_that_cannot() {
    let broken = LyingServer::start(|_| Reply::Nothing(ResponseCode::Refused, None)).await;
    let good =
        LyingServer::start(dual(vec![("any.test.", 60, PUBLIC), ("more.test.", 60, PUBLIC)], vec![])).await;
    let dir = tempfile::tempdir().unwrap();
    let resolver = resolver(&dir, vec![broken.addr, good.addr]);
    for (text, asked) in [("any.test:443", 2), ("more.test:443", 2)] {
        let target = target(text);
        let seen = see(resolver.resolve(&permit_with(&target, &[]), &target).await);
        check(seen, &[PUBLIC], &[], Source::Query);
        // The second time, the one that helped is asked first.
        assert_eq!(broken.asked().len(), asked);
    }
}

#[tokio::test]
async fn the_hosts_file_comes_first_and_may_change() {
    let room = Room::new(dual(vec![("h.test.", 60, PUBLIC)], vec![])).await;
    let hosts = room.dir.path().join("hosts");
    check(room.resolve("h.test:443").await, &[PUBLIC], &[], Source::Query);
    fs::write(&hosts, format!("{OTHER} H.test\n10.0.0.9 h.test\n")).unwrap();
    check(room.resolve("h.test:443").await, &[PUBLIC], &[], Source::Cache);
    pass(limits::FILE_CHECK).await;
    check(room.resolve("h.test:443").await, &[OTHER], &["10.0.0.9 Private"], Source::Hosts);
    fs::remove_file(&hosts).unwrap();
    pass(limits::FILE_CHECK).await;
    check(room.resolve("h.test:443").await, &[PUBLIC], &[], Source::Cache);
}

#[tokio::test(start_paused = true)]
async fn works_without_resolv_conf_and_reads_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let resolver = resolver(&dir, Vec::new());
    let ask = async |text: &str| {
        let target = target(text);
        see(resolver.resolve(&permit_with(&target, &[]), &target).await)
    };
    check(ask("93.184.215.14:443").await, &[PUBLIC], &[], Source::Literal);
    check_failure(
        ask("a.test:443").await,
        Reason::DnsFailed,
        "a.test cannot be resolved: resolv.conf cannot be read: entity not found",
    );
    fs::write(dir.path().join("resolv.conf"), "search corp.example\n").unwrap();
    tokio::time::advance(limits::FILE_CHECK).await;
    check_failure(
        ask("a.test:443").await,
        Reason::DnsFailed,
        "a.test cannot be resolved: no name server is configured",
    );
    // A server that cannot be reached from here: it is asked, so the file was read.
    fs::write(dir.path().join("resolv.conf"), "nameserver 127.255.255.254\n").unwrap();
    tokio::time::advance(limits::FILE_CHECK).await;
    assert!(matches!(ask("a.test:443").await, Err((Reason::DnsTimeout, _))));
}
