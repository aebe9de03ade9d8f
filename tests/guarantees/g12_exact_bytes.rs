//! g12: bytes are exact. Large bodies both ways in constant memory, half-closed connections, resets, and bytes sent
//! together with the head.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::SocketAddr,
    thread,
    time::Duration,
};

use exeat_loadtest::{
    client::{
        Credentials, Ending, Exchange, Tunnel, connect, connect_raw, dial, socks5_connect, socks5_greeting,
        socks5_login, socks5_request,
    },
    origin::{End, Origin, Recording, Script, Step},
    pattern::{read_pattern, write_pattern},
    process::{Program, Running},
};
use tempfile::{TempDir, tempdir};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// More than every buffer on the way together would be seen; a few of them are not.
const GROWTH: u64 = 16 * MIB;

const SOON: Duration = Duration::from_secs(10);

/// Seeds of the bytes each way, so that an echo cannot pass for the other direction.
const UP: u64 = 1;
const DOWN: u64 = 2;

/// A proxy of the test's own, on loopback: this guarantee is not about who may go where.
struct Exeat {
    running: Running,
    address: SocketAddr,
    directory: TempDir,
}

impl Exeat {
    fn start() -> Self {
        let directory = tempdir().unwrap();
        let mut running = Program::new(env!("CARGO_BIN_EXE_exeat"))
            .args(["serve", "--no-auth", "--listen", "127.0.0.1:0", "--allow", "127.0.0.1", "--audit-log"])
            .arg(directory.path().join("audit.jsonl"))
            .start()
            .unwrap();
        let line = running.wait_for_line(SOON, |line| line.contains("listening addr=")).unwrap();
        let address = line.rsplit_once("addr=").unwrap().1.parse().unwrap();
        Self { running, address, directory }
    }

