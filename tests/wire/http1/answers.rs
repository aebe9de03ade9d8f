//! The answer that the client gets, byte by byte.

use std::collections::HashMap;

use exeat_loadtest::{
    client::Exchange,
    netns::in_private_network,
    origin::{Origin, Script, Step},
    test_name,
};

use crate::raw::{Daemon, GOOD, RULES, names, network, proxy};

struct Case {
    name: &'static str,
    /// Method and version of the client.
    asked: (&'static str, &'static str),
    origin: String,
    /// Whether the origin closes after it.
    closes: bool,
    client: String,
    /// Whether the client's connection ends after it.
    ends: bool,
}

const HTTP: (&str, &str) = ("GET", "HTTP/1.1");
const OLD: (&str, &str) = ("GET", "HTTP/1.0");
const HEAD: (&str, &str) = ("HEAD", "HTTP/1.1");

fn case(
    name: &'static str,
    asked: (&'static str, &'static str),
    origin: impl Into<String>,
    client: impl Into<String>,
) -> Case {
    Case { name, asked, origin: origin.into(), closes: false, client: client.into(), ends: false }
}

impl Case {
    fn closing(self) -> Self {
        Self { closes: true, ..self }
    }

    fn ending(self) -> Self {
        Self { ends: true, ..self }
    }
}

fn ok(lines: &str, rest: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{lines}\r\n{rest}")
}

fn heads() -> Vec<Case> {
    let length = "Content-Length: 2\r\n";
    let via = "Via: 1.1 exeat\r\n";
    let lines = "Server: x\r\ncontent-LENGTH: 2\r\nX-a:b\r\nX-a:  c \r\nSet-Cookie: 1\r\nSet-Cookie: 2\r\nX-U: \u{e9}\r\n";
    vec![
        case(
            "as it came",
            HTTP,
            ok(lines, "ok"),
            ok(&format!("{lines}{via}").replace("LENGTH: 2", "LENGTH: 2"), "ok"),
        ),
        case(
            "what is ours to say",
            HTTP,
            ok(
                &format!(
                    "X-Exeat-Error: not-listed\r\nx-EXEAT-error: y\r\nProxy-Status: exeat; error=x\r\n{length}\
                Proxy-Status: \"Exeat\"; error=y\r\nProxy-Status: cdn, EXEAT;error=z\r\nProxy-Status: cdn; x=1\r\n\
                Proxy-Status: exeater\r\n"
                ),
                "ok",
            ),
            ok(&format!("{length}Proxy-Status: cdn; x=1\r\nProxy-Status: exeater\r\n{via}"), "ok"),
        ),
        case(
            "what is for this hop",
            HTTP,
            ok(
                &format!(
                    "Connection: x-hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n{length}\
                Proxy-Connection: x\r\nProxy-Authenticate: Basic\r\nUpgrade: h2c\r\nX-End: 1\r\nTE: x\r\n"
                ),
                "ok",
            ),
            ok(&format!("{length}X-End: 1\r\n{via}"), "ok"),
        ),
        case(
            "a Via that is there",
            HTTP,
            ok(&format!("Via: 1.0 cdn\r\n{length}"), "ok"),
            ok(&format!("Via: 1.0 cdn\r\n{length}{via}"), "ok"),
        ),
        case(
            "no reason",
            HTTP,
            format!("HTTP/1.1 200\r\n{length}\r\nok"),
            format!("HTTP/1.1 200 \r\n{length}{via}\r\nok"),
        ),
        case(
            "an empty reason",
            HTTP,
            format!("HTTP/1.1 200 \r\n{length}\r\nok"),
            format!("HTTP/1.1 200 \r\n{length}{via}\r\nok"),
        ),
        case(
            "a reason of its own",
            HTTP,
            format!("HTTP/1.1 299 Na J\u{e4}?\r\n{length}\r\nok"),
            format!("HTTP/1.1 299 Na J\u{e4}?\r\n{length}{via}\r\nok"),
        ),
        case(
            "a length said twice",
            HTTP,
            ok("Content-Length: 2\r\nContent-Length: 2, 2\r\n", "ok"),
            ok(&format!("{length}{via}"), "ok"),
        ),
        case(
            "the origin wants to close",
            HTTP,
            ok(&format!("Connection: close\r\n{length}"), "ok"),
            ok(&format!("{length}{via}"), "ok"),
        ),
        case(
            "an old origin",
            HTTP,
            format!("HTTP/1.0 200 OK\r\n{length}\r\nok"),
            ok(&format!("{length}Via: 1.0 exeat\r\n"), "ok"),
        ),
        case(
            "an old client",
            OLD,
            ok(length, "ok"),
            ok(&format!("{length}Connection: close\r\n{via}"), "ok"),
        )
        .ending(),
        case(
            "an error of the origin",
            HTTP,
            "HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n",
            format!("HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n{via}\r\n"),
        ),
        case(
            "no body at all",
            HTTP,
            "HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n",
            format!("HTTP/1.1 204 No Content\r\nX-A: b\r\n{via}\r\n"),
        ),
        case(
            "a length without a body",
            HTTP,
            "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
            format!("HTTP/1.1 204 No Content\r\n{via}\r\n"),
        ),
        case(
            "not modified",
            HTTP,
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: x\r\n\r\n",
            format!("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: x\r\n{via}\r\n"),
        ),
        case(
            "the answer to HEAD",
            HEAD,
            ok("Content-Length: 5\r\n", ""),
            ok(&format!("Content-Length: 5\r\n{via}"), ""),
        ),
        case(
            "the answer to HEAD without a length",
            HEAD,
            ok("X-A: b\r\n", ""),
            ok(&format!("X-A: b\r\n{via}"), ""),
        ),
    ]
}

