//! Answers that the proxy gives itself, to a permitted request: `OPTIONS *`, and OPTIONS and TRACE that may go no
//! further (RFC 9110 section 7.6.2).

use super::{
    fields::Known,
    request::{Framing, Method, Request},
    uri::RequestForm,
};

/// The whole answer, when the request is one that the proxy answers itself. `None`: forward it.
///
/// The connection goes on after it as [`Request::keep_alive`] says, but not when the request has a body: that is
/// not read.
pub fn answer(request: &Request) -> Option<Vec<u8>> {
    let for_us = request.form == RequestForm::Asterisk || request.max_forwards == Some(0);
    let (kind, body) = match request.method {
        Method::Options if for_us => (None, Vec::new()),
        Method::Trace if for_us => (Some("message/http"), reflection(request)),
        _ => return None,
    };
    let mut out = Vec::with_capacity(160 + body.len());
    out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    match kind {
        Some(kind) => out.extend_from_slice(format!("Content-Type: {kind}\r\n").as_bytes()),
        None => {
            out.extend_from_slice(b"Allow: GET, HEAD, POST, PUT, DELETE, CONNECT, OPTIONS, TRACE, PATCH\r\n");
        }
    }
    out.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    if !goes_on(request) {
        out.extend_from_slice(b"Connection: close\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(&body);
    Some(out)
}

/// Whether the connection can take another request after [`answer`].
pub fn goes_on(request: &Request) -> bool {
    request.keep_alive && matches!(request.body, Framing::None | Framing::Length(0))
}

/// The request as it came, without what is secret in it (RFC 9110 section 9.3.8).
fn reflection(request: &Request) -> Vec<u8> {
    let fields = request.fields();
    let mut out = [fields.first_line(), b"\r\n"].concat();
    for field in fields.iter() {
        let is_secret = field.known == Known::ProxyAuthorization
            || field.name.eq_ignore_ascii_case(b"authorization")
            || field.name.eq_ignore_ascii_case(b"cookie");
        if !is_secret {
            out.extend_from_slice(field.line);
            out.extend_from_slice(b"\r\n");
        }
    }
    out.extend_from_slice(b"\r\n");
    out
}
