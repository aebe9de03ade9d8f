//! The heads that are sent on: the request's to the origin, the response's to the client.
//!
//! What is for this hop is taken out, what this hop must say is put in (RFC 9110 section 7.6), and every other
//! line goes on as it came: same case, same order, same bytes. Nothing is added that would tell the origin about
//! the proxy, but for `Via`.

use super::{
    fields::{Field, Fields, Known},
    request::{Framing, Method, Plain, Version},
    response::Answer,
};

/// What this hop says of itself in `Via` (RFC 9110 section 7.6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// `Via: 1.1 exeat`.
    Add,
    /// Nothing.
    Omit,
}

/// Whether a connection is meant to take another request after this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// It is.
    Keep,
    /// It is closed after this exchange.
    Close,
}

/// How a response's body is framed towards the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// As this says.
    Framed(Framing),
    /// It ends with the connection.
    UntilClose,
}

/// Appends the head of `plain` for its origin.
pub fn request(plain: Plain<'_>, upstream: Persistence, via: Via, out: &mut Vec<u8>) {
    let Plain { request, target, path_and_query } = plain;
    let fields = request.fields();
    put(out, &[request.method.as_str().as_bytes(), b" ", path_and_query, b" HTTP/1.1\r\n"]);
    let host = if target.port.get() == 80 { target.host.to_string() } else { target.to_string() };
    if !fields.has(Known::Host) {
        put(out, &[b"Host: ", host.as_bytes(), b"\r\n"]);
    }
    let mut coding_is_said = false;
    for field in fields.iter() {
        match field.known {
            // RFC 9112 section 3.2.2: made anew from the target, whatever the client put there.
            Known::Host => put(out, &[field.name, b": ", host.as_bytes(), b"\r\n"]),
            Known::ContentLength => {
                if let Framing::Length(length) = request.body {
                    put(out, &[field.name, b": ", length.to_string().as_bytes(), b"\r\n"]);
                }
            }
            Known::TransferEncoding => {
                if request.body == Framing::Chunked && !coding_is_said {
                    put(out, &[field.name, b": chunked\r\n"]);
                    coding_is_said = true;
                }
            }
            // RFC 9110 section 10.1.1: an HTTP/1.0 client could do nothing with a `100 Continue`.
            Known::Expect if request.version == Version::Http10 => {}
            Known::MaxForwards => match request.max_forwards {
                Some(hops) => {
                    put(out, &[field.name, b": ", hops.saturating_sub(1).to_string().as_bytes(), b"\r\n"]);
                }
                None => put_line(out, fields, &field),
            },
            Known::Upgrade => {
                if request.upgrade.is_some() {
                    put(out, &[field.line, b"\r\n"]);
                }
            }
            Known::Connection
            | Known::Http2Settings
            | Known::KeepAlive
            | Known::ProxyAuthenticate
            | Known::ProxyAuthenticationInfo
            | Known::ProxyAuthorization
            | Known::ProxyConnection
            | Known::Te => {}
            Known::Accept | Known::Expect | Known::ProxyStatus | Known::XExeatError | Known::Other => {
                put_line(out, fields, &field);
            }
        }
    }
    let mut options = Options::default();
    if request.takes_trailers() {
        put(out, &[b"TE: trailers\r\n"]);
        options.add("TE");
    }
    if request.upgrade.is_some() {
        options.add("Upgrade");
    }
    if upstream == Persistence::Close {
        options.add("close");
    }
    options.put(out);
    put_via(out, via, request.version);
    put(out, &[b"\r\n"]);
}

