//! The bytes that HTTP/1 allows where (RFC 9110 section 5, RFC 9112 section 5), and the scan of a field section.
//!
//! Request heads, response heads and chunked trailers all end in such a section, and all three use this one scan.
//! It only says whether the bytes are in order and where the section ends; what the fields mean is elsewhere.

use std::fmt;

use crate::limits::MAX_HEADERS;

/// Why some bytes are not a line of HTTP/1. The first fault in byte order, so it can be told before the rest is
/// there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyntaxFault {
    /// A line that ends in LF alone. RFC 9112 section 2.2 lets a recipient take it; two that differ on it can be
    /// made to disagree on where a message ends.
    BareLf,
    /// A CR that no LF follows.
    BareCr,
    /// A NUL, at which some parsers stop.
    Nul,
    /// A control byte that no field value may have.
    Control(u8),
    /// A line that starts with white space: obsolete folding, or a hidden first header.
    Fold,
    /// A line without a colon.
    NoColon,
    /// A line that starts with its colon.
    NoName,
    /// White space between a header's name and its colon (RFC 9112 section 5.1).
    SpaceBeforeColon,
    /// A byte that no header's name may have.
    NameByte(u8),
    /// More than [`MAX_HEADERS`] lines.
    TooManyFields,
}

/// A predicate, to be put behind the name of the message: "the request has a header line without a colon".
impl fmt::Display for SyntaxFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BareLf => f.write_str("has a line that ends in LF instead of CRLF"),
            Self::BareCr => f.write_str("has a CR that is not part of a CRLF"),
            Self::Nul => f.write_str("has a NUL byte in it"),
            Self::Control(byte) => write!(f, "has the control byte 0x{byte:02x} in a header"),
            Self::Fold => f.write_str("has a header line that starts with white space"),
            Self::NoColon => f.write_str("has a header line without a colon"),
            Self::NoName => f.write_str("has a header line without a name"),
            Self::SpaceBeforeColon => f.write_str("has white space between a header's name and its colon"),
            Self::NameByte(byte) => write!(f, "has the byte 0x{byte:02x} in a header's name"),
            Self::TooManyFields => write!(f, "has more than {MAX_HEADERS} headers"),
        }
    }
}

const TOKEN: u8 = 1;
const VALUE: u8 = 2;
const TARGET: u8 = 4;

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        let mut class = 0;
        if b.is_ascii_alphanumeric() || is_token_mark(b) {
            class |= TOKEN;
        }
        // `obs-text` is allowed and passed on untouched.
        if b == b'\t' || (b >= b' ' && b != 0x7f) {
            class |= VALUE;
        }
        if b > b' ' && b != 0x7f {
            class |= TARGET;
        }
        classes[byte] = class;
        byte += 1;
    }
    classes
};

const fn is_token_mark(byte: u8) -> bool {
    matches!(
        byte,
        b'!' | b'#'
            | b'$'
            | b'%'
            | b'&'
            | b'\''
            | b'*'
            | b'+'
            | b'-'
            | b'.'
            | b'^'
            | b'_'
            | b'`'
            | b'|'
            | b'~'
    )
}

/// `tchar` (RFC 9110 section 5.6.2).
pub(super) const fn is_token_byte(byte: u8) -> bool {
    CLASSES[byte as usize] & TOKEN != 0
}

/// A byte of a field value: visible, white space, or `obs-text` (RFC 9110 section 5.5).
pub(super) const fn is_value_byte(byte: u8) -> bool {
    CLASSES[byte as usize] & VALUE != 0
}

/// A byte of a request target. Looser than RFC 3986, since clients do send raw UTF-8 in paths.
pub(super) const fn is_target_byte(byte: u8) -> bool {
    CLASSES[byte as usize] & TARGET != 0
}

/// A whole token.
pub(super) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&b| is_token_byte(b))
}

/// The fault of a byte that must not be in a value or a line.
pub(super) const fn value_fault(byte: u8) -> SyntaxFault {
    match byte {
        b'\n' => SyntaxFault::BareLf,
        b'\r' => SyntaxFault::BareCr,
        0 => SyntaxFault::Nul,
        _ => SyntaxFault::Control(byte),
    }
}

/// Where in a field section a scan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    LineStart,
    Name,
    Value,
    /// Behind the CR of a field line.
    LineCr,
    /// Behind the CR of the empty line.
    EndCr,
}

/// A scan of field lines up to the empty line, that goes on where it stopped when more bytes are there.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldScan {
    at: At,
    lines: usize,
}

impl FieldScan {
    /// A scan that starts at the first field line.
    pub(super) const fn new() -> Self {
        Self { at: At::LineStart, lines: 0 }
    }

    /// Scans on from `*pos`, which it moves. True when the empty line was passed; `*pos` is then right behind it.
    pub(super) fn advance(&mut self, bytes: &[u8], pos: &mut usize) -> Result<bool, SyntaxFault> {
        while let Some(&byte) = bytes.get(*pos) {
            *pos += 1;
            self.at = match self.at {
                At::LineStart => match byte {
                    b'\r' => At::EndCr,
                    b' ' | b'\t' => return Err(SyntaxFault::Fold),
                    b':' => return Err(SyntaxFault::NoName),
                    _ if !is_token_byte(byte) => return Err(name_fault(byte)),
                    _ if self.lines == MAX_HEADERS => return Err(SyntaxFault::TooManyFields),
                    _ => {
                        self.lines += 1;
                        At::Name
                    }
                },
                At::Name => match byte {
                    b':' => At::Value,
                    b' ' | b'\t' => return Err(SyntaxFault::SpaceBeforeColon),
                    b'\r' => return Err(SyntaxFault::NoColon),
                    _ if is_token_byte(byte) => At::Name,
                    _ => return Err(name_fault(byte)),
                },
                At::Value => match byte {
                    b'\r' => At::LineCr,
                    _ if is_value_byte(byte) => {
                        // The bulk of a head: everything up to the end of the line at once.
                        let rest = &bytes[*pos..];
                        *pos += rest.iter().position(|&b| !is_value_byte(b)).unwrap_or(rest.len());
                        At::Value
                    }
                    _ => return Err(value_fault(byte)),
                },
                At::LineCr if byte == b'\n' => At::LineStart,
                At::EndCr if byte == b'\n' => {
                    self.at = At::LineStart;
                    return Ok(true);
                }
                At::LineCr | At::EndCr => return Err(SyntaxFault::BareCr),
            };
        }
        Ok(false)
    }
}

const fn name_fault(byte: u8) -> SyntaxFault {
    match byte {
        b'\n' => SyntaxFault::BareLf,
        0 => SyntaxFault::Nul,
        _ => SyntaxFault::NameByte(byte),
    }
}
