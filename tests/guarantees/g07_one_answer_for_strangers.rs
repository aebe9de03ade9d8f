//! g07: a client without valid credentials gets the same answer for allowed and denied hosts.

use exeat_loadtest::{
    client::{Credentials, Ending, Exchange, SocksHost, dial, socks5_greeting, socks5_login, socks5_request},
    dns::{Answer, DnsServer, Zone},
    netns::in_private_network,
    origin::{Origin, Script, http_ok},
    test_name,
};

use crate::{
    network,
    support::{A_WHILE, Exeat, SOON, Said, Serve, Way, authority, visits},
};

const ID: &str = "build";
const TOKEN: &str = "Zm9vYmFyYmF6-0123456789_abc";

/// What rules, addresses and name servers say something different about.
const TARGETS: [(&str, u16); 9] = [
    ("good.example", 80),
    ("denied.example", 80),
    ("evil.example", 80),
    ("good.example", 443),
    ("missing.wild.example", 80),
    ("printer.local", 80),
    ("metadata.google.internal", 80),
    ("93.184.216.34", 80),
    ("10.0.0.1", 80),
];

fn serve() -> Exeat {
    Serve::new()
        .session(ID, TOKEN)
        .allow("good.example:80")
        .allow("*.wild.example")
        .allow("93.184.216.34")
        .deny("denied.example")
        .start()
}

fn dns() -> DnsServer {
    let zone = Zone::new().with("good.example", Answer::a(["93.184.216.34"]));
    DnsServer::start("9.9.9.9:53", zone).unwrap()
}

fn origin() -> Origin {
    Origin::start("93.184.216.34:80", Script::answer(http_ok("good"))).unwrap()
}

/// The head of a request, with this authentication line (or none).
fn head(way: Way, host: &str, port: u16, login: &str) -> String {
    let to = authority(host, port);
    match way {
        Way::Connect => format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{login}\r\n"),
        Way::Http | Way::SocksName | Way::SocksAddress => {
            format!("GET http://{to}/ HTTP/1.1\r\nHost: {to}\r\n{login}\r\n")
        }
    }
}

/// The exact bytes of an answer after which the connection stays.
fn answer(exeat: &Exeat, request: impl AsRef<[u8]>) -> Vec<u8> {
    let mut client = dial(exeat.proxy()).unwrap();
    Exchange::new().until_quiet(A_WHILE / 6).timeout(SOON).run_on(&mut client, request).unwrap().bytes
}

#[test]
fn the_407_is_the_same_to_the_last_byte() {
    in_private_network(test_name!(), &network(), || {
        let (dns, origin) = (dns(), origin());
        let basic = |user: &str, password: &str| {
            format!("Proxy-Authorization: {}\r\n", Credentials::new(user, password).basic())
        };
        for login in [
            String::new(),
            basic(ID, "wrong-wrong-wrong-wrong"),
            basic("other", TOKEN),
            basic(ID, ""),
            "Proxy-Authorization: Basic !!!\r\n".to_owned(),
            "Proxy-Authorization: Bearer wrong-wrong-wrong-wrong\r\n".to_owned(),
            // Credentials for the origin are none for the proxy.
            format!("Authorization: {}\r\n", Credentials::new(ID, TOKEN).basic()),
        ] {
            // One each, since wrong guesses are slowed down past a number.
            let exeat = serve();
            for way in [Way::Connect, Way::Http] {
                let answers: Vec<_> =
                    TARGETS.map(|(host, port)| (host, answer(&exeat, head(way, host, port, &login)))).into();
                let text = String::from_utf8_lossy(&answers[0].1);
                assert!(text.starts_with("HTTP/1.1 407 "), "{login:?}: {text}");
                assert!(text.contains("\r\nProxy-Authenticate: Basic realm=\"exeat\"\r\n"), "{text}");
                for (host, answer) in &answers {
                    assert_eq!(
                        String::from_utf8_lossy(answer),
                        text,
                        "{host} over {way:?} with {login:?} is told apart"
                    );
                }
            }
            // The record of a stranger's request says nothing of where to, and no rule was looked at.
            let opened: Vec<_> = exeat.audit().into_iter().filter(|r| r["event"] == "open").collect();
            for record in &opened {
                assert!(record["host"].is_null() && record["rule"].is_null(), "{record}");
                assert!(record["session"].is_null(), "{record}");
            }
        }
        assert_eq!(dns.names_asked(), [""; 0]);
        assert_eq!(visits(&origin), 0);

        // The control: with credentials they are told apart.
        let exeat = serve();
        let said = |host| Way::Connect.ask(&exeat, host, 80);
        assert_eq!(said("good.example"), Said::Yes);
        assert_eq!(said("denied.example"), Way::Connect.refusal("denied-by-rule"));
        assert_eq!(said("evil.example"), Way::Connect.refusal("not-listed"));
        assert_eq!(said("10.0.0.1"), Way::Connect.refusal("denied-address"));
    });
}