/// Appends the head of `answer` for its client.
pub fn answer(
    answer: &Answer,
    method: &Method,
    delivery: Delivery,
    client: Persistence,
    via: Via,
    out: &mut Vec<u8>,
) {
    let fields = answer.fields();
    put(out, &[b"HTTP/1.1 ", answer.status.to_string().as_bytes(), b" ", answer.reason(), b"\r\n"]);
    let names_protocol = matches!(answer.status, 101 | 426);
    let length = match delivery {
        Delivery::Framed(Framing::Length(length)) => Some(length),
        // RFC 9110 section 8.6: never in 1xx and 204; to a HEAD and in 304 it is what GET would have.
        Delivery::Framed(Framing::None) if matches!(answer.status, 100..=199 | 204) => None,
        Delivery::Framed(Framing::None) if *method == Method::Head || answer.status == 304 => answer.length,
        Delivery::Framed(Framing::None | Framing::Chunked) | Delivery::UntilClose => None,
    };
    let chunked = delivery == Delivery::Framed(Framing::Chunked);
    let (mut length_is_said, mut coding_is_said) = (false, false);
    for field in fields.iter() {
        match field.known {
            Known::ContentLength => {
                if let (Some(length), false) = (length, length_is_said) {
                    put(out, &[field.name, b": ", length.to_string().as_bytes(), b"\r\n"]);
                    length_is_said = true;
                }
            }
            Known::TransferEncoding => {
                if chunked && !coding_is_said {
                    put(out, &[field.name, b": chunked\r\n"]);
                    coding_is_said = true;
                }
            }
            Known::Upgrade => {
                if names_protocol {
                    put(out, &[field.line, b"\r\n"]);
                }
            }
            // Ours to say, and nobody else's, as `X-Exeat-Error` below: a client must be able to believe them.
            Known::ProxyStatus => {
                if !speaks_for_us(field.value) {
                    put_line(out, fields, &field);
                }
            }
            Known::Connection
            | Known::Http2Settings
            | Known::KeepAlive
            | Known::ProxyAuthenticate
            | Known::ProxyAuthenticationInfo
            | Known::ProxyAuthorization
            | Known::ProxyConnection
            | Known::Te
            | Known::XExeatError => {}
            Known::Accept | Known::Expect | Known::Host | Known::MaxForwards | Known::Other => {
                put_line(out, fields, &field);
            }
        }
    }
    if chunked && !coding_is_said {
        put(out, &[b"Transfer-Encoding: chunked\r\n"]);
    }
    let mut options = Options::default();
    if names_protocol && fields.has(Known::Upgrade) {
        options.add("Upgrade");
    }
    if client == Persistence::Close {
        options.add("close");
    }
    options.put(out);
    put_via(out, via, answer.version);
    put(out, &[b"\r\n"]);
}

/// Whether a `Proxy-Status` (RFC 9209) has a member of our name. A comma in a quoted string is taken for one that
/// separates: too much is dropped rather than too little.
pub(super) fn speaks_for_us(value: &[u8]) -> bool {
    super::fields::members(value).any(|member| {
        let name = member.strip_prefix(b"\"").unwrap_or(member);
        name.get(..5).is_some_and(|name| name.eq_ignore_ascii_case(b"exeat"))
            && name.get(5).is_none_or(|&next| !super::syntax::is_token_byte(next))
    })
}

/// The members of a `Connection` field of ours.
#[derive(Default)]
struct Options(Vec<&'static str>);

impl Options {
    fn add(&mut self, option: &'static str) {
        self.0.push(option);
    }

    fn put(&self, out: &mut Vec<u8>) {
        if !self.0.is_empty() {
            put(out, &[b"Connection: ", self.0.join(", ").as_bytes(), b"\r\n"]);
        }
    }
}

fn put(out: &mut Vec<u8>, parts: &[&[u8]]) {
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// The line as it came, unless `Connection` makes it one for this hop.
fn put_line(out: &mut Vec<u8>, fields: &Fields, field: &Field<'_>) {
    if !fields.connection_lists(field.name) {
        put(out, &[field.line, b"\r\n"]);
    }
}

/// `received` is the version of the message as it came in.
fn put_via(out: &mut Vec<u8>, via: Via, received: Version) {
    match (via, received) {
        (Via::Omit, _) => {}
        (Via::Add, Version::Http10) => put(out, &[b"Via: 1.0 exeat\r\n"]),
        (Via::Add, Version::Http11) => put(out, &[b"Via: 1.1 exeat\r\n"]),
    }
}
