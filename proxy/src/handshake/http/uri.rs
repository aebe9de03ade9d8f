//! The request target (RFC 9112 section 3.2), in the forms that a proxy takes.

use exeat_config::{Port, Target, target::TargetError};

use super::{fault::HeadFault, request::Method};

/// What a request asks for. There is no origin-form (`/path`): a proxy cannot know whose path it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestForm {
    /// `host:port`, of a CONNECT.
    Authority(Target),
    /// `http://host:port/path?query`.
    Absolute {
        /// Where to; the port is 80 when none is written.
        target: Target,
        /// What to ask the origin for: never empty, starts with `/`, or is `*`.
        path_and_query: Box<[u8]>,
    },
    /// `OPTIONS *`: a question to the proxy itself.
    Asterisk,
}

/// The default port of `http` URLs.
const HTTP: Port = match Port::new(80) {
    Some(port) => port,
    None => panic!("80 is a port"),
};

/// How much of an authority is shown again.
const SHOWN: usize = 40;

pub(super) fn parse(method: &Method, target: &[u8]) -> Result<RequestForm, HeadFault> {
    if *method == Method::Connect {
        return authority(target).map(RequestForm::Authority);
    }
    if target == b"*" && *method == Method::Options {
        return Ok(RequestForm::Asterisk);
    }
    if target.starts_with(b"/") {
        return Err(HeadFault::OriginForm);
    }
    let colon = target.iter().position(|&b| b == b':').ok_or(HeadFault::TargetForm)?;
    let (scheme, rest) = target.split_at(colon);
    let rest = rest.strip_prefix(b"://").ok_or(HeadFault::TargetForm)?;
    if scheme.eq_ignore_ascii_case(b"https") {
        return Err(HeadFault::HttpsScheme);
    }
    if !scheme.eq_ignore_ascii_case(b"http") {
        return Err(HeadFault::OtherScheme(exeat_config::escape::escape(scheme, 20)));
    }
    if rest.contains(&b'#') {
        return Err(HeadFault::Fragment);
    }
    let end = rest.iter().position(|b| matches!(b, b'/' | b'?')).unwrap_or(rest.len());
    let (written, path) = rest.split_at(end);
    let path_and_query = match path.first() {
        // RFC 9112 section 3.2.4: the last proxy asks for `*` when the URL has neither path nor query.
        None if *method == Method::Options => b"*".as_slice().into(),
        None => b"/".as_slice().into(),
        Some(b'?') => [b"/", path].concat().into(),
        Some(_) => path.into(),
    };
    Ok(RequestForm::Absolute { target: http_authority(written)?, path_and_query })
}

fn authority(written: &[u8]) -> Result<Target, HeadFault> {
    Target::parse_authority(written).map_err(|why| fault(written, why))
}

/// An authority of an `http` URL, which has a default port. A colon without a port behind it is refused: RFC 3986
/// allows it, nobody sends it, and parsers differ on it.
fn http_authority(written: &[u8]) -> Result<Target, HeadFault> {
    let has_colon = match written.iter().position(|&b| b == b']') {
        Some(bracket) => written[bracket..].contains(&b':'),
        None => written.contains(&b':'),
    };
    if has_colon || written.contains(&b'@') {
        return authority(written);
    }
    match exeat_config::Host::parse_bytes(written) {
        Ok(host) => Ok(Target { host, port: HTTP }),
        Err(why) => Err(fault(written, why.into())),
    }
}

fn fault(written: &[u8], why: TargetError) -> HeadFault {
    match why {
        TargetError::Url => HeadFault::TargetForm,
        TargetError::UserInfo => HeadFault::Userinfo,
        TargetError::NoPort | TargetError::BadPort | TargetError::Unbracketed | TargetError::Host(_) => {
            HeadFault::Target { shown: exeat_config::escape::escape(written, SHOWN), why }
        }
    }
}
