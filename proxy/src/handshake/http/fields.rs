//! A parsed head: its bytes, and where in them each field is.
//!
//! The bytes stay as they came, so that what is forwarded can be forwarded exactly. Which fields matter to a proxy
//! is found out once, here, without regard to case.

use std::ops::Range;

use super::syntax::is_token;

/// The fields that this proxy looks at. Every other one is [`Known::Other`] and passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    Accept,
    Connection,
    ContentLength,
    Expect,
    Host,
    Http2Settings,
    KeepAlive,
    MaxForwards,
    ProxyAuthenticate,
    ProxyAuthenticationInfo,
    ProxyAuthorization,
    ProxyConnection,
    ProxyStatus,
    Te,
    TransferEncoding,
    Upgrade,
    XExeatError,
    Other,
}

const NAMES: [(&str, Known); 17] = [
    ("accept", Known::Accept),
    ("connection", Known::Connection),
    ("content-length", Known::ContentLength),
    ("expect", Known::Expect),
    ("host", Known::Host),
    ("http2-settings", Known::Http2Settings),
    ("keep-alive", Known::KeepAlive),
    ("max-forwards", Known::MaxForwards),
    ("proxy-authenticate", Known::ProxyAuthenticate),
    ("proxy-authentication-info", Known::ProxyAuthenticationInfo),
    ("proxy-authorization", Known::ProxyAuthorization),
    ("proxy-connection", Known::ProxyConnection),
    ("proxy-status", Known::ProxyStatus),
    ("te", Known::Te),
    ("transfer-encoding", Known::TransferEncoding),
    ("upgrade", Known::Upgrade),
    ("x-exeat-error", Known::XExeatError),
];

impl Known {
    pub(crate) fn of(name: &[u8]) -> Self {
        NAMES
            .iter()
            .find(|(known, _)| known.len() == name.len() && name.eq_ignore_ascii_case(known.as_bytes()))
            .map_or(Self::Other, |(_, known)| *known)
    }
}

/// One field line of a head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field<'a> {
    pub(crate) known: Known,
    pub(crate) name: &'a [u8],
    /// Without the white space around it.
    pub(crate) value: &'a [u8],
    /// The whole line as it came, without its CRLF.
    pub(crate) line: &'a [u8],
}

#[derive(Debug, Clone)]
struct Span {
    known: Known,
    name: Range<usize>,
    value: Range<usize>,
}

/// The bytes of a head and its fields, in order.
#[derive(Clone)]
pub(crate) struct Fields {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl Fields {
    /// `headers` must be slices of `bytes`, as a tokenizer gives them.
    pub(super) fn new(bytes: &[u8], headers: &[httparse::Header<'_>]) -> Self {
        let base = bytes.as_ptr() as usize;
        let spans = headers
            .iter()
            .map(|header| {
                let name_start = header.name.as_ptr() as usize - base;
                let name = name_start..name_start + header.name.len();
                let value = trim(header.value);
                // An empty slice need not point into `bytes`.
                let value_start =
                    if value.is_empty() { name.end + 1 } else { value.as_ptr() as usize - base };
                Span {
                    known: Known::of(header.name.as_bytes()),
                    name,
                    value: value_start..value_start + value.len(),
                }
            })
            .collect();
        Self { bytes: bytes.to_vec(), spans }
    }

    /// The first line, without its CRLF.
    pub(crate) fn first_line(&self) -> &[u8] {
        let end = self.bytes.iter().position(|&b| b == b'\r').unwrap_or(self.bytes.len());
        &self.bytes[..end]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.spans.iter().map(move |span| {
            let rest = &self.bytes[span.name.start..];
            let end = rest.iter().position(|&b| b == b'\r').unwrap_or(rest.len());
            Field {
                known: span.known,
                name: &self.bytes[span.name.clone()],
                value: &self.bytes[span.value.clone()],
                line: &rest[..end],
            }
        })
    }

    /// The values of all fields of one name.
    pub(crate) fn all(&self, known: Known) -> impl Iterator<Item = &[u8]> {
        self.spans
            .iter()
            .filter(move |span| span.known == known)
            .map(move |span| &self.bytes[span.value.clone()])
    }

    /// Whether any field has this name.
    pub(crate) fn has(&self, known: Known) -> bool {
        self.spans.iter().any(|span| span.known == known)
    }

    /// The members of a comma-separated field, all its lines together.
    pub(crate) fn members(&self, known: Known) -> impl Iterator<Item = &[u8]> {
        self.all(known).flat_map(members)
    }

    /// How many options `Connection` has, empty ones included. Each field of a head is looked for among them.
    pub(super) fn connection_options(&self) -> usize {
        self.all(Known::Connection).map(|value| value.split(|&b| b == b',').count()).sum()
    }

    /// Whether a `Connection` field lists this name.
    pub(crate) fn connection_lists(&self, name: &[u8]) -> bool {
        self.members(Known::Connection).any(|option| option.eq_ignore_ascii_case(name))
    }

    /// Overwrites the values of a field with asterisks: a secret that was read need not stay.
    pub(super) fn wipe(&mut self, known: Known) {
        for span in self.spans.iter().filter(|span| span.known == known) {
            self.bytes[span.value.clone()].fill(b'*');
        }
    }
}

/// Shows the names alone: values have secrets in them.
impl std::fmt::Debug for Fields {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.spans.iter().map(|span| String::from_utf8_lossy(&self.bytes[span.name.clone()])))
            .finish()
    }
}

