//! Why a request head is refused: the status it gets and the sentence for the person who sent it.
//!
//! Not here: how the refusal is written to the wire (`reply`).

use std::borrow::Cow;

use exeat_config::target::TargetError;

use super::{fields::FramingFault, syntax::SyntaxFault};
use crate::{
    decide::Reason,
    failure::Failure,
    limits::{MAX_HEAD, MAX_HEADERS, MAX_METHOD, MAX_URI},
};

/// Why a request head is refused. After any of these the connection is closed: where the next request starts is
/// not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeadFault {
    /// The bytes are not lines of HTTP/1.
    Syntax(SyntaxFault),
    /// The first line is not `METHOD target HTTP/1.1`.
    RequestLine,
    /// A method of more than [`MAX_METHOD`] bytes.
    MethodTooLong,
    /// A request target of more than [`MAX_URI`] bytes.
    UriTooLong,
    /// A head of more than [`MAX_HEAD`] bytes.
    HeadTooLarge,
    /// A well-formed version other than HTTP/1.0 and HTTP/1.1.
    Version {
        /// The digit before the dot.
        major: u8,
        /// The digit behind it.
        minor: u8,
    },
    /// An HTTP/1.1 request without `Host` (RFC 9112 section 3.2).
    HostMissing,
    /// Several `Host`s.
    HostRepeated,
    /// A `Host` that is not `host[:port]`.
    HostInvalid,
    /// A CONNECT with a `Host` that is not its target.
    HostDiffers,
    /// `GET /path`: a request as to a server, not to a proxy.
    OriginForm,
    /// A target of another form than its method has: `CONNECT http://host/`, `GET host:80`, `GET *`.
    TargetForm,
    /// `https://…` outside a tunnel.
    HttpsScheme,
    /// Any other scheme, escaped.
    OtherScheme(String),
    /// `http://user@host/` (RFC 9110 section 4.2.4). Not shown again: it may be a secret.
    Userinfo,
    /// A `#fragment`, which is never sent (RFC 9112 section 3.2).
    Fragment,
    /// The host or port asked for is not one.
    Target {
        /// What was asked for, escaped.
        shown: String,
        /// What is wrong with it.
        why: TargetError,
    },
    /// The body's length cannot be told, or could be told in two ways.
    Framing(FramingFault),
    /// A CONNECT that announces a body (RFC 9110 section 9.3.6).
    ConnectBody,
    /// `Connection` lists a header that is meant for the origin; obeying would change the request.
    ConnectionOption(&'static str),
    /// `Connection` lists more options than any client has reason to.
    TooManyConnectionOptions,
    /// A `Max-Forwards` that is not a number, on a method that has it.
    MaxForwards,
}

impl HeadFault {
    /// The status of the answer.
    pub const fn status(&self) -> u16 {
        match self {
            Self::UriTooLong => 414,
            Self::HeadTooLarge | Self::Syntax(SyntaxFault::TooManyFields) => 431,
            Self::Framing(FramingFault::UnknownCoding) => 501,
            Self::Version { .. } => 505,
            Self::Syntax(_)
            | Self::RequestLine
            | Self::MethodTooLong
            | Self::HostMissing
            | Self::HostRepeated
            | Self::HostInvalid
            | Self::HostDiffers
            | Self::OriginForm
            | Self::TargetForm
            | Self::HttpsScheme
            | Self::OtherScheme(_)
            | Self::Userinfo
            | Self::Fragment
            | Self::Target { .. }
            | Self::Framing(_)
            | Self::ConnectBody
            | Self::ConnectionOption(_)
            | Self::TooManyConnectionOptions
            | Self::MaxForwards => 400,
        }
    }

    /// Which of the closed set.
    pub const fn reason(&self) -> Reason {
        match self {
            Self::HttpsScheme | Self::OtherScheme(_) => Reason::Unsupported,
            Self::Target { .. } | Self::Userinfo => Reason::InvalidTarget,
            Self::Syntax(_)
            | Self::RequestLine
            | Self::MethodTooLong
            | Self::UriTooLong
            | Self::HeadTooLarge
            | Self::Version { .. }
            | Self::HostMissing
            | Self::HostRepeated
            | Self::HostInvalid
            | Self::HostDiffers
            | Self::OriginForm
            | Self::TargetForm
            | Self::Fragment
            | Self::Framing(_)
            | Self::ConnectBody
            | Self::ConnectionOption(_)
            | Self::TooManyConnectionOptions
            | Self::MaxForwards => Reason::Malformed,
        }
    }

    /// What is wrong, for a person: ASCII, at most 100 bytes, everything that the peer chose escaped.
    pub fn sentence(&self) -> Cow<'static, str> {
        match self {
            Self::Syntax(fault) => format!("the request {fault}").into(),
            Self::RequestLine => "the request's first line is not `METHOD http://host/path HTTP/1.1`".into(),
            Self::MethodTooLong => format!("the request's method is longer than {MAX_METHOD} bytes").into(),
            Self::UriTooLong => format!("the request's URL is longer than {MAX_URI} bytes").into(),
            Self::HeadTooLarge => format!("the request's headers are larger than {MAX_HEAD} bytes").into(),
            Self::Version { major, minor } => {
                format!("this proxy speaks HTTP/1.1 and HTTP/1.0, not HTTP/{major}.{minor}").into()
            }
            Self::HostMissing => "the request has no Host header".into(),
            Self::HostRepeated => "the request has more than one Host header".into(),
            Self::HostInvalid => "the request's Host header is not `host` or `host:port`".into(),
            Self::HostDiffers => "the request's Host header is not the host of its CONNECT".into(),
            Self::OriginForm => {
                "this is a proxy, not a web server: set it as the proxy of your client".into()
            }
            Self::TargetForm => {
                "the request's target is not the `host:port` or `http://` URL of a proxy request".into()
            }
            Self::HttpsScheme => "an `https://` URL is reached through a tunnel: use CONNECT".into(),
            Self::OtherScheme(scheme) => {
                format!("unsupported scheme `{scheme}`: this proxy forwards `http://`").into()
            }
            Self::Userinfo => "the URL has a user name in it; send it in an Authorization header".into(),
            Self::Fragment => "the URL has a `#fragment`, which is not part of a request".into(),
            Self::Target { shown, why } => {
                let mut sentence = format!("`{shown}` {why}");
                sentence.truncate(MAX_SENTENCE);
                sentence.into()
            }
            Self::Framing(fault) => format!("the request {fault}").into(),
            Self::ConnectBody => "a CONNECT has no body: no Content-Length or Transfer-Encoding".into(),
            Self::ConnectionOption(name) => format!("the Connection header lists {name}").into(),
            Self::TooManyConnectionOptions => {
                format!("the Connection header lists more than {MAX_HEADERS} options").into()
            }
            Self::MaxForwards => "the request's Max-Forwards is not a decimal number".into(),
        }
    }
}

/// A reason phrase has 120 bytes, and the reply needs some for itself.
const MAX_SENTENCE: usize = 100;

impl From<SyntaxFault> for HeadFault {
    fn from(fault: SyntaxFault) -> Self {
        Self::Syntax(fault)
    }
}

impl From<FramingFault> for HeadFault {
    fn from(fault: FramingFault) -> Self {
        Self::Framing(fault)
    }
}

impl From<&HeadFault> for Failure {
    fn from(fault: &HeadFault) -> Self {
        let mut failure = Self::new(fault.reason(), fault.sentence());
        failure.http_status = Some(fault.status());
        failure
    }
}
