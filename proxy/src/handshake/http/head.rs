//! From bytes to a [`Request`]: the strict scan of a request head, and then the tokenizer.
//!
//! The scan is ours, byte by byte: it knows no leniency, refuses a head at the first byte that no valid head has
//! there, and goes on where it stopped when more bytes are there, so that a head that drips in costs no more than
//! one that comes whole. `httparse` then splits what the scan has passed, as a second opinion; `request` gives it
//! meaning. Pure: where bytes come from, and by when, is the caller's.

use std::mem::MaybeUninit;

use super::{
    fault::HeadFault,
    fields::Fields,
    request::{Request, Version},
    syntax::{FieldScan, SyntaxFault, is_target_byte, is_token_byte},
};
use crate::limits::{MAX_HEAD, MAX_HEADERS, MAX_METHOD, MAX_URI};

/// What some bytes are.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "taken apart where it is made, never kept")]
pub enum Parsed {
    /// The start of a head, in order so far.
    Incomplete,
    /// A head, and how many bytes it has (an empty line before it included).
    Complete(Request, usize),
}

/// Parses a head that is there as a whole, or finds that it is not.
pub fn parse(bytes: &[u8]) -> Result<Parsed, HeadFault> {
    HeadReader::new().advance(bytes)
}

/// Where in the first line a scan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Nothing seen.
    Start,
    /// Behind the CR of an empty line before the request.
    EmptyCr,
    /// Behind that line.
    MethodStart,
    Method,
    TargetStart,
    Target,
    /// This many bytes of `HTTP/x.y`.
    Version(u8),
    VersionCr,
    LineLf,
    Fields,
}

/// Reads one head out of a growing buffer.
#[derive(Debug, Clone)]
pub struct HeadReader {
    at: At,
    /// How much was scanned.
    pos: usize,
    method_start: usize,
    target_start: usize,
    version: [u8; 2],
    fields: FieldScan,
}

impl Default for HeadReader {
    fn default() -> Self {
        Self::new()
    }
}

impl HeadReader {
    /// A reader for the head that comes next.
    pub const fn new() -> Self {
        Self {
            at: At::Start,
            pos: 0,
            method_start: 0,
            target_start: 0,
            version: [0; 2],
            fields: FieldScan::new(),
        }
    }

    /// Looks at `bytes`: those of the last call, and possibly more behind them.
    ///
    /// When this gives `Complete` or a fault, the reader is spent.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<Parsed, HeadFault> {
        let window = &bytes[..bytes.len().min(MAX_HEAD)];
        if self.scan(window)? {
            let head = &bytes[self.method_start..self.pos];
            return Ok(Parsed::Complete(self.tokenize(head)?, self.pos));
        }
        if self.pos >= MAX_HEAD { Err(HeadFault::HeadTooLarge) } else { Ok(Parsed::Incomplete) }
    }

    /// True when the head ends at `self.pos`.
    fn scan(&mut self, bytes: &[u8]) -> Result<bool, HeadFault> {
        while self.at != At::Fields {
            let Some(&byte) = bytes.get(self.pos) else { return Ok(false) };
            self.at = self.step(byte)?;
            self.pos += 1;
        }
        Ok(self.fields.advance(bytes, &mut self.pos)?)
    }

    fn step(&mut self, byte: u8) -> Result<At, HeadFault> {
        Ok(match self.at {
            // RFC 9112 section 2.2: one empty line before a request is forgiven.
            At::Start if byte == b'\r' => At::EmptyCr,
            At::EmptyCr if byte == b'\n' => At::MethodStart,
            At::Start | At::MethodStart => match byte {
                _ if is_token_byte(byte) => {
                    self.method_start = self.pos;
                    At::Method
                }
                _ => return Err(line_fault(byte)),
            },
            At::Method => match byte {
                b' ' => At::TargetStart,
                _ if !is_token_byte(byte) => return Err(line_fault(byte)),
                _ if self.pos - self.method_start == MAX_METHOD => return Err(HeadFault::MethodTooLong),
                _ => At::Method,
            },
            At::TargetStart if is_target_byte(byte) => {
                self.target_start = self.pos;
                At::Target
            }
            At::Target => match byte {
                b' ' => At::Version(0),
                _ if !is_target_byte(byte) => return Err(line_fault(byte)),
                _ if self.pos - self.target_start == MAX_URI => return Err(HeadFault::UriTooLong),
                _ => At::Target,
            },
            At::Version(seen) => {
                let expected = match seen {
                    5 | 7 => byte.is_ascii_digit(),
                    _ => b"HTTP/_.".get(usize::from(seen)) == Some(&byte),
                };
                if !expected {
                    return Err(line_fault(byte));
                }
                match seen {
                    5 => self.version[0] = byte - b'0',
                    7 => self.version[1] = byte - b'0',
                    _ => {}
                }
                if seen == 7 { At::VersionCr } else { At::Version(seen + 1) }
            }
            At::VersionCr if byte == b'\r' => At::LineLf,
            At::TargetStart | At::VersionCr => return Err(line_fault(byte)),
            At::LineLf if byte == b'\n' => {
                let [major, minor] = self.version;
                if major != 1 || minor > 1 {
                    return Err(HeadFault::Version { major, minor });
                }
                At::Fields
            }
            At::EmptyCr | At::LineLf => return Err(SyntaxFault::BareCr.into()),
            At::Fields => At::Fields,
        })
    }

    fn tokenize(&self, head: &[u8]) -> Result<Request, HeadFault> {
        let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let mut tokens = httparse::Request::new(&mut []);
        // The scan has passed it; what `httparse` still refuses is a target that is not UTF-8.
        match tokens.parse_with_uninit_headers(head, &mut headers) {
            Ok(httparse::Status::Complete(length)) if length == head.len() => {}
            Ok(_) | Err(_) => return Err(HeadFault::RequestLine),
        }
        let (Some(method), Some(target)) = (tokens.method, tokens.path) else {
            return Err(HeadFault::RequestLine);
        };
        let version = if self.version == [1, 0] { Version::Http10 } else { Version::Http11 };
        Request::from_tokens(method, target, version, Fields::new(head, tokens.headers))
    }
}

/// The fault of a byte that the first line must not have where it is.
const fn line_fault(byte: u8) -> HeadFault {
    match byte {
        b'\n' => HeadFault::Syntax(SyntaxFault::BareLf),
        0 => HeadFault::Syntax(SyntaxFault::Nul),
        _ => HeadFault::RequestLine,
    }
}