/// What is no host is refused before anybody is asked who they are; that tells nothing of the policy: the answer is
/// the same for everyone, under every policy.
#[test]
fn the_answer_to_what_is_no_host_tells_nothing() {
    in_private_network(test_name!(), &network(), || {
        let dns = dns();
        let strict = serve();
        let open =
            Serve::new().session(ID, TOKEN).config("[profiles.default.network]\nfilter = \"off\"\n").start();
        let wrong = format!("Proxy-Authorization: {}\r\n", Credentials::new(ID, "wrong-wrong-wrong").basic());
        for host in ["127.1", "a..b", "exa%mple", "good.example..", "xn--zz"] {
            for way in [Way::Connect, Way::Http] {
                let expected = answer(&strict, head(way, host, 80, ""));
                let text = String::from_utf8_lossy(&expected);
                assert!(text.starts_with("HTTP/1.1 400 ") || text.starts_with("HTTP/1.1 407 "), "{text}");
                for exeat in [&strict, &open] {
                    assert_eq!(answer(exeat, head(way, host, 80, "")), expected, "{host} {way:?}");
                }
                assert_eq!(
                    answer(&open, head(way, host, 80, &wrong)),
                    answer(&strict, head(way, host, 80, &wrong))
                );
            }
        }
        assert_eq!(dns.names_asked(), [""; 0]);
    });
}

#[test]
fn requests_to_the_proxy_itself_are_not_answered_either() {
    in_private_network(test_name!(), &network(), || {
        let exeat = serve();
        for request in [
            "OPTIONS * HTTP/1.1\r\nHost: good.example\r\n\r\n",
            "OPTIONS http://good.example/ HTTP/1.1\r\nHost: good.example\r\nMax-Forwards: 0\r\n\r\n",
            "TRACE http://good.example/ HTTP/1.1\r\nHost: good.example\r\nMax-Forwards: 0\r\n\r\n",
            "TRACE http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\nMax-Forwards: 0\r\n\r\n",
        ] {
            let answer = String::from_utf8(answer(&exeat, request)).unwrap();
            assert!(answer.starts_with("HTTP/1.1 407 "), "{request}: {answer}");
        }
    });
}

#[test]
fn socks5_ends_before_the_target_is_read() {
    in_private_network(test_name!(), &network(), || {
        let (dns, origin) = (dns(), origin());
        let exeat = serve();
        let logins = [
            (vec![0], vec![], vec![5, 0xff]),
            (vec![1], vec![], vec![5, 0xff]),
            (vec![], vec![], vec![5, 0xff]),
            (vec![2], socks5_login(&Credentials::new(ID, "wrong")), vec![5, 2, 1, 1]),
            (vec![0, 2], socks5_login(&Credentials::new("other", TOKEN)), vec![5, 2, 1, 1]),
            (vec![2], socks5_login(&Credentials::new(ID, "")), vec![5, 2, 1, 1]),
        ];
        for (methods, login, expected) in logins {
            for (host, port) in [("good.example", 80), ("evil.example", 80), ("10.0.0.1", 80)] {
                let request = socks5_request(1, &SocksHost::from(host), port);
                // All at once, as an impatient client does, and step by step.
                let all = [socks5_greeting(&methods), login.clone(), request].concat();
                let got = Exchange::new().half_close().timeout(SOON).run(exeat.proxy(), all).unwrap();
                assert_eq!(got.bytes, expected, "{host} {methods:?}");
                assert_eq!(got.ending, Ending::Closed, "{host} {methods:?}");
            }
        }
        assert_eq!(dns.names_asked(), [""; 0]);
        assert_eq!(visits(&origin), 0);
        // The control: the same bytes with the right token.
        let right = socks5_login(exeat.login().unwrap());
        let request = socks5_request(1, &SocksHost::from("good.example"), 80);
        let all = [socks5_greeting(&[2]), right, request].concat();
        let mut client = dial(exeat.proxy()).unwrap();
        let got = Exchange::new().until_length(14).timeout(SOON).run_on(&mut client, all).unwrap();
        assert_eq!(got.bytes, [5, 2, 1, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(visits(&origin), 1);
    });
}

/// git, Gradle and ncat ask without credentials first and come back on the same connection.
#[test]
fn the_connection_of_a_407_takes_credentials() {
    in_private_network(test_name!(), &network(), || {
        let (_dns, origin) = (dns(), origin());
        let exeat = serve();
        let login = exeat.authorization();
        for way in [Way::Connect, Way::Http] {
            let mut client = dial(exeat.proxy()).unwrap();
            let mut ask = |host: &str, login: &str| {
                let exchange = Exchange::new().until_quiet(A_WHILE / 3).timeout(SOON);
                exchange.run_on(&mut client, head(way, host, 80, login)).unwrap().answer().status
            };
            assert_eq!(ask("evil.example", ""), 407, "{way:?}");
            assert_eq!(ask("good.example", ""), 407, "{way:?}");
            assert_eq!(ask("good.example", &login), 200, "{way:?}");
        }
        assert_eq!(visits(&origin), 2);
    });
}
