//! The head that the origin gets, byte by byte, and the requests that the proxy answers itself.

use std::time::Duration;

use exeat_loadtest::{
    client::Exchange,
    netns::in_private_network,
    origin::{Origin, Script, http_ok},
    test_name,
};

use crate::{
    raw::{Client, Daemon, GOOD, RULES, SOON, names, network, proxy},
    refusal,
};

/// What the client sends, and what the origin gets of it (without the `Via`, where `{via}` stands).
const REWRITTEN: [(&str, &str, &str); 29] = [
    (
        "plain",
        "GET http://good.example/a?b=c HTTP/1.1\r\nHost: good.example\r\n\r\n",
        "GET /a?b=c HTTP/1.1\r\nHost: good.example\r\n{via}\r\n",
    ),
    (
        "another Host",
        "GET http://good.example/ HTTP/1.1\r\nX-A: 1\r\nhOsT: evil.example:81\r\nX-B: 2\r\n\r\n",
        "GET / HTTP/1.1\r\nX-A: 1\r\nhOsT: good.example\r\nX-B: 2\r\n{via}\r\n",
    ),
    (
        "the host's spelling",
        "GET http://GOOD.example./ HTTP/1.1\r\nHost: x.example\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: good.example\r\n{via}\r\n",
    ),
    (
        "the port of the scheme",
        "GET http://good.example:80/ HTTP/1.1\r\nHost: good.example:80\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: good.example\r\n{via}\r\n",
    ),
    (
        "the scheme's spelling",
        "GET HTTP://good.example/ HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: good.example\r\n{via}\r\n",
    ),
    (
        "no path",
        "GET http://good.example HTTP/1.1\r\nHost: good.example\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: good.example\r\n{via}\r\n",
    ),
    (
        "a query without a path",
        "GET http://good.example?q HTTP/1.1\r\nHost: good.example\r\n\r\n",
        "GET /?q HTTP/1.1\r\nHost: good.example\r\n{via}\r\n",
    ),
    (
        "a path as it is",
        "GET http://good.example/%2e%2e/./..//a%20b?x=http://evil.example/ HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /%2e%2e/./..//a%20b?x=http://evil.example/ HTTP/1.1\r\nHost: good.example\r\n{via}\r\n",
    ),
    (
        "a path with an @",
        "GET http://good.example/@evil.example HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /@evil.example HTTP/1.1\r\nHost: good.example\r\n{via}\r\n",
    ),
    (
        "HTTP/1.0 without a host",
        "GET http://good.example/ HTTP/1.0\r\nX-A: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: good.example\r\nX-A: b\r\nConnection: close\r\n{via}\r\n",
    ),
    (
        "lines as they came",
        "GET http://good.example/ HTTP/1.1\r\nHost: x\r\nX-a:b\r\nx-A:  c \t\r\nX-E:\r\nX-U: \u{e9}\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: good.example\r\nX-a:b\r\nx-A:  c \t\r\nX-E:\r\nX-U: \u{e9}\r\n{via}\r\n",
    ),
    (
        "another method",
        "PURGE http://good.example/ HTTP/1.1\r\nHost: x\r\n\r\n",
        "PURGE / HTTP/1.1\r\nHost: good.example\r\n{via}\r\n",
    ),
    (
        "a method in lower case",
        "get http://good.example/ HTTP/1.1\r\nHost: x\r\n\r\n",
        "get / HTTP/1.1\r\nHost: good.example\r\n{via}\r\n",
    ),
    (
        "what is for the proxy",
        "GET http://good.example/ HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic YTpi\r\n\
        Proxy-Connection: keep-alive\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: x\r\nAuthorization: Basic Yzpk\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: good.example\r\nAuthorization: Basic Yzpk\r\n{via}\r\n",
    ),
    (
        "what Connection lists",
        "GET http://good.example/ HTTP/1.1\r\nHost: x\r\nX-Hop: 1\r\nConnection: x-hop, Keep-Alive\r\n\
        x-HOP: 2\r\nX-End: 3\r\nConnection:X-Other\r\nX-Other: 4\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: good.example\r\nX-End: 3\r\n{via}\r\n",
    ),
    (
        "close",
        "GET http://good.example/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: good.example\r\nConnection: close\r\n{via}\r\n",
    ),
    (
        "close to the proxy",
        "GET http://good.example/ HTTP/1.1\r\nHost: x\r\nProxy-Connection: close\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: good.example\r\nConnection: close\r\n{via}\r\n",
    ),
    (
        "TE",
        "GET http://good.example/ HTTP/1.1\r\nHost: x\r\nTE: gzip\r\nConnection: TE\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: good.example\r\n{via}\r\n",
    ),
    (
        "TE with trailers",
        "GET http://good.example/ HTTP/1.1\r\nHost: x\r\nTE: gzip, Trailers\r\nConnection: TE\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: good.example\r\nTE: trailers\r\nConnection: TE\r\n{via}\r\n",
    ),
    (
        "an upgrade",
        "GET http://good.example/ HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: good.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{via}\r\n",
    ),
    (
        "an upgrade that Connection does not list",
        "GET http://good.example/ HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: good.example\r\n{via}\r\n",
    ),
    (
        "an upgrade to h2c",
        "GET http://good.example/ HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\
        Connection: Upgrade, HTTP2-Settings\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: good.example\r\n{via}\r\n",
    ),
    (
        "a Via that is there",
        "GET http://good.example/ HTTP/1.1\r\nHost: x\r\nVia: 1.0 first\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: good.example\r\nVia: 1.0 first\r\n{via}\r\n",
    ),
    (
        "OPTIONS of the server",
        "OPTIONS http://good.example HTTP/1.1\r\nHost: x\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: good.example\r\n{via}\r\n",
    ),
    (
        "OPTIONS of a path",
        "OPTIONS http://good.example/ HTTP/1.1\r\nHost: x\r\n\r\n",
        "OPTIONS / HTTP/1.1\r\nHost: good.example\r\n{via}\r\n",
    ),
    (
        "Max-Forwards",
        "OPTIONS http://good.example/ HTTP/1.1\r\nHost: x\r\nMax-Forwards: 07\r\n\r\n",
        "OPTIONS / HTTP/1.1\r\nHost: good.example\r\nMax-Forwards: 6\r\n{via}\r\n",
    ),
    (
        "Max-Forwards of a GET",
        "GET http://good.example/ HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: good.example\r\nMax-Forwards: 0\r\n{via}\r\n",
    ),
    (
        "a body",
        "POST http://good.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
        "POST / HTTP/1.1\r\nHost: good.example\r\nContent-Length: 5\r\n{via}\r\nhello",
    ),
    (
        "chunks and trailers",
        "POST http://good.example/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n\
        5;ext=1\r\nhello\r\n0\r\nX-T: 1\r\nx-t: 2\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: good.example\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n{via}\r\n\
        5\r\nhello\r\n0\r\nX-T: 1\r\nx-t: 2\r\n\r\n",
    ),
];

