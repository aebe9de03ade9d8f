//! Ten thousand clients that send nonsense: the process stays, serves, and does not grow.

use exeat_loadtest::{
    client::{
        Credentials, Ending, Exchange, SocksHost, client_hello, socks5_greeting, socks5_login, socks5_request,
    },
    netns::in_private_network,
    origin::{Origin, Script, http_ok},
    test_name,
};

use crate::raw::{Client, Daemon, GOOD, RULES, names, network, proxy};

const CLIENTS: u64 = 10_000;
const AT_ONCE: u64 = 6;

/// xorshift64*: the same nonsense in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % sides
    }

    fn byte(&mut self) -> u8 {
        // Every second one is of those that mean something.
        let marks = b"\r\n\0 :;,=/@%#[].-_~\t\x7f\xff\x05\x01\x02\x03\x04\x16";
        if self.roll(2) == 0 { marks[self.roll(marks.len())] } else { self.roll(256) as u8 }
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let heads = [
        "GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n",
        "POST http://good.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
        "POST http://good.example/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "CONNECT good.example:80 HTTP/1.1\r\nHost: good.example:80\r\nProxy-Authorization: Basic YTpi\r\n\r\nhello",
        "OPTIONS * HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\nConnection: a, b\r\nTE: trailers\r\n\r\n",
        "GET http://good.example/ HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    ];
    let mut seeds: Vec<Vec<u8>> = heads.iter().map(|head| head.as_bytes().to_vec()).collect();
    let login = socks5_login(&Credentials::new("one", "two"));
    let request = socks5_request(1, &SocksHost::name("good.example"), 80);
    seeds.push([&socks5_greeting(&[0])[..], &request, b"hello"].concat());
    seeds.push([&socks5_greeting(&[2])[..], &login, &request].concat());
    seeds.push(b"\x04\x01\x00\x50\0\0\0\x01\0good.example\0".to_vec());
    seeds.push(client_hello(Some("good.example")).unwrap());
    seeds
}

fn nonsense(seeds: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    if dice.roll(8) == 0 {
        let length = dice.roll(200);
        return (0..length).map(|_| dice.byte()).collect();
    }
    let mut bytes = seeds[dice.roll(seeds.len())].clone();
    for _ in 0..=dice.roll(4) {
        let at = dice.roll(bytes.len().max(1)).min(bytes.len().saturating_sub(1));
        match dice.roll(6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at.min(bytes.len()), dice.byte()),
            2 if !bytes.is_empty() => drop(bytes.remove(at)),
            3 => bytes.extend_from_within(at.min(bytes.len())..),
            4 => {
                let other = &seeds[dice.roll(seeds.len())];
                bytes.extend_from_slice(&other[dice.roll(other.len())..]);
            }
            _ if !bytes.is_empty() => bytes[at] = dice.byte(),
            _ => {}
        }
    }
    bytes
}

#[test]
fn nonsense_ends_nothing() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let origin = Origin::start(&format!("{GOOD}:80"), Script::answer(http_ok("ok"))).unwrap();
        let mut daemon = Daemon::start(&format!("proxy.head_timeout = \"2s\"\n{RULES}"));
        let seeds = seeds();
        let run = |from: u64, count: u64| {
            std::thread::scope(|scope| {
                for part in 0..AT_ONCE {
                    let seeds = &seeds;
                    scope.spawn(move || {
                        let mut dice = Dice((from + part + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
                        for _ in 0..count / AT_ONCE {
                            let bytes = nonsense(seeds, &mut dice);
                            let back = Exchange::new().half_close().run(proxy(), &bytes).unwrap();
                            let shown = || String::from_utf8_lossy(&bytes).escape_debug().to_string();
                            assert_ne!(back.ending, Ending::TimedOut, "{}", shown());
                        }
                    });
                }
            });
        };
        run(0, CLIENTS / 10);
        let before = daemon.process().resident_bytes().unwrap();
        run(1000, CLIENTS * 9 / 10);
        let grown = daemon.process().resident_bytes().unwrap().saturating_sub(before);
        assert!(grown < 8 * 1024 * 1024, "{grown}");

        assert!(!daemon.process().has_ended());
        let stderr = daemon.process().stderr();
        assert!(!stderr.contains("panicked"), "{stderr}");
        assert!(daemon.process().open_descriptors().unwrap() < 64);
        let answer =
            Client::sending("GET http://good.example/last HTTP/1.1\r\nHost: x\r\n\r\n").answer("GET");
        assert_eq!(answer.http.text(), "ok");

        // Whatever got through as a request was one: for the one host, and nothing of the proxy's in it.
        let seen = origin.recordings();
        let requests: Vec<_> = seen.iter().flat_map(|one| &one.requests).collect();
        assert!(requests.len() > 100, "{}", requests.len());
        let plain =
            seen.iter().flat_map(|one| &one.requests).filter(|request| request.header("via").is_some());
        for request in plain {
            let hosts: Vec<_> = request.headers_named("host").collect();
            assert_eq!(hosts, ["good.example"], "{request:?}");
            assert!(!request.head.contains(&0) && request.version == "HTTP/1.1", "{request:?}");
            assert!(request.header("proxy-authorization").is_none(), "{request:?}");
        }
    });
}
