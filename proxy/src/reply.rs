//! What a failure looks like on the wire: one exhaustive table from reason to answer, for every protocol.
//!
//! Clients hide the body of a refused CONNECT, and half of them print the reason phrase; so the sentence stands
//! there too. Not here: which reason it is, or the words of the sentence (each stage writes its own).

#![deny(clippy::wildcard_enum_match_arm)]

use std::fmt::Write as _;

use crate::{decide::Reason, failure::Failure, handshake::socks5::Rep};

/// The longest reason phrase, so that a client's one line of output holds it.
const MAX_PHRASE: usize = 120;

/// How the connection goes on after an HTTP answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// The client may send its next request.
    KeepAlive,
    /// The connection ends.
    Close,
}

/// What the client asked the body to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKind {
    /// For people.
    Text,
    /// `Accept` asks for JSON.
    Json,
    /// None at all: the answer to a HEAD.
    HeadersOnly,
}

/// The HTTP status of a reason (RFC 9110).
pub const fn http_status(reason: Reason) -> u16 {
    match reason {
        Reason::NotListed
        | Reason::DeniedByRule
        | Reason::PortNotAllowed
        | Reason::MethodDenied
        | Reason::SpecialUseName
        | Reason::Metadata
        | Reason::DeniedAddress
        | Reason::ApprovalDenied
        | Reason::ApprovalTimeout => 403,
        Reason::InvalidTarget | Reason::Malformed | Reason::Unsupported => 400,
        Reason::AuthRequired | Reason::AuthFailed => 407,
        Reason::DnsNotFound
        | Reason::DnsFailed
        | Reason::ConnectionRefused
        | Reason::NetworkUnreachable
        | Reason::HostUnreachable
        | Reason::ConnectionFailed
        | Reason::BadUpstream => 502,
        Reason::DnsTimeout | Reason::ConnectTimeout => 504,
        Reason::Limit | Reason::ShuttingDown => 503,
        Reason::Internal => 500,
    }
}

/// The proxy error type of a reason (RFC 9209 section 2.3), for `Proxy-Status` and for metrics.
pub const fn proxy_error(reason: Reason) -> Option<&'static str> {
    match reason {
        Reason::NotListed
        | Reason::DeniedByRule
        | Reason::PortNotAllowed
        | Reason::MethodDenied
        | Reason::SpecialUseName
        | Reason::ApprovalDenied
        | Reason::ApprovalTimeout => Some("http_request_denied"),
        Reason::Metadata | Reason::DeniedAddress => Some("destination_ip_prohibited"),
        Reason::InvalidTarget | Reason::Malformed | Reason::Unsupported => Some("http_request_error"),
        Reason::AuthRequired | Reason::AuthFailed | Reason::ShuttingDown => None,
        Reason::DnsNotFound | Reason::DnsFailed => Some("dns_error"),
        Reason::DnsTimeout => Some("dns_timeout"),
        Reason::ConnectTimeout => Some("connection_timeout"),
        Reason::ConnectionRefused => Some("connection_refused"),
        Reason::NetworkUnreachable | Reason::HostUnreachable => Some("destination_ip_unroutable"),
        Reason::ConnectionFailed => Some("connection_terminated"),
        Reason::BadUpstream => Some("http_protocol_error"),
        Reason::Limit => Some("connection_limit_reached"),
        Reason::Internal => Some("proxy_internal_error"),
    }
}

/// The REP of a SOCKS5 reply (RFC 1928 section 6).
pub const fn socks5_rep(reason: Reason) -> Rep {
    match reason {
        Reason::NotListed
        | Reason::DeniedByRule
        | Reason::PortNotAllowed
        | Reason::MethodDenied
        | Reason::SpecialUseName
        | Reason::Metadata
        | Reason::DeniedAddress
        | Reason::ApprovalDenied
        | Reason::ApprovalTimeout => Rep::NotAllowed,
        Reason::InvalidTarget
        | Reason::Malformed
        | Reason::AuthRequired
        | Reason::AuthFailed
        | Reason::ConnectionFailed
        | Reason::BadUpstream
        | Reason::Limit
        | Reason::ShuttingDown
        | Reason::Internal => Rep::GeneralFailure,
        Reason::Unsupported => Rep::CommandNotSupported,
        Reason::NetworkUnreachable => Rep::NetworkUnreachable,
        Reason::DnsNotFound
        | Reason::DnsFailed
        | Reason::DnsTimeout
        | Reason::ConnectTimeout
        | Reason::HostUnreachable => Rep::HostUnreachable,
        Reason::ConnectionRefused => Rep::ConnectionRefused,
    }
}

/// Whether a reason is a decision of the policy; the phrase then says who refused.
const fn is_policy(reason: Reason) -> bool {
    http_status(reason) == 403
}