    /// The byte counts, out and in, of the `count`-th flow that has closed.
    fn tally(&self, count: usize) -> (u64, u64) {
        let path = self.directory.path().join("audit.jsonl");
        let closed = || {
            let text = std::fs::read_to_string(&path).unwrap();
            // A record is written some moments after its client has left.
            let line = text.lines().filter(|line| line.contains(r#""event":"close""#)).nth(count - 1)?;
            let value: serde_json::Value = serde_json::from_str(line).ok()?;
            Some((value["bytes_out"].as_u64()?, value["bytes_in"].as_u64()?))
        };
        wait_for(closed).expect("a record of the end")
    }
}

/// Looks, by way of a connection attempt that takes a moment, until something is there.
fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let quiet = Origin::start("127.0.0.1:0", Script::silent()).unwrap();
    (0..500).find_map(|_| {
        let found = look();
        if found.is_none() {
            quiet.wait_until(Duration::from_millis(10), |_| false);
        }
        found
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Connect,
    Socks5,
}

const WAYS: [Way; 2] = [Way::Connect, Way::Socks5];

impl Way {
    fn open(self, exeat: &Exeat, origin: &Origin) -> Tunnel {
        let target = origin.address();
        match self {
            Self::Connect => connect(exeat.address, &target.to_string(), None).unwrap(),
            Self::Socks5 => socks5_connect(exeat.address, target.ip(), target.port(), None).unwrap(),
        }
    }

    /// Everything that a client sends up to the tunnel, in one piece.
    fn head(self, origin: &Origin) -> Vec<u8> {
        let target = origin.address();
        match self {
            Self::Connect => format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").into_bytes(),
            Self::Socks5 => {
                let login = socks5_login(&Credentials::new("any", "body"));
                [socks5_greeting(&[2]), login, socks5_request(1, &target.ip().into(), target.port())].concat()
            }
        }
    }

    /// How many bytes a proxy answers to [`head`](Self::head), if that does not depend on its words.
    fn answer_length(self, bytes: &[u8]) -> usize {
        match self {
            Self::Connect => bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4,
            Self::Socks5 => 2 + 2 + 10,
        }
    }
}

fn only(origin: &Origin) -> Recording {
    let mut all = origin.wait_for_ended(1, SOON);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// Does `bulk` and sees what it cost in memory.
fn in_constant_memory(exeat: &Exeat, bulk: impl FnOnce()) {
    // A first small flow, so that what is made once is there before.
    let origin = Origin::start("127.0.0.1:0", Script::echo()).unwrap();
    let mut tunnel = Way::Connect.open(exeat, &origin);
    write_pattern(&mut tunnel, UP, 256 * 1024).unwrap();
    tunnel.finish_sending().unwrap();
    tunnel.read_all().unwrap();
    let before = exeat.running.resident_bytes().unwrap();
    bulk();
    let peak = exeat.running.peak_resident_bytes().unwrap();
    assert!(peak < before + GROWTH, "{before} bytes before, {peak} at the peak");
}

fn bulk_through_a_tunnel(way: Way) {
    let exeat = Exeat::start();
    let script = Script::steps([
        Step::ReadPattern { seed: UP, length: GIB },
        Step::SendPattern { seed: DOWN, length: GIB },
        Step::FinishSending,
    ]);
    let origin = Origin::start("127.0.0.1:0", script).unwrap();
    in_constant_memory(&exeat, || {
        let mut tunnel = way.open(&exeat, &origin);
        write_pattern(&mut tunnel, UP, GIB).unwrap();
        let found = read_pattern(&mut tunnel, DOWN, u64::MAX).unwrap();
        assert!(found.is_exactly(GIB), "down: {found:?}");
        drop(tunnel);
        let seen = only(&origin);
        assert!(seen.patterns[0].is_exactly(GIB), "up: {:?}", seen.patterns);
        assert_eq!((seen.received_length, seen.end), (GIB, End::PeerClosed));
    });
    // The second: `in_constant_memory` has made one before.
    assert_eq!(exeat.tally(2), (GIB, GIB), "the record");
}

#[test]
fn a_gibibyte_each_way_through_connect() {
    bulk_through_a_tunnel(Way::Connect);
}

#[test]
fn a_gibibyte_each_way_through_socks5() {
    bulk_through_a_tunnel(Way::Socks5);
}

#[test]
fn a_gibibyte_each_way_through_plain_http() {
    let exeat = Exeat::start();
    let origin = Origin::start(
        "127.0.0.1:0",
        Script::requests(|_| {
            vec![
                Step::ReadBodyPattern { seed: UP },
                Step::Send(format!("HTTP/1.1 200 OK\r\nContent-Length: {GIB}\r\n\r\n").into_bytes()),
                Step::SendPattern { seed: DOWN, length: GIB },
            ]
        }),
    )
    .unwrap();
    in_constant_memory(&exeat, || {
        let target = origin.address();
        let mut stream = dial(exeat.address).unwrap();
        let head = format!(
            "POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\nContent-Length: {GIB}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        write_pattern(&mut stream, UP, GIB).unwrap();
        let answer = Exchange::new().until_head().run_on(&mut stream, "").unwrap();
        let (early, status) = (answer.answer().body, answer.answer().status);
        assert_eq!(status, 200);
        stream.set_read_timeout(Some(SOON)).unwrap();
        let found = read_pattern(&mut early.chain(&mut stream), DOWN, u64::MAX).unwrap();
        assert!(found.is_exactly(GIB), "down: {found:?}");
        assert!(only(&origin).patterns[0].is_exactly(GIB), "up: {:?}", only(&origin).patterns);
    });
}

/// Chunks that are larger than any buffer, with the sizes that the client chose.
#[test]
fn chunked_bodies_each_way_through_plain_http() {
    const CHUNK: u64 = 64 * MIB;
    let exeat = Exeat::start();
    let origin = Origin::start(
        "127.0.0.1:0",
        Script::requests(|_| {
            let mut steps = vec![
                Step::ReadBodyPattern { seed: UP },
                Step::send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
                Step::Send(format!("{CHUNK:x}\r\n").into_bytes()),
                Step::SendPattern { seed: DOWN, length: CHUNK },
                Step::send("\r\n3;ext=1\r\nabc\r\n0\r\nX-Trailer: 1\r\n\r\n"),
            ];
            steps.push(Step::FinishSending);
            steps
        }),
    )
    .unwrap();
    in_constant_memory(&exeat, || {
        let target = origin.address();
        let mut stream = dial(exeat.address).unwrap();
        let head = format!(
            "POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        // Two chunks whose border is nowhere near the border of a buffer.
        let mut body = Vec::new();
        write_pattern(&mut body, UP, CHUNK).unwrap();
        let (first, second) = body.split_at(12_345);
        for chunk in [first, second] {
            write!(stream, "{:x}\r\n", chunk.len()).unwrap();
            stream.write_all(chunk).unwrap();
            stream.write_all(b"\r\n").unwrap();
        }
        stream.write_all(b"0\r\n\r\n").unwrap();
        drop(body);
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = exeat_loadtest::client::HttpAnswer::parse_all(&answer).remove(0);
        let (bulk, tail) = answer.body.split_at(CHUNK as usize);
        assert!(read_pattern(&mut &*bulk, DOWN, u64::MAX).unwrap().is_exactly(CHUNK));
        assert_eq!(tail, b"abc");
        assert!(only(&origin).patterns[0].is_exactly(CHUNK), "up: {:?}", only(&origin).patterns);
    });
}

/// Both directions at once, with a reader that is slower than the writer: nothing is lost, and what the reader does
/// not take is left with the writer, not piled up in the proxy.
#[test]
fn both_directions_at_once_and_a_reader_that_waits() {
    for way in WAYS {
        let exeat = Exeat::start();
        let origin = Origin::start("127.0.0.1:0", Script::echo()).unwrap();
        in_constant_memory(&exeat, || {
            let mut tunnel = way.open(&exeat, &origin);
            let mut writer = tunnel.writer().unwrap();
            let sent = thread::spawn(move || {
                write_pattern(&mut writer, UP, 128 * MIB).unwrap();
                writer.shutdown(std::net::Shutdown::Write).unwrap();
            });
            // Until the writer stands still, every buffer on the way is full.
            let mut last = 0;
            wait_for(|| {
                let now = origin.recordings().first().map_or(0, |seen| seen.received_length);
                let stands = now > 0 && now == last;
                last = now;
                stands.then_some(())
            })
            .unwrap();
            assert!(last < 128 * MIB, "back-pressure reaches the writer");
            let found = read_pattern(&mut tunnel, UP, u64::MAX).unwrap();
            assert!(found.is_exactly(128 * MIB), "{way:?}: {found:?}");
            sent.join().unwrap();
        });
    }
}

#[test]
fn a_reply_after_the_clients_fin_is_whole() {
    for way in WAYS {
        let exeat = Exeat::start();
        let origin = Origin::start(
            "127.0.0.1:0",
            Script::steps([
                Step::ReadToEnd,
                Step::Pause(Duration::from_millis(500)),
                Step::SendPattern { seed: DOWN, length: MIB },
                Step::FinishSending,
            ]),
        )
        .unwrap();
        let mut tunnel = way.open(&exeat, &origin);
        tunnel.write_all(b"the question").unwrap();
        tunnel.finish_sending().unwrap();
        let found = read_pattern(&mut tunnel, DOWN, u64::MAX).unwrap();
        assert!(found.is_exactly(MIB), "{way:?}: {found:?}");
        assert_eq!(only(&origin).text(), "the question");
        assert_eq!(exeat.tally(1), (12, MIB));
    }
}

#[test]
fn a_question_after_the_servers_fin_is_whole() {
    for way in WAYS {
        let exeat = Exeat::start();
        let script = Script::steps([Step::send("bye"), Step::FinishSending, Step::ReadToEnd]);
        let origin = Origin::start("127.0.0.1:0", script).unwrap();
        let mut tunnel = way.open(&exeat, &origin);
        assert_eq!(tunnel.read_all().unwrap(), b"bye", "{way:?}: the FIN is passed on");
        // The FIN was passed on; this comes well after it.
        assert!(!origin.wait_until(Duration::from_millis(300), |all| all[0].end != End::Open));
        write_pattern(&mut tunnel, UP, MIB).unwrap();
        tunnel.finish_sending().unwrap();
        let seen = only(&origin);
        assert!(read_pattern(&mut &*seen.received, UP, u64::MAX).unwrap().is_exactly(MIB), "{way:?}");
        assert_eq!(seen.end, End::PeerClosed);
    }
}

/// A client may send before it knows that there is a tunnel.
#[test]
fn bytes_that_come_with_the_head_arrive() {
    for way in WAYS {
        for length in [1, 5_000, 200_000] {
            let exeat = Exeat::start();
            let origin = Origin::start("127.0.0.1:0", Script::echo()).unwrap();
            let mut early = Vec::new();
            write_pattern(&mut early, UP, length).unwrap();
            let all = [way.head(&origin), early.clone()].concat();
            let got = Exchange::new().half_close().run(exeat.address, all).unwrap();
            assert_eq!(got.ending, Ending::Closed, "{way:?}: {:?}", got.text());
            let start = way.answer_length(&got.bytes);
            assert!(
                got.bytes[start..] == early,
                "{way:?}: {length} bytes were sent, {} came back",
                got.bytes.len() - start
            );
            assert!(only(&origin).received == early);
        }
    }
    // And as a client reads it that takes the answer first.
    let exeat = Exeat::start();
    let origin = Origin::start("127.0.0.1:0", Script::echo()).unwrap();
    let head = [Way::Connect.head(&origin), b"early".to_vec()].concat();
    let mut tunnel = connect_raw(exeat.address, head).unwrap();
    assert_eq!(tunnel.read_bytes(5).unwrap(), b"early");
}

#[test]
fn a_server_that_speaks_first_is_heard() {
    for way in WAYS {
        let exeat = Exeat::start();
        let origin =
            Origin::start("127.0.0.1:0", Script::steps([Step::send("SSH-2.0-test\r\n"), Step::Echo]))
                .unwrap();
        let mut tunnel = way.open(&exeat, &origin);
        assert_eq!(tunnel.read_bytes(14).unwrap(), b"SSH-2.0-test\r\n", "{way:?}: without a byte of ours");
        tunnel.write_all(b"SSH-2.0-us\r\n").unwrap();
        assert_eq!(tunnel.read_bytes(12).unwrap(), b"SSH-2.0-us\r\n");
    }
}

/// Nobody may take half a stream for a whole one.
#[test]
fn a_reset_is_passed_on_as_a_reset() {
    for way in WAYS {
        let exeat = Exeat::start();
        let origin = Origin::start("127.0.0.1:0", Script::silent()).unwrap();
        let mut tunnel = way.open(&exeat, &origin);
        tunnel.write_all(b"half of").unwrap();
        assert!(origin.wait_until(SOON, |all| all.iter().any(|one| one.received == b"half of")));
        tunnel.reset().unwrap();
        assert_eq!(only(&origin).end, End::PeerReset, "{way:?}: the client's");

        let steps = [Step::ReadExactly(1), Step::send("half of"), Step::ReadExactly(1), Step::Reset];
        let origin = Origin::start("127.0.0.1:0", Script::steps(steps)).unwrap();
        let mut tunnel = way.open(&exeat, &origin);
        tunnel.write_all(b"1").unwrap();
        assert_eq!(tunnel.read_bytes(7).unwrap(), b"half of");
        tunnel.write_all(b"2").unwrap();
        let end = tunnel.read_all().unwrap_err();
        assert_eq!(end.kind(), ErrorKind::ConnectionReset, "{way:?}: the server's");
    }
}

/// A body that breaks off must not look whole, however its length is told.
#[test]
fn a_broken_answer_does_not_look_whole() {
    for (head, whole) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", "half"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", "\r\n0\r\n"),
    ] {
        for end in [Step::Close, Step::Reset] {
            let exeat = Exeat::start();
            let script = Script::requests(move |_| vec![Step::send(head), end.clone()]);
            let origin = Origin::start("127.0.0.1:0", script).unwrap();
            let target = origin.address();
            let request = format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n");
            let got = Exchange::new().run(exeat.address, request).unwrap();
            assert!(
                matches!(got.ending, Ending::Closed | Ending::Reset),
                "the connection ends: {:?}",
                got.ending
            );
            if whole == "\r\n0\r\n" {
                assert!(!got.text().contains(whole), "no last chunk: {:?}", got.text());
            } else if let Some(answer) = got.answers().first() {
                assert!(answer.status != 200 || answer.body.len() < 100, "{answer:?}");
            }
        }
    }
}