#[test]
fn the_origin_gets_the_request_and_nothing_that_is_for_the_proxy() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let origin = Origin::start(&format!("{GOOD}:80"), Script::answer(http_ok("ok"))).unwrap();
        let mut seen_before = 0;
        for (config, via) in [(RULES.to_owned(), true), (format!("proxy.via = false\n{RULES}"), false)] {
            let _daemon = Daemon::start(&config);
            for (name, sent, expected) in REWRITTEN {
                let line =
                    if sent.contains("HTTP/1.0\r\n") { "Via: 1.0 exeat\r\n" } else { "Via: 1.1 exeat\r\n" };
                let expected = expected.replace("{via}", if via { line } else { "" });
                let mut client = Client::sending(sent);
                assert_eq!(client.answer("GET").http.status, 200, "{name}");
                drop(client);
                let seen = origin.wait_for_ended(seen_before + 1, SOON);
                assert_eq!(seen.last().unwrap().text(), expected, "{name}");
                seen_before += 1;
            }
        }
        assert_eq!(origin.connections(), 2 * REWRITTEN.len());
    });
}

#[test]
fn a_port_and_an_address_stand_in_the_host() {
    let net = network().address("2606:2800:220:1::34");
    in_private_network(test_name!(), &net, || {
        let _names = names();
        let named = Origin::start(&format!("{GOOD}:8080"), Script::answer(http_ok("ok"))).unwrap();
        let literal = Origin::start("[2606:2800:220:1::34]:80", Script::answer(http_ok("ok"))).unwrap();
        let _daemon = Daemon::start("[profiles.default.network]\nallowed_domains = [\"*\"]\n");
        for (origin, url, host) in [
            (&named, "http://good.example:8080/", "good.example:8080"),
            (&literal, "http://[2606:2800:0220:1::34]/", "[2606:2800:220:1::34]"),
        ] {
            let answer = Client::sending(format!("GET {url} HTTP/1.1\r\nHost: x\r\n\r\n")).answer("GET");
            assert_eq!(answer.http.status, 200);
            let expected = format!("GET / HTTP/1.1\r\nHost: {host}\r\nVia: 1.1 exeat\r\n\r\n");
            assert_eq!(origin.wait_for_ended(1, SOON)[0].text(), expected);
        }
    });
}