/// The members of a comma-separated list; empty ones are skipped (RFC 9110 section 5.6.1.2).
pub(crate) fn members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&b| b == b',').map(trim).filter(|member| !member.is_empty())
}

/// Without the white space around it.
pub(crate) fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// Why the length of a body cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FramingFault {
    /// `Content-Length` together with `Transfer-Encoding` (RFC 9112 section 6.3, rule 3).
    LengthAndCoding,
    /// A `Content-Length` that is not one decimal number.
    BadLength,
    /// Several `Content-Length`s.
    ManyLengths,
    /// A `Transfer-Encoding` that is not valid, or does not end in one `chunked`.
    BadCoding,
    /// A transfer coding other than `chunked`.
    UnknownCoding,
    /// A `Transfer-Encoding` in HTTP/1.0, which has none (RFC 9112 section 6.1).
    CodingInOldVersion,
}

/// A predicate, as in [`SyntaxFault`](super::SyntaxFault).
impl std::fmt::Display for FramingFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::LengthAndCoding => "has both a Content-Length and a Transfer-Encoding",
            Self::BadLength => "has a Content-Length that is not a decimal number",
            Self::ManyLengths => "has more than one Content-Length",
            Self::BadCoding => "has a Transfer-Encoding that is not `chunked`",
            Self::UnknownCoding => "has a transfer coding other than `chunked`",
            Self::CodingInOldVersion => "has a Transfer-Encoding, which HTTP/1.0 does not know",
        })
    }
}

/// `Content-Length`: digits and nothing else, and no more than fits.
pub(super) fn length(value: &[u8]) -> Result<u64, FramingFault> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(FramingFault::BadLength);
    }
    value
        .iter()
        .try_fold(0u64, |sum, digit| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
        .ok_or(FramingFault::BadLength)
}

/// `Transfer-Encoding`, all lines together: nothing but one `chunked` is taken.
pub(super) fn coding(fields: &Fields) -> Result<(), FramingFault> {
    let mut chunked = false;
    let mut unknown = false;
    // Not `members`: an empty member is a sign of someone who tries what a recipient makes of it.
    for member in fields.all(Known::TransferEncoding).flat_map(|value| value.split(|&b| b == b',')) {
        let member = trim(member);
        if !is_token(member) || chunked {
            return Err(FramingFault::BadCoding);
        }
        if member.eq_ignore_ascii_case(b"chunked") {
            chunked = true;
        } else {
            unknown = true;
        }
    }
    if unknown { Err(FramingFault::UnknownCoding) } else { Ok(()) }
}