fn bodies() -> Vec<Case> {
    let chunked = "Transfer-Encoding: chunked\r\n";
    let via = "Via: 1.1 exeat\r\n";
    let two = "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
    vec![
        case(
            "chunks",
            HTTP,
            ok(chunked, "5;x=y\r\nhello\r\n0\r\n\r\n"),
            ok(&format!("{chunked}{via}"), "5\r\nhello\r\n0\r\n\r\n"),
        ),
        case("no chunks", HTTP, ok(chunked, "0\r\n\r\n"), ok(&format!("{chunked}{via}"), "0\r\n\r\n")),
        case(
            "trailers",
            HTTP,
            ok(&format!("{chunked}Trailer: X-T\r\n"), "5\r\nhello\r\n0\r\nX-T: 1\r\nx-u: 2\r\n\r\n"),
            ok(&format!("{chunked}Trailer: X-T\r\n{via}"), "5\r\nhello\r\n0\r\nX-T: 1\r\nx-u: 2\r\n\r\n"),
        ),
        case(
            "chunks to an old client",
            OLD,
            ok(&format!("{chunked}X-A: b\r\n"), two),
            ok(&format!("X-A: b\r\nConnection: close\r\n{via}"), "hello world"),
        )
        .ending(),
        case(
            "trailers to an old client",
            OLD,
            ok(chunked, "5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n"),
            ok(&format!("Connection: close\r\n{via}"), "hello"),
        )
        .ending(),
        case(
            "a body that ends with the connection",
            HTTP,
            ok("X-A: b\r\n", "hello"),
            ok(&format!("X-A: b\r\n{chunked}{via}"), "5\r\nhello\r\n0\r\n\r\n"),
        )
        .closing(),
        case(
            "the same, of an old origin",
            HTTP,
            "HTTP/1.0 200 OK\r\n\r\nhello",
            ok(&format!("{chunked}Via: 1.0 exeat\r\n"), "5\r\nhello\r\n0\r\n\r\n"),
        )
        .closing(),
        case(
            "the same, to an old client",
            OLD,
            ok("X-A: b\r\n", "hello"),
            ok(&format!("X-A: b\r\nConnection: close\r\n{via}"), "hello"),
        )
        .closing()
        .ending(),
        case("an empty one", HTTP, ok("", ""), ok(&format!("{chunked}{via}"), "0\r\n\r\n")).closing(),
    ]
}

fn interim() -> Vec<Case> {
    let via = "Via: 1.1 exeat\r\n";
    let last = ok("Content-Length: 2\r\n", "ok");
    let passed = ok(&format!("Content-Length: 2\r\n{via}"), "ok");
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n";
    vec![
        case(
            "100",
            HTTP,
            format!("HTTP/1.1 100 Continue\r\n\r\n{last}"),
            format!("HTTP/1.1 100 Continue\r\n{via}\r\n{passed}"),
        ),
        case(
            "103",
            HTTP,
            format!("{hints}X-Exeat-Error: x\r\n\r\n{last}"),
            format!("{hints}{via}\r\n{passed}"),
        ),
        case(
            "several",
            HTTP,
            format!("HTTP/1.1 102 Processing\r\n\r\n{hints}\r\n{hints}\r\n{last}"),
            format!("HTTP/1.1 102 Processing\r\n{via}\r\n{hints}{via}\r\n{hints}{via}\r\n{passed}"),
        ),
        case(
            "to an old client",
            OLD,
            format!("{hints}\r\n{last}"),
            ok(&format!("Content-Length: 2\r\nConnection: close\r\n{via}"), "ok"),
        )
        .ending(),
        case(
            "before the answer to HEAD",
            HEAD,
            format!("{hints}\r\n{}", ok("Content-Length: 9\r\n", "")),
            format!("{hints}{via}\r\n{}", ok(&format!("Content-Length: 9\r\n{via}"), "")),
        ),
    ]
}

#[test]
fn the_client_gets_the_answer_and_nothing_that_is_not_the_origins_to_say() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let cases: Vec<Case> = [heads(), bodies(), interim()].into_iter().flatten().collect();
        let scripts: HashMap<String, Vec<Step>> = (0..)
            .zip(&cases)
            .map(|(index, case)| {
                let mut steps = vec![Step::send(&case.origin)];
                steps.extend(case.closes.then_some(Step::FinishSending));
                (format!("/{index}"), steps)
            })
            .collect();
        let next = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext";
        let script = Script::requests(move |request| {
            scripts.get(&request.target).cloned().unwrap_or_else(|| vec![Step::send(next)])
        });
        let _origin = Origin::start(&format!("{GOOD}:80"), script).unwrap();
        let _daemon = Daemon::start(RULES);
        for (index, case) in (0..).zip(&cases) {
            let (method, version) = case.asked;
            // The next request follows on the same connection: it must get its own answer, or none.
            let bytes = format!(
                "{method} http://good.example/{index} {version}\r\nHost: good.example\r\n\r\n\
                 GET http://good.example/next HTTP/1.1\r\nHost: good.example\r\nConnection: close\r\n\r\n"
            );
            let back = Exchange::new().run(proxy(), bytes).unwrap();
            let next =
                "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\nVia: 1.1 exeat\r\n\r\nnext";
            let expected = format!("{}{}", case.client, if case.ends { "" } else { next });
            assert_eq!(back.text(), expected, "{}", case.name);
        }
    });
}
