//! g06: cloud metadata services are refused whatever any rule, flag or address range says.

use exeat_loadtest::{
    dns::{Answer, DnsServer, Zone},
    netns::{PrivateNetwork, in_private_network},
    origin::{Origin, Script, http_ok},
    test_name,
};

use crate::{
    network,
    support::{Exeat, Said, Serve, Way, visits},
};

/// Every address leads to this machine, where something answers for all of them.
fn net() -> PrivateNetwork {
    network().every_address().host("169.254.169.254", "hosts.example").host("fd00:ec2::254", "hosts6.example")
}

const ADDRESSES: [&str; 9] = [
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "169.254.169.253",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd20:ce::254",
];

/// The same services in other clothes: mapped, translated, tunnelled.
const DISGUISED: [&str; 8] = [
    "::ffff:169.254.169.254",
    "::ffff:100.100.100.200",
    "::169.254.169.254",
    "64:ff9b::169.254.169.254",
    "64:ff9b:1::169.254.169.254",
    "::ffff:0:169.254.169.254",
    "2002:a9fe:a9fe::1",
    "2606:2800::5efe:169.254.169.254",
];

const NAMES: [&str; 7] = [
    "metadata",
    "metadata.google.internal",
    "instance-data",
    "metadata.",
    "metadata.google.internal.",
    "METADATA.Google.Internal",
    "metadata。google。internal",
];

/// Allowed names that lead there.
const LEADING: [&str; 8] = [
    "direct.example",
    "mapped.example",
    "translated.example",
    "six.example",
    "alias.example",
    "named-alias.example",
    "hosts.example",
    "hosts6.example",
];

