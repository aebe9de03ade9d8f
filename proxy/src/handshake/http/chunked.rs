//! The chunked transfer coding (RFC 9112 section 7.1), both ways, without I/O.
//!
//! [`ChunkDecoder`] says where in the bytes the payload is, and takes nothing that is not exactly in the grammar:
//! CRLF line ends, plain hexadecimal sizes, valid trailers. Chunks are made anew on the way out, so the peer's
//! extensions and spellings end here.

use std::{fmt, ops::Range};

use super::{
    fields::Known,
    rewrite::speaks_for_us,
    syntax::{FieldScan, SyntaxFault, is_value_byte, value_fault},
};
use crate::limits::MAX_HEADERS;

/// The trailers of one message. They carry checksums and statuses; 16 KiB is what servers allow for whole heads.
pub const MAX_TRAILERS: usize = 16 * 1024;

/// The extensions of one chunk, which nobody uses: room for a signature, and none for a flood.
const MAX_EXTENSION: usize = 4 * 1024;

/// A size has at most this many digits, leading zeros included: more would not fit.
const MAX_DIGITS: u8 = 16;

/// A chunk's size line as [`put_size`] writes it is at most this long.
pub const MAX_SIZE_LINE: usize = 18;

/// Why some bytes are not a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkFault {
    /// A size that is not 1 to 16 hexadecimal digits.
    Size,
    /// Something between a size and the end of its line that is no extension.
    Extension,
    /// An extension longer than anyone has reason to.
    ExtensionTooLong,
    /// A chunk that is longer or shorter than its size.
    DataEnd,
    /// A trailer that is not a valid line.
    Trailer(SyntaxFault),
    /// Trailers of more than [`MAX_TRAILERS`] bytes.
    TrailersTooLarge,
    /// A line end that is not CRLF, or a control byte.
    Syntax(SyntaxFault),
}

/// A predicate, to be put behind the name of the body.
impl fmt::Display for ChunkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size => f.write_str("has a chunk size that is not a hexadecimal number"),
            Self::Extension => f.write_str("has something behind a chunk size that is not an extension"),
            Self::ExtensionTooLong => write!(f, "has a chunk extension of more than {MAX_EXTENSION} bytes"),
            Self::DataEnd => f.write_str("has a chunk that does not end where its size says"),
            Self::TrailersTooLarge => write!(f, "has trailers of more than {MAX_TRAILERS} bytes"),
            Self::Trailer(fault) | Self::Syntax(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for ChunkFault {}

#[derive(Debug, Clone, Copy)]
enum At {
    /// Before the first digit of a size.
    Size,
    /// Behind this many digits.
    Digits(u8),
    /// In white space before a `;`.
    Blank,
    /// In an extension.
    Extension,
    /// Behind the CR of a size line.
    SizeLf,
    /// In a chunk with this much to come.
    Data(u64),
    /// Behind a chunk.
    DataCr,
    DataLf,
    /// In the trailers.
    Trailers,
    Done,
}

/// One step through a chunked body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advance {
    /// So many bytes are dealt with.
    pub consumed: usize,
    /// Where in them the payload is; empty when they have none.
    pub payload: Range<usize>,
    /// Whether the body ended with them.
    pub done: bool,
}

/// Finds the payload in a chunked body.
#[derive(Debug, Clone)]
pub struct ChunkDecoder {
    at: At,
    size: u64,
    extension: usize,
    trailers: Vec<u8>,
    fields: FieldScan,
}

impl Default for ChunkDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl ChunkDecoder {
    /// A decoder at the start of a body.
    pub const fn new() -> Self {
        Self { at: At::Size, size: 0, extension: 0, trailers: Vec::new(), fields: FieldScan::new() }
    }

