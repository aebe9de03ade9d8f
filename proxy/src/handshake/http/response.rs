//! Strict parsing of an origin's response head, and how the end of its body is found.
//!
//! An origin is no more trusted than a client: what it says is passed on to someone whose parser we do not know.
//! Bytes that could be read in two ways are a bad answer, not a matter for interpretation.

use std::{fmt, mem::MaybeUninit};

use super::{
    fields::{Fields, FramingFault, Known, coding, length, trim},
    request::{Framing, Method, Version, end_to_end},
    syntax::{FieldScan, SyntaxFault, is_value_byte, value_fault},
};
use crate::limits::{MAX_HEAD, MAX_HEADERS};

/// Why a response head is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerFault {
    /// The bytes are not lines of HTTP/1.
    Syntax(SyntaxFault),
    /// The first line is not `HTTP/1.1 200 reason`.
    StatusLine,
    /// A version other than HTTP/1.0 and HTTP/1.1.
    Version,
    /// A head of more than [`MAX_HEAD`] bytes.
    TooLarge,
    /// The body's length could be told in two ways.
    Framing(FramingFault),
    /// `Connection` lists a header that is meant for the client.
    ConnectionOption(&'static str),
    /// `Connection` lists more options than any origin has reason to.
    TooManyConnectionOptions,
    /// `101 Switching Protocols` to a request that offered none, or before its body was sent.
    UnaskedUpgrade,
    /// A head that the upstream did not finish.
    Cut,
}

/// A predicate, to be put behind the name of the upstream.
impl fmt::Display for AnswerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(fault) => write!(f, "sent an answer that {fault}"),
            Self::StatusLine => f.write_str("sent an answer that does not start as HTTP/1.1 does"),
            Self::Version => f.write_str("sent an answer in another version than HTTP/1.1 and HTTP/1.0"),
            Self::TooLarge => write!(f, "sent an answer with headers of more than {MAX_HEAD} bytes"),
            Self::Framing(fault) => write!(f, "sent an answer that {fault}"),
            Self::ConnectionOption(name) => write!(f, "sent an answer whose Connection header lists {name}"),
            Self::TooManyConnectionOptions => {
                write!(f, "sent an answer whose Connection header lists more than {MAX_HEADERS} options")
            }
            Self::UnaskedUpgrade => f.write_str("changed the protocol without being asked to"),
            Self::Cut => f.write_str("closed the connection in the middle of its answer's headers"),
        }
    }
}

impl std::error::Error for AnswerFault {}

impl From<SyntaxFault> for AnswerFault {
    fn from(fault: SyntaxFault) -> Self {
        Self::Syntax(fault)
    }
}

impl From<FramingFault> for AnswerFault {
    fn from(fault: FramingFault) -> Self {
        Self::Framing(fault)
    }
}

/// How the end of a response's body is found (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerFraming {
    /// By what the head says.
    Known(Framing),
    /// By the end of the connection.
    UntilClose,
}

/// A valid response head.
#[derive(Debug, Clone)]
pub struct Answer {
    /// 100 to 999.
    pub status: u16,
    /// The origin's version.
    pub version: Version,
    /// How the end of the body is found.
    pub framing: AnswerFraming,
    /// Whether the origin would take another request on this connection.
    pub keep_alive: bool,
    /// `Content-Length`, also where there is no body: in an answer to HEAD it is what GET would have.
    pub(super) length: Option<u64>,
    fields: Fields,
}

impl Answer {
    /// Whether another head follows: 1xx, but not `101 Switching Protocols`.
    pub const fn is_interim(&self) -> bool {
        matches!(self.status, 100 | 102..=199)
    }

    pub(crate) fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The reason phrase as it came.
    pub(super) fn reason(&self) -> &[u8] {
        // `HTTP/1.1 200 ` has 13 bytes; without a reason the last space may be missing.
        self.fields.first_line().get(13..).unwrap_or_default()
    }
}

/// What some bytes are.
#[derive(Debug, Clone)]
pub enum ParsedAnswer {
    /// The start of a head, in order so far.
    Incomplete,
    /// A head, and how many bytes it has.
    Complete(Answer, usize),
}

/// Parses a response head that is there as a whole, or finds that it is not.
pub fn parse(bytes: &[u8], method: &Method) -> Result<ParsedAnswer, AnswerFault> {
    AnswerReader::new().advance(bytes, method)
}

/// Where in the status line a scan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// This many bytes of `HTTP/1.1 200`.
    Start(u8),
    StatusEnd,
    Reason,
    LineLf,
    Fields,
}

/// Reads one response head out of a growing buffer.
#[derive(Debug, Clone)]
pub struct AnswerReader {
    at: At,
    pos: usize,
    fields: FieldScan,
}

impl Default for AnswerReader {
    fn default() -> Self {
        Self::new()
    }
}

impl AnswerReader {
    /// A reader for the head that comes next.
    pub const fn new() -> Self {
        Self { at: At::Start(0), pos: 0, fields: FieldScan::new() }
    }