/// Ways to write the address that some resolvers take for it.
const SPELLINGS: [&str; 6] =
    ["2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "169.16689662", "0xa9.254.169.254"];

struct World {
    _dns: DnsServer,
    anywhere: Origin,
}

impl World {
    fn new() -> Self {
        let six = |addr: &str| Answer::addresses([addr.parse().unwrap()]);
        let zone = Zone::new()
            .with("direct.example", Answer::a(["169.254.169.254"]))
            .with("mapped.example", six("::ffff:169.254.169.254"))
            .with("translated.example", six("64:ff9b::a9fe:a9fe"))
            .with("six.example", six("fd00:ec2::254"))
            .with("alias.example", Answer::cname("direct.example"))
            .with("named-alias.example", Answer::cname("metadata.google.internal"))
            .with("mixed.example", Answer::a(["169.254.169.254", "93.184.216.34", "169.254.169.252"]))
            .with("beside.example", Answer::a(["169.254.169.252"]))
            .otherwise(Answer::a(["169.254.169.254"]));
        Self {
            _dns: DnsServer::start("9.9.9.9:53", zone).unwrap(),
            anywhere: Origin::start("[::]:80", Script::answer(http_ok("credentials"))).unwrap(),
        }
    }
}

/// Everything that leads to a metadata service is refused, and nothing is dialled.
#[track_caller]
fn check(world: &World, exeat: &Exeat) {
    let reached = visits(&world.anywhere);
    for host in ADDRESSES.iter().chain(&DISGUISED).chain(&NAMES).chain(&LEADING) {
        for way in Way::ALL {
            assert_eq!(way.ask(exeat, host, 80), way.refusal("metadata"), "{host} over {way:?}");
        }
    }
    for host in SPELLINGS {
        for way in Way::ALL {
            let expected = way.failure(400, "invalid-target", 1);
            assert_eq!(way.ask(exeat, host, 80), expected, "{host} over {way:?}");
        }
    }
    assert_eq!(visits(&world.anywhere), reached, "{:?}", world.anywhere.recordings());
    // Two records of each leading name over each way, at the least one that says why.
    let record = exeat.wait_for_verdicts("direct.example", 1).remove(0);
    assert_eq!((&record["verdict"], &record["reason"]), (&"refuse".into(), &"metadata".into()));
    assert_eq!(record["addresses"][0]["class"], "metadata", "{record}");
}

/// The control: the address beside it is reached, so nothing but the floor stood in the way.
#[track_caller]
fn beside_is_reached(world: &World, exeat: &Exeat) {
    let reached = visits(&world.anywhere);
    for way in Way::ALL {
        assert_eq!(way.ask(exeat, "beside.example", 80), Said::Yes, "{way:?}");
        // Of three addresses, the metadata service is the one that is left out.
        assert_eq!(way.ask(exeat, "mixed.example", 80), Said::Yes, "{way:?}");
    }
    assert_eq!(visits(&world.anywhere), reached + 2 * Way::ALL.len());
    for record in exeat.wait_for_verdicts("mixed.example", Way::ALL.len()) {
        let fates = record["addresses"].as_array().unwrap();
        let floor = fates.iter().find(|fate| fate["address"] == "169.254.169.254").unwrap();
        assert_eq!((&floor["fate"], &floor["class"]), (&"denied".into(), &"metadata".into()), "{record}");
    }
}

#[test]
fn rules_and_ranges_do_not_open_it() {
    in_private_network(test_name!(), &net(), || {
        let world = World::new();
        // By its own address and name, by range, by everything, and admitted, all at once.
        let mut serve = Serve::new();
        for rule in
            ["*", "*.example", "*.google.internal", "metadata.google.internal", "metadata", "instance-data"]
        {
            serve = serve.allow(rule);
        }
        for addr in ADDRESSES.iter().chain(&DISGUISED[3..]) {
            let rule = if addr.contains(':') { format!("[{addr}]") } else { (*addr).to_owned() };
            serve = serve.allow(&rule).allow(&format!("{rule}:80"));
        }
        for range in ["169.254.0.0/16", "0.0.0.0/0", "[::/0]", "[fd00::/8]", "169.254.169.254/32:80"] {
            serve = serve.allow(range).admit(range);
        }
        let exeat = serve.start();
        check(&world, &exeat);
        beside_is_reached(&world, &exeat);
    });
}

#[test]
fn a_name_that_may_resolve_there_does_not_open_it() {
    in_private_network(test_name!(), &net(), || {
        let world = World::new();
        let rules: Vec<String> = LEADING
            .iter()
            .chain(&["metadata.google.internal", "metadata", "instance-data", "beside.example", "mixed.example"])
            .map(|host| {
                format!("{{ host = \"{host}\", resolves_to = [\"0.0.0.0/0\", \"::/0\", \"169.254.169.254/32\"] }},\n")
            })
            .collect();
        let rules = rules.concat();
        let config = format!(
            "[profiles.default.network]\nallowed_domains = [\n{rules}\"169.254.0.0/16\",\"*\"]\n\
             admitted_ranges = [\"169.254.169.254/32\"]\n"
        );
        let exeat = Serve::new().config(&config).start();
        check(&world, &exeat);
        beside_is_reached(&world, &exeat);
    });
}

#[test]
fn report_mode_and_an_open_network_do_not_open_it() {
    in_private_network(test_name!(), &net(), || {
        let world = World::new();
        check(&world, &Serve::new().allow("good.example").report_only().start());
        let reporting = Serve::new().allow("*").allow("169.254.0.0/16").report_only().start();
        check(&world, &reporting);
        beside_is_reached(&world, &reporting);
        let open = "[proxy]\nmode = \"report\"\n[profiles.default.network]\nfilter = \"off\"\n\
                    admitted_ranges = [\"169.254.0.0/16\"]\n";
        let open = Serve::new().config(open).start();
        check(&world, &open);
        beside_is_reached(&world, &open);
    });
}

/// An operator who means it writes so in the daemon's own file; then rules decide.
#[test]
fn only_the_operators_own_file_opens_it() {
    in_private_network(test_name!(), &net(), || {
        let world = World::new();
        let config = "[proxy]\nmetadata = \"allow\"\n[profiles.default.network]\n\
                      allowed_domains = [\"169.254.169.254:80\", \"*.example\"]\n";
        let exeat = Serve::new().config(config).start();
        for way in Way::ALL {
            assert_eq!(way.ask(&exeat, "169.254.169.254", 80), Said::Yes, "{way:?}");
            assert_eq!(way.ask(&exeat, "169.254.170.2", 80), way.refusal("denied-address"), "{way:?}");
        }
        assert_eq!(visits(&world.anywhere), Way::ALL.len());
    });
}