/// The whole answer to an HTTP request that failed.
pub fn http(failure: &Failure, after: After, body: BodyKind) -> Vec<u8> {
    let status = failure.http_status.unwrap_or_else(|| http_status(failure.reason));
    let (content_type, content) = match body {
        BodyKind::Text | BodyKind::HeadersOnly => ("text/plain; charset=utf-8", text_body(failure)),
        BodyKind::Json => ("application/json", json_body(failure)),
    };
    let mut out = String::with_capacity(512 + content.len());
    // Writing to a String cannot fail.
    let _ = write!(out, "HTTP/1.1 {status} {}\r\n", phrase(failure));
    if status == 407 {
        out.push_str("Proxy-Authenticate: Basic realm=\"exeat\"\r\n");
    }
    if let Some(error) = proxy_error(failure.reason) {
        let _ = write!(
            out,
            "Proxy-Status: exeat; error={error}; details=\"{}\"\r\n",
            quotable(&failure.sentence)
        );
    }
    let _ = write!(out, "X-Exeat-Error: {}\r\n", failure.reason);
    if status == 503 {
        out.push_str("Retry-After: 1\r\n");
    }
    let _ = write!(
        out,
        "Content-Type: {content_type}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nConnection: {}\r\n\r\n",
        content.len(),
        match after {
            After::KeepAlive => "keep-alive",
            After::Close => "close",
        }
    );
    if body != BodyKind::HeadersOnly {
        out.push_str(&content);
    }
    out.into_bytes()
}

/// The ten bytes of a SOCKS5 reply to a request that failed.
pub fn socks5(failure: &Failure) -> [u8; 10] {
    socks5_rep(failure.reason).answer()
}

fn phrase(failure: &Failure) -> String {
    if matches!(failure.reason, Reason::AuthRequired | Reason::AuthFailed) {
        return "Proxy Authentication Required".into();
    }
    let prefix = if is_policy(failure.reason) { "Blocked by exeat: " } else { "exeat: " };
    clip(&format!("{prefix}{}", printable(&failure.sentence)), MAX_PHRASE)
}

/// The stages write printable ASCII; this is the last line of defence between a sentence and a header.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c == ' ' || c.is_ascii_graphic() { c } else { '?' }).collect()
}

fn quotable(text: &str) -> String {
    printable(text).replace('\\', "\\\\").replace('"', "\\\"")
}

fn clip(text: &str, max: usize) -> String {
    if text.len() <= max { text.to_owned() } else { format!("{}...", &text[..max - 3]) }
}

fn text_body(failure: &Failure) -> String {
    let who = if is_policy(failure.reason) { "blocked by exeat: " } else { "exeat: " };
    let mut text = format!("{who}{}\n", failure.sentence);
    if let Some(rule) = &failure.rule {
        let _ = writeln!(text, "rule: {rule}");
    }
    let _ = writeln!(text, "reason: {}", failure.reason);
    if let Some(hint) = &failure.hint {
        let _ = write!(text, "\nhint: {hint}\n");
    }
    text
}

fn json_body(failure: &Failure) -> String {
    let mut text = serde_json::json!({
        "reason": failure.reason.slug(),
        "message": failure.sentence,
        "rule": failure.rule,
        "hint": failure.hint,
    })
    .to_string();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(failure: &Failure) -> String {
        let bytes = http(failure, After::Close, BodyKind::HeadersOnly);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_refusal_says_who_what_and_why_in_the_phrase() {
        let failure = Failure::new(Reason::NotListed, "evil.example:443 is not on the allowlist");
        let answer = String::from_utf8(http(&failure, After::Close, BodyKind::Text)).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("HTTP/1.1 403 Blocked by exeat: evil.example:443 is not on the allowlist\r\n")
        );
        assert!(head.contains(
            "Proxy-Status: exeat; error=http_request_denied; details=\"evil.example:443 is not on the allowlist\"\r\n"
        ));
        assert!(head.contains("X-Exeat-Error: not-listed\r\n"));
        assert!(head.contains("Cache-Control: no-store"));
        assert!(head.contains("Connection: close"));
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
    }

    #[test]
    fn only_authentication_is_407_and_it_carries_a_challenge() {
        for reason in Reason::ALL {
            let is_auth = matches!(reason, Reason::AuthRequired | Reason::AuthFailed);
            assert_eq!(http_status(reason) == 407, is_auth, "{reason}");
            assert_eq!(head(&Failure::new(reason, "x")).contains("Proxy-Authenticate"), is_auth, "{reason}");
        }
    }

    #[test]
    fn no_byte_of_a_sentence_breaks_a_header() {
        let hostile = format!("a\r\nX-Evil: 1\r\n\r\n\u{1b}[31m\"\\é{}", "x".repeat(1000));
        let answer = head(&Failure::new(Reason::NotListed, hostile));
        assert!(!answer.contains("\r\nX-Evil"));
        assert!(answer.is_ascii() && !answer.contains('\u{1b}'));
        assert_eq!(answer.matches("\r\n\r\n").count(), 1);
        assert!(answer.lines().next().unwrap().len() <= "HTTP/1.1 403 ".len() + MAX_PHRASE);
    }

    #[test]
    fn every_reason_has_an_answer_in_both_protocols() {
        for reason in Reason::ALL {
            let failure = Failure::new(reason, "x");
            assert!(head(&failure).contains(&format!("X-Exeat-Error: {}\r\n", reason.slug())));
            let reply = socks5(&failure);
            assert!(reply[0] == 5 && (1..=8).contains(&reply[1]), "{reason}");
        }
    }

    #[test]
    fn json_is_json() {
        let bytes = http(&Failure::new(Reason::Limit, "a \"quoted\" word"), After::KeepAlive, BodyKind::Json);
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("Retry-After: 1") && head.contains("Connection: keep-alive"));
        let value: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(value["reason"], "limit");
        assert_eq!(value["message"], "a \"quoted\" word");
    }
}