    /// Goes on into `bytes`, which come right behind those consumed before: up to the end of the next run of
    /// payload, the end of the body, or the end of `bytes`. Everything is consumed when none of it is left over.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<Advance, ChunkFault> {
        let mut pos = 0;
        while let Some(&byte) = bytes.get(pos) {
            self.at = match self.at {
                At::Data(left) => {
                    let here = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len() - pos);
                    let left = left - here as u64;
                    self.at = if left == 0 { At::DataCr } else { At::Data(left) };
                    return Ok(Advance { consumed: pos + here, payload: pos..pos + here, done: false });
                }
                At::Trailers => {
                    let start = pos;
                    let ended = self.fields.advance(bytes, &mut pos).map_err(ChunkFault::Trailer)?;
                    if self.trailers.len() + (pos - start) > MAX_TRAILERS {
                        return Err(ChunkFault::TrailersTooLarge);
                    }
                    self.trailers.extend_from_slice(&bytes[start..pos]);
                    if ended {
                        self.at = At::Done;
                        return Ok(Advance { consumed: pos, payload: pos..pos, done: true });
                    }
                    break;
                }
                At::Done => break,
                At::Size
                | At::Digits(_)
                | At::Blank
                | At::Extension
                | At::SizeLf
                | At::DataCr
                | At::DataLf => {
                    pos += 1;
                    self.step(byte)?
                }
            };
        }
        Ok(Advance { consumed: pos, payload: pos..pos, done: matches!(self.at, At::Done) })
    }

    /// One byte of what is around the payload.
    fn step(&mut self, byte: u8) -> Result<At, ChunkFault> {
        Ok(match (self.at, byte) {
            (At::Size, _) => {
                self.size = u64::from(hex(byte).ok_or(ChunkFault::Size)?);
                At::Digits(1)
            }
            (At::Digits(_) | At::Extension, b'\r') => At::SizeLf,
            (At::Digits(_) | At::Blank, b';') => {
                self.extension = 0;
                At::Extension
            }
            (At::Digits(_), b' ' | b'\t') => {
                self.extension = 0;
                At::Blank
            }
            (At::Digits(seen), _) => {
                let digit = hex(byte).ok_or(ChunkFault::Size)?;
                if seen == MAX_DIGITS {
                    return Err(ChunkFault::Size);
                }
                self.size = (self.size << 4) | u64::from(digit);
                At::Digits(seen + 1)
            }
            // `BWS` (RFC 9112 section 7.1.1).
            (At::Blank, b' ' | b'\t') => self.extended(At::Blank)?,
            (At::Blank, _) => return Err(ChunkFault::Extension),
            (At::Extension, _) if is_value_byte(byte) => self.extended(At::Extension)?,
            (At::Extension, _) => return Err(ChunkFault::Syntax(value_fault(byte))),
            (At::SizeLf, b'\n') if self.size == 0 => At::Trailers,
            (At::SizeLf, b'\n') => At::Data(self.size),
            (At::SizeLf, _) => return Err(ChunkFault::Syntax(SyntaxFault::BareCr)),
            (At::DataCr, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => At::Size,
            (At::DataCr | At::DataLf, _) => return Err(ChunkFault::DataEnd),
            // Dealt with by the caller.
            (At::Data(_) | At::Trailers | At::Done, _) => self.at,
        })
    }

    fn extended(&mut self, at: At) -> Result<At, ChunkFault> {
        self.extension += 1;
        if self.extension > MAX_EXTENSION { Err(ChunkFault::ExtensionTooLong) } else { Ok(at) }
    }

    /// Appends the trailers that may be passed on, when the body is done. Those that could change how the message
    /// is framed, routed, authenticated or read are not (RFC 9110 section 6.5.1).
    pub fn put_trailers(&self, out: &mut Vec<u8>) {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let Ok(httparse::Status::Complete((_, trailers))) =
            httparse::parse_headers(&self.trailers, &mut headers)
        else {
            return;
        };
        for trailer in trailers {
            if !may_trail(trailer) {
                continue;
            }
            out.extend_from_slice(trailer.name.as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(trailer.value);
            out.extend_from_slice(b"\r\n");
        }
    }
}

const fn hex(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Names that must not be in trailers, besides those a proxy takes out of heads.
const NEVER_TRAIL: [&str; 25] = [
    "age",
    "authorization",
    "cache-control",
    "content-encoding",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "expires",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "location",
    "pragma",
    "range",
    "retry-after",
    "set-cookie",
    "trailer",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "authentication-info",
];

fn may_trail(trailer: &httparse::Header<'_>) -> bool {
    match Known::of(trailer.name.as_bytes()) {
        Known::ProxyStatus => !speaks_for_us(trailer.value),
        Known::Accept | Known::Other => {
            !NEVER_TRAIL.iter().any(|never| trailer.name.eq_ignore_ascii_case(never))
        }
        Known::Connection
        | Known::ContentLength
        | Known::Expect
        | Known::Host
        | Known::Http2Settings
        | Known::KeepAlive
        | Known::MaxForwards
        | Known::ProxyAuthenticate
        | Known::ProxyAuthenticationInfo
        | Known::ProxyAuthorization
        | Known::ProxyConnection
        | Known::Te
        | Known::TransferEncoding
        | Known::Upgrade
        | Known::XExeatError => false,
    }
}

/// The line before a chunk of `size` bytes, right-aligned in `line`; returns where in it the line starts.
pub fn put_size(size: usize, line: &mut [u8; MAX_SIZE_LINE]) -> usize {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut start = MAX_SIZE_LINE - 2;
    line[start..].copy_from_slice(b"\r\n");
    let mut left = size;
    loop {
        start -= 1;
        line[start] = DIGITS[left & 15];
        left >>= 4;
        if left == 0 || start == 0 {
            return start;
        }
    }
}