    /// Looks at `bytes`: those of the last call, and possibly more behind them. `method` is the request's.
    ///
    /// When this gives `Complete` or a fault, the reader is spent.
    pub fn advance(&mut self, bytes: &[u8], method: &Method) -> Result<ParsedAnswer, AnswerFault> {
        let window = &bytes[..bytes.len().min(MAX_HEAD)];
        if self.scan(window)? {
            return Ok(ParsedAnswer::Complete(tokenize(&window[..self.pos], method)?, self.pos));
        }
        if self.pos >= MAX_HEAD { Err(AnswerFault::TooLarge) } else { Ok(ParsedAnswer::Incomplete) }
    }

    fn scan(&mut self, bytes: &[u8]) -> Result<bool, AnswerFault> {
        while self.at != At::Fields {
            let Some(&byte) = bytes.get(self.pos) else { return Ok(false) };
            self.at = self.step(byte)?;
            self.pos += 1;
        }
        Ok(self.fields.advance(bytes, &mut self.pos)?)
    }

    fn step(&self, byte: u8) -> Result<At, AnswerFault> {
        Ok(match self.at {
            At::Start(seen) => {
                let expected = match seen {
                    // Any digit: whether the version is one of ours is said below, in its own words.
                    5 | 7 | 10 | 11 => byte.is_ascii_digit(),
                    9 => matches!(byte, b'1'..=b'9'),
                    _ => b"HTTP/_._ ".get(usize::from(seen)) == Some(&byte),
                };
                match seen {
                    _ if !expected => return Err(AnswerFault::StatusLine),
                    5 if byte != b'1' => return Err(AnswerFault::Version),
                    7 if byte > b'1' => return Err(AnswerFault::Version),
                    11 => At::StatusEnd,
                    _ => At::Start(seen + 1),
                }
            }
            // RFC 9112 section 4 wants the space even before an empty reason; several servers leave it out.
            At::StatusEnd => match byte {
                b' ' => At::Reason,
                b'\r' => At::LineLf,
                _ => return Err(AnswerFault::StatusLine),
            },
            At::Reason => match byte {
                b'\r' => At::LineLf,
                _ if is_value_byte(byte) => At::Reason,
                _ => return Err(value_fault(byte).into()),
            },
            At::LineLf if byte == b'\n' => At::Fields,
            At::LineLf => return Err(SyntaxFault::BareCr.into()),
            At::Fields => At::Fields,
        })
    }
}

fn tokenize(head: &[u8], method: &Method) -> Result<Answer, AnswerFault> {
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut tokens = httparse::Response::new(&mut []);
    let parsed =
        httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut tokens, head, &mut headers);
    match parsed {
        Ok(httparse::Status::Complete(length)) if length == head.len() => {}
        Ok(_) | Err(_) => return Err(AnswerFault::StatusLine),
    }
    let (Some(status), Some(minor)) = (tokens.code, tokens.version) else {
        return Err(AnswerFault::StatusLine);
    };
    let version = if minor == 0 { Version::Http10 } else { Version::Http11 };
    let fields = Fields::new(head, tokens.headers);
    if fields.connection_options() > MAX_HEADERS {
        return Err(AnswerFault::TooManyConnectionOptions);
    }
    if let Some(name) = fields.members(Known::Connection).find_map(end_to_end) {
        return Err(AnswerFault::ConnectionOption(name));
    }
    let length = content_length(&fields)?;
    let framing = framing(&fields, length, status, version, method)?;
    let keep_alive = version == Version::Http11
        && framing != AnswerFraming::UntilClose
        && !fields.connection_lists(b"close");
    Ok(Answer { status, version, framing, keep_alive, length, fields })
}

/// One length, however often it is said: some origins do repeat it (RFC 9112 section 6.3, rule 5).
fn content_length(fields: &Fields) -> Result<Option<u64>, FramingFault> {
    let mut known = None;
    for value in fields.all(Known::ContentLength).flat_map(|value| value.split(|&b| b == b',')) {
        let length = length(trim(value))?;
        if known.is_some_and(|known| known != length) {
            return Err(FramingFault::ManyLengths);
        }
        known = Some(length);
    }
    Ok(known)
}

fn framing(
    fields: &Fields,
    length: Option<u64>,
    status: u16,
    version: Version,
    method: &Method,
) -> Result<AnswerFraming, FramingFault> {
    let has_coding = fields.has(Known::TransferEncoding);
    if has_coding {
        if length.is_some() {
            return Err(FramingFault::LengthAndCoding);
        }
        if version == Version::Http10 {
            return Err(FramingFault::CodingInOldVersion);
        }
        coding(fields)?;
    }
    let has_no_body = match status {
        100..=199 | 204 | 304 => true,
        200..=299 if *method == Method::Connect => true,
        _ => *method == Method::Head,
    };
    Ok(match length {
        _ if has_no_body => AnswerFraming::Known(Framing::None),
        _ if has_coding => AnswerFraming::Known(Framing::Chunked),
        Some(length) => AnswerFraming::Known(Framing::Length(length)),
        None => AnswerFraming::UntilClose,
    })
}
