//! A request as the stages after this one see it: checked, and with every question answered that a proxy has.
//!
//! Making one is the second half of parsing: the lines are in order, now they must make sense together. Not here:
//! whether the request may pass (`decide`), and the head that is sent upstream (`rewrite`).

use exeat_config::{Host, Port, Target};

use super::{
    credentials,
    fault::HeadFault,
    fields::{Fields, FramingFault, Known, coding, length, members, trim},
    uri::{self, RequestForm},
};
use crate::{flow::Credentials, limits::MAX_HEADERS};

/// A version this proxy speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// A request method. Names are case-sensitive (RFC 9110 section 9.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Method {
    /// CONNECT.
    Connect,
    /// DELETE.
    Delete,
    /// GET.
    Get,
    /// HEAD.
    Head,
    /// OPTIONS.
    Options,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// TRACE.
    Trace,
    /// Any other token.
    Other(Box<str>),
}

impl Method {
    fn new(name: &str) -> Self {
        match name {
            "CONNECT" => Self::Connect,
            "DELETE" => Self::Delete,
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "OPTIONS" => Self::Options,
            "POST" => Self::Post,
            "PUT" => Self::Put,
            "TRACE" => Self::Trace,
            other => Self::Other(other.into()),
        }
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Connect => "CONNECT",
            Self::Delete => "DELETE",
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Options => "OPTIONS",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Trace => "TRACE",
            Self::Other(name) => name,
        }
    }

    /// Whether a second, identical request has no further effect (RFC 9110 section 9.2.2).
    pub const fn is_idempotent(&self) -> bool {
        match self {
            Self::Delete | Self::Get | Self::Head | Self::Options | Self::Put | Self::Trace => true,
            Self::Connect | Self::Post | Self::Other(_) => false,
        }
    }
}

/// How the end of a request's body is found (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// So many bytes.
    Length(u64),
    /// Chunks.
    Chunked,
}

/// A valid request to a proxy.
#[derive(Debug, Clone)]
pub struct Request {
    /// What is to be done.
    pub method: Method,
    /// To what.
    pub form: RequestForm,
    /// In which version the client speaks.
    pub version: Version,
    /// What the client presents to the proxy.
    pub credentials: Credentials,
    /// How the end of the body is found.
    pub body: Framing,
    /// Whether the client would send another request on this connection.
    pub keep_alive: bool,
    /// Whether the client waits for a `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// The protocols the client would change to (`websocket`), as it wrote them. Never `h2c`: what goes through
    /// such a connection are requests of their own, which nobody would judge.
    pub upgrade: Option<Box<str>>,
    /// Whether the client would read a refusal in JSON.
    pub accepts_json: bool,
    /// `Max-Forwards`, on OPTIONS and TRACE alone (RFC 9110 section 7.6.2).
    pub max_forwards: Option<u32>,
    fields: Fields,
}

/// A request in absolute form: one that can be forwarded.
#[derive(Debug, Clone, Copy)]
pub struct Plain<'a> {
    /// The request.
    pub request: &'a Request,
    /// Where to.
    pub target: &'a Target,
    /// What the origin is asked for: a path, or `*`.
    pub path_and_query: &'a [u8],
}

impl Request {
    pub(super) fn from_tokens(
        method: &str,
        target: &str,
        version: Version,
        mut fields: Fields,
    ) -> Result<Self, HeadFault> {
        let method = Method::new(method);
        let form = uri::parse(&method, target.as_bytes())?;
        check_host(&fields, &form, version)?;
        let body = framing(&fields, &form, version)?;
        check_connection(&fields)?;
        let max_forwards = max_forwards(&fields, &method)?;
        let credentials = credentials::read(&fields);
        fields.wipe(Known::ProxyAuthorization);
        Ok(Self {
            keep_alive: keep_alive(&fields, &form, version),
            expects_continue: version == Version::Http11
                && fields.members(Known::Expect).any(|e| e.eq_ignore_ascii_case(b"100-continue")),
            upgrade: upgrade(&fields, version),
            accepts_json: accepts_json(&fields),
            method,
            form,
            version,
            credentials,
            body,
            max_forwards,
            fields,
        })
    }

    /// The request as one to forward; `None` for a CONNECT and for `OPTIONS *`.
    pub fn as_plain(&self) -> Option<Plain<'_>> {
        match &self.form {
            RequestForm::Absolute { target, path_and_query } => {
                Some(Plain { request: self, target, path_and_query })
            }
            RequestForm::Authority(_) | RequestForm::Asterisk => None,
        }
    }

    /// Where it wants to go; `None` for `OPTIONS *`, which is for the proxy itself.
    pub fn target(&self) -> Option<&Target> {
        match &self.form {
            RequestForm::Authority(target) | RequestForm::Absolute { target, .. } => Some(target),
            RequestForm::Asterisk => None,
        }
    }

    /// Whether `TE` says that the client takes trailers.
    pub(crate) fn takes_trailers(&self) -> bool {
        self.fields.members(Known::Te).any(|coding| coding.eq_ignore_ascii_case(b"trailers"))
    }

    pub(crate) fn fields(&self) -> &Fields {
        &self.fields
    }
}

/// RFC 9112 section 3.2: exactly one valid `Host`, but for HTTP/1.0, which may have none.
fn check_host(fields: &Fields, form: &RequestForm, version: Version) -> Result<(), HeadFault> {
    let mut values = fields.all(Known::Host);
    let value = match (values.next(), values.next()) {
        (None, _) if version == Version::Http10 => return Ok(()),
        (None, _) => return Err(HeadFault::HostMissing),
        (Some(_), Some(_)) => return Err(HeadFault::HostRepeated),
        (Some(value), None) => value,
    };
    match form {
        RequestForm::Authority(target) => match parse_host(value) {
            None => Err(HeadFault::HostInvalid),
            Some((host, port)) if host == target.host && port_matches(port, target.port) => Ok(()),
            Some(_) => Err(HeadFault::HostDiffers),
        },
        // It is rebuilt from the target, whatever it says; it must be one all the same. Without an authority in
        // the URL an empty one is right.
        RequestForm::Absolute { .. } | RequestForm::Asterisk => {
            (value.is_empty() || parse_host(value).is_some()).then_some(()).ok_or(HeadFault::HostInvalid)
        }
    }
}