#[test]
fn some_requests_are_for_the_proxy_itself() {
    in_private_network(test_name!(), &network(), || {
        let dns = names();
        let origin = Origin::start(&format!("{GOOD}:80"), Script::answer(http_ok("ok"))).unwrap();
        let _daemon = Daemon::start(RULES);
        let mut client = Client::sending("OPTIONS * HTTP/1.1\r\nHost: proxy\r\n\r\n");
        let answer = client.answer("OPTIONS");
        assert_eq!((answer.http.status, answer.http.header("content-length")), (200, Some("0")));
        assert!(answer.http.header("allow").is_some());
        // On the same connection: it goes on.
        client.send("OPTIONS http://good.example/x HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\n\r\n");
        assert_eq!(client.answer("OPTIONS").http.status, 200);
        let trace = "TRACE http://good.example/x HTTP/1.1\r\nHost: x\r\nX-A: b\r\nMax-Forwards: 0\r\n";
        client.send(format!(
            "{trace}Cookie: secret\r\nAuthorization: secret\r\nProxy-Authorization: secret\r\n\r\n"
        ));
        let answer = client.answer("TRACE");
        assert_eq!(answer.http.header("content-type"), Some("message/http"));
        assert_eq!(answer.http.text(), format!("{trace}\r\n"));
        // What is not allowed is not answered for.
        client.send("OPTIONS http://evil.example/ HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\n\r\n");
        refusal::check("denied", &client.answer("OPTIONS"), 403, "not-listed");
        assert!(dns.names_asked().is_empty() && origin.connections() == 0);
        client.send("TRACE http://good.example/ HTTP/1.1\r\nHost: x\r\nMax-Forwards: 1\r\n\r\n");
        assert_eq!(client.answer("TRACE").http.text(), "ok");
        assert_eq!(origin.recordings()[0].requests[0].header("max-forwards"), Some("0"));
    });
}

#[test]
fn a_head_may_drip_but_not_for_ever() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let origin = Origin::start(&format!("{GOOD}:80"), Script::answer(http_ok("ok"))).unwrap();
        let _daemon = Daemon::start(&format!("proxy.head_timeout = \"700ms\"\n{RULES}"));
        let head = "POST http://good.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
        let back = Exchange::new().trickle(Duration::from_millis(1)).run(proxy(), head).unwrap();
        assert_eq!(back.answer().status, 200, "{}", back.text());
        let expected = "POST / HTTP/1.1\r\nHost: good.example\r\nContent-Length: 5\r\nConnection: close\r\n\
            Via: 1.1 exeat\r\n\r\nhello";
        assert_eq!(origin.wait_for_ended(1, SOON)[0].text(), expected);

        std::thread::scope(|scope| {
            // Half a head, and then nothing.
            scope.spawn(|| {
                let mut client = Client::sending("GET http://good.example/ HT");
                client.is_silent_for(Duration::from_millis(400));
                refusal::check("late", &client.answer("GET"), 408, "malformed");
                client.ends();
            });
            // Always something, never the end.
            scope.spawn(|| {
                let slow = Exchange::new().trickle(Duration::from_millis(30));
                let back = slow.run(proxy(), &head[..head.len() - 7]).unwrap();
                refusal::check_last("slow", &back, 408, "malformed");
            });
            // Nothing at all: there is nothing to answer.
            scope.spawn(|| {
                let mut client = Client::dial();
                client.is_silent_for(Duration::from_millis(400));
                client.ends();
            });
            // The body has time, and so has the next request.
            scope.spawn(|| {
                let mut client = Client::sending(
                    "POST http://good.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhell",
                );
                client.is_silent_for(Duration::from_secs(1));
                client.send("o");
                assert_eq!(client.answer("POST").http.status, 200);
                client.is_silent_for(Duration::from_secs(1));
                client.send("GET http://good.example/ HTTP/1.1\r\nHost: x\r\n\r\n");
                assert_eq!(client.answer("GET").http.status, 200);
            });
        });
    });
}
