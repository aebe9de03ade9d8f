//! What every refusal must look like, written down a second time.

use exeat_loadtest::client::Exchanged;
use serde_json::Value;

use crate::raw::Answer;

/// Slug, usual HTTP status, SOCKS5 REP, `Proxy-Status` error.
pub(crate) const ANSWERS: [(&str, u16, u8, Option<&str>); 22] = [
    ("not-listed", 403, 2, Some("http_request_denied")),
    ("denied-by-rule", 403, 2, Some("http_request_denied")),
    ("port-not-allowed", 403, 2, Some("http_request_denied")),
    ("special-use-name", 403, 2, Some("http_request_denied")),
    ("denied-address", 403, 2, Some("destination_ip_prohibited")),
    ("metadata", 403, 2, Some("destination_ip_prohibited")),
    ("invalid-target", 400, 1, Some("http_request_error")),
    ("malformed", 400, 1, Some("http_request_error")),
    ("unsupported", 400, 7, Some("http_request_error")),
    ("auth-required", 407, 0xff, None),
    ("auth-failed", 407, 1, None),
    ("dns-not-found", 502, 4, Some("dns_error")),
    ("dns-failed", 502, 4, Some("dns_error")),
    ("dns-timeout", 504, 4, Some("dns_timeout")),
    ("connect-timeout", 504, 4, Some("connection_timeout")),
    ("connection-refused", 502, 5, Some("connection_refused")),
    ("network-unreachable", 502, 3, Some("destination_ip_unroutable")),
    ("host-unreachable", 502, 4, Some("destination_ip_unroutable")),
    ("limit", 503, 1, Some("connection_limit_reached")),
    ("internal", 500, 1, Some("proxy_internal_error")),
    ("connection-failed", 502, 1, Some("connection_terminated")),
    ("bad-upstream", 502, 1, Some("http_protocol_error")),
];

/// Everything that holds for every refusal over HTTP; `case` is for the message.
#[track_caller]
pub(crate) fn check(case: &str, answer: &Answer, status: u16, slug: &str) {
    let http = &answer.http;
    let text = answer.text();
    let said = format!("{case:?}: {text}");
    assert_eq!((http.status, answer.all("x-exeat-error")), (status, vec![slug]), "{said}");
    assert_eq!(http.version, "HTTP/1.1", "{said}");
    let plain = |text: &str| text.bytes().all(|b| b == b' ' || b.is_ascii_graphic());
    assert!(plain(&http.reason) && (10..=120).contains(&http.reason.len()), "{said}");
    if status == 403 {
        assert!(http.reason.starts_with("Blocked by exeat: "), "{said}");
    }

    let error = ANSWERS.iter().find(|row| row.0 == slug).unwrap_or_else(|| panic!("{said}")).3;
    match error {
        Some(error) => {
            let values = answer.all("proxy-status");
            assert_eq!(values.len(), 1, "{said}");
            let details = values[0].strip_prefix(&format!("exeat; error={error}; details=\""));
            let details = details.and_then(|rest| rest.strip_suffix('"'));
            assert!(details.is_some_and(|details| !details.is_empty() && plain(details)), "{said}");
        }
        None => assert!(answer.all("proxy-status").is_empty(), "{said}"),
    }
    let challenge: &[&str] = if status == 407 { &["Basic realm=\"exeat\""] } else { &[] };
    assert_eq!(answer.all("proxy-authenticate"), challenge, "{said}");
    assert_eq!(answer.all("retry-after").len(), usize::from(status == 503), "{said}");
    assert_eq!(answer.all("cache-control"), ["no-store"], "{said}");
    assert!(matches!(answer.all("connection")[..], ["close" | "keep-alive"]), "{said}");
    assert!(answer.all("transfer-encoding").is_empty() && answer.all("via").is_empty(), "{said}");

    let length: usize = answer.all("content-length").concat().parse().unwrap();
    assert!(length > 0 && answer.all("content-length").len() == 1, "{said}");
    if answer.method == "HEAD" {
        assert!(http.body.is_empty() && answer.raw.ends_with(b"\r\n\r\n"), "{said}");
        return;
    }
    assert_eq!(length, http.body.len(), "{said}");
    let body = http.text();
    match answer.all("content-type")[..] {
        ["application/json"] => {
            let value: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(value["reason"], slug, "{said}");
            assert!(value["message"].as_str().is_some_and(|message| !message.is_empty()), "{said}");
        }
        ["text/plain; charset=utf-8"] => {
            assert!(body.ends_with('\n') && body.lines().any(|l| l == format!("reason: {slug}")), "{said}");
            assert!(body.bytes().all(|b| b == b'\n' || b == b' ' || b.is_ascii_graphic()), "{said}");
        }
        _ => panic!("{said}"),
    }
}

/// The one refusal that came back on a connection that was then closed in order.
#[track_caller]
pub(crate) fn check_last(case: &str, back: &Exchanged, status: u16, slug: &str) {
    use exeat_loadtest::client::{Ending, HttpAnswer};
    let answers = HttpAnswer::parse_all(&back.bytes);
    assert_eq!((answers.len(), back.ending), (1, Ending::Closed), "{case:?}: {}", back.text());
    let answer = Answer { raw: back.bytes.clone(), http: answers[0].clone(), method: "GET".to_owned() };
    check(case, &answer, status, slug);
    assert_eq!(answer.all("connection"), ["close"], "{case:?}: {}", back.text());
}
