//! Heads that nobody would write: whatever the bytes, a verdict and never a panic, and nothing forbidden passes.

use proptest::prelude::*;

use super::{
    super::{
        Method, Parsed, parse, response,
        rewrite::{self, Persistence, Via},
    },
    check_prefixes,
};

const SEEDS: [&[u8]; 8] = [
    b"GET http://a.test/p?q HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\n\r\n",
    b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\nProxy-Authorization: Basic aWQ6dG9rZW4=\r\n\r\n",
    b"CONNECT [2001:db8::1]:443 HTTP/1.0\r\n\r\n",
    b"POST http://a.test:81 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: TE, X-A\r\nTE: trailers\r\n\r\n",
    b"PUT http://[::1]/ HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 12\r\nExpect: 100-continue\r\nX-A:\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost:\r\nMax-Forwards: 3\r\n\r\n",
    b"GET http://a.test/ws HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    b"\r\nTRACE http://a.test/ HTTP/1.0\r\nVia: 1.0 x\r\nProxy-Connection: keep-alive\r\n\r\n",
];

/// Pieces that make trouble when they are put where they do not belong.
const PIECES: [&[u8]; 24] = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b"\t",
    b":",
    b"\r\n\r\n",
    b"\r\n ",
    b"HTTP/1.1",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Host: b.test\r\n",
    b"Connection: Host\r\n",
    b"\xff",
    b"\xe2\x84\xaa",
    b"@",
    b"#",
    b"[",
    b"]",
    b"%00",
    b",",
    b"/",
    b"\x7f",
];

/// xorshift64*: the same numbers on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end.max(1)
    }
}

fn mutated(numbers: &mut Numbers) -> Vec<u8> {
    let mut head = SEEDS[numbers.below(SEEDS.len())].to_vec();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(head.len() + 1);
        match numbers.below(6) {
            0 => {
                let piece = PIECES[numbers.below(PIECES.len())];
                head.splice(at..at, piece.iter().copied());
            }
            1 if at < head.len() => head[at] = numbers.below(256) as u8,
            2 if at < head.len() => head[at] ^= 1 << numbers.below(8),
            3 => {
                let end = at + numbers.below(head.len() - at + 1).min(12);
                head.drain(at..end);
            }
            4 => {
                let other = SEEDS[numbers.below(SEEDS.len())];
                head.truncate(at);
                head.extend_from_slice(&other[numbers.below(other.len())..]);
            }
            _ => {
                let end = at + numbers.below(head.len() - at + 1).min(30);
                let copy = head[at..end].to_vec();
                head.splice(at..at, copy);
            }
        }
    }
    head
}

/// What must hold of every head that passes, found out by other means than the parser's.
fn check_accepted(head: &[u8], forwarded: &[u8]) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for bytes in [head.strip_prefix(b"\r\n").unwrap_or(head), forwarded] {
        assert!(bytes.ends_with(b"\r\n\r\n"));
        let lines = text(bytes).replace("\r\n", "");
        assert!(!lines.contains(|c: char| c.is_ascii_control() && c != '\t'), "{:?}", text(bytes));
        for line in text(bytes).split("\r\n").skip(1).filter(|line| !line.is_empty()) {
            let name = line.split(':').next().unwrap();
            assert!(line.contains(':') && !name.is_empty() && !name.contains([' ', '\t']), "{line:?}");
        }
    }
    let count = |name: &str| text(forwarded).to_ascii_lowercase().matches(&format!("\r\n{name}:")).count();
    if !forwarded.is_empty() && forwarded != b"\r\n\r\n" {
        assert_eq!(count("host"), 1);
        assert!(count("content-length") + count("transfer-encoding") <= 1);
        assert_eq!(count("proxy-authorization") + count("proxy-connection"), 0);
    }
}

#[test]
fn ten_thousand_mutated_heads() {
    let mut numbers = Numbers(0x5eed_0000_0000_0001);
    let mut accepted = 0;
    for round in 0..10_000 {
        let head = mutated(&mut numbers);
        match parse(&head) {
            Ok(Parsed::Complete(request, length)) => {
                accepted += 1;
                let mut forwarded = Vec::new();
                match request.as_plain() {
                    Some(plain) => rewrite::request(plain, Persistence::Keep, Via::Add, &mut forwarded),
                    None => forwarded.extend_from_slice(b"\r\n\r\n"),
                }
                check_accepted(&head[..length], &forwarded);
            }
            Ok(Parsed::Incomplete) => {}
            Err(fault) => {
                let sentence = fault.sentence();
                assert!(
                    sentence.len() <= 100 && sentence.bytes().all(|b| (b' '..=b'~').contains(&b)),
                    "{sentence}"
                );
            }
        }
        if round % 50 == 0 {
            check_prefixes(&head);
        }
    }
    // Neither side of the test may be empty.
    assert!((500..9_500).contains(&accepted), "{accepted}");
}

proptest! {
    #[test]
    fn any_bytes(head: Vec<u8>) {
        let _ = parse(&head);
        let _ = response::parse(&head, &Method::Get);
    }

    #[test]
    fn any_target(target in "[!-~]{1,40}|http://[!-~]{0,30}") {
        let head = format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n");
        check_prefixes(head.as_bytes());
    }

    #[test]
    fn any_lines(lines in "([A-Za-z-]{0,12}:?[ -~\t\r\n]{0,20}\r\n){0,4}") {
        let head = format!("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n{lines}\r\n");
        check_prefixes(head.as_bytes());
        let _ = response::parse(format!("HTTP/1.1 200 OK\r\n{lines}\r\n").as_bytes(), &Method::Get);
    }
}