/// `host[:port]`.
fn parse_host(value: &[u8]) -> Option<(Host, Option<Port>)> {
    if let Ok(target) = Target::parse_authority(value) {
        return Some((target.host, Some(target.port)));
    }
    // An address in brackets has colons of its own.
    let is_bare = !value.contains(&b':') || (value.starts_with(b"[") && value.ends_with(b"]"));
    is_bare.then(|| Host::parse_bytes(value).ok()).flatten().map(|host| (host, None))
}

/// Java and some npm agents leave the port out of a CONNECT's `Host` when it is the default of the scheme they
/// have in mind.
fn port_matches(port: Option<Port>, target: Port) -> bool {
    port.map_or(matches!(target.get(), 80 | 443), |port| port == target)
}

fn framing(fields: &Fields, form: &RequestForm, version: Version) -> Result<Framing, HeadFault> {
    let has_length = fields.has(Known::ContentLength);
    let has_coding = fields.has(Known::TransferEncoding);
    if matches!(form, RequestForm::Authority(_)) && (has_length || has_coding) {
        return Err(HeadFault::ConnectBody);
    }
    if has_coding {
        if has_length {
            return Err(FramingFault::LengthAndCoding.into());
        }
        if version == Version::Http10 {
            return Err(FramingFault::CodingInOldVersion.into());
        }
        coding(fields)?;
        return Ok(Framing::Chunked);
    }
    let mut lengths = fields.all(Known::ContentLength);
    match (lengths.next(), lengths.next()) {
        (None, _) => Ok(Framing::None),
        (Some(value), None) => Ok(Framing::Length(length(value)?)),
        // Also when they are the same: RFC 9112 section 6.3, rule 5, and no client has reason to.
        (Some(_), Some(_)) => Err(FramingFault::ManyLengths.into()),
    }
}

/// Headers that are for the origin. A `Connection` that lists one would have the proxy take it out of the request.
const END_TO_END: [&str; 12] = [
    "Authorization",
    "Cache-Control",
    "Content-Encoding",
    "Content-Length",
    "Content-Type",
    "Cookie",
    "Expect",
    "Host",
    "Max-Forwards",
    "Range",
    "Transfer-Encoding",
    "Via",
];

/// Whether a `Connection` option is the name of a header that is for the origin.
pub(super) fn end_to_end(option: &[u8]) -> Option<&'static str> {
    END_TO_END.into_iter().find(|name| option.eq_ignore_ascii_case(name.as_bytes()))
}

fn check_connection(fields: &Fields) -> Result<(), HeadFault> {
    if fields.connection_options() > MAX_HEADERS {
        return Err(HeadFault::TooManyConnectionOptions);
    }
    let listed = fields.members(Known::Connection).find_map(end_to_end);
    listed.map_or(Ok(()), |name| Err(HeadFault::ConnectionOption(name)))
}

fn keep_alive(fields: &Fields, form: &RequestForm, version: Version) -> bool {
    let says = |option: &[u8]| {
        [Known::Connection, Known::ProxyConnection]
            .into_iter()
            .any(|known| fields.members(known).any(|o| o.eq_ignore_ascii_case(option)))
    };
    match version {
        Version::Http11 => !says(b"close"),
        // RFC 9112 section 9.3: a proxy keeps no connection with an HTTP/1.0 client. A CONNECT is another matter:
        // nothing is forwarded before it succeeds, and ncat comes back with credentials on the same connection.
        Version::Http10 => {
            matches!(form, RequestForm::Authority(_)) && says(b"keep-alive") && !says(b"close")
        }
    }
}

fn upgrade(fields: &Fields, version: Version) -> Option<Box<str>> {
    // RFC 9110 section 7.8: ignored in HTTP/1.0, and without its connection option.
    if version == Version::Http10 || !fields.connection_lists(b"upgrade") {
        return None;
    }
    let mut protocols = String::new();
    for protocol in fields.members(Known::Upgrade) {
        let protocol = std::str::from_utf8(protocol).ok().filter(|protocol| protocol.is_ascii())?;
        if protocol.to_ascii_lowercase().starts_with("h2c") {
            return None;
        }
        if !protocols.is_empty() {
            protocols.push_str(", ");
        }
        protocols.push_str(protocol);
    }
    (!protocols.is_empty()).then(|| protocols.into())
}

fn accepts_json(fields: &Fields) -> bool {
    fields.all(Known::Accept).flat_map(members).any(|range| {
        let kind = trim(range.split(|&b| b == b';').next().unwrap_or_default()).to_ascii_lowercase();
        kind == b"application/json" || (kind.starts_with(b"application/") && kind.ends_with(b"+json"))
    })
}

fn max_forwards(fields: &Fields, method: &Method) -> Result<Option<u32>, HeadFault> {
    if !matches!(method, Method::Options | Method::Trace) {
        return Ok(None);
    }
    let mut values = fields.all(Known::MaxForwards);
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            let hops = length(value).map_err(|_| HeadFault::MaxForwards)?;
            Ok(Some(u32::try_from(hops).unwrap_or(u32::MAX)))
        }
        (Some(_), Some(_)) => Err(HeadFault::MaxForwards),
    }
}
