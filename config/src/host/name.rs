//! Domain names: the ASCII fast path, and UTS 46 for the rest.
//!
//! Names are checked as browsers check them (WHATWG URL, "domain to ASCII", not strict), and then further: only
//! letters, digits, `-`, `_` and dots remain, in labels and names of the lengths that DNS can carry.

use std::{borrow::Cow, fmt, str::FromStr};

use idna::{
    AsciiDenyList,
    uts46::{DnsLength, Hyphens, Uts46},
};

use super::{Host, HostError};

/// The longest name in its text form without the trailing dot (RFC 1035 section 2.3.4: 255 on the wire).
const MAX_NAME: usize = 253;
/// The longest label (RFC 1035 section 2.3.4).
const MAX_LABEL: usize = 63;
/// The longest text that is looked at: 253 characters of four bytes of UTF-8 and a dot.
const MAX_TEXT: usize = 4 * MAX_NAME + 4;

/// A lower-case A-label domain name without trailing dot: at most 253 bytes, labels of 1 to 63 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DomainName(Box<str>);

impl DomainName {
    /// Parses a name; an address is [`HostError::NotAName`].
    pub fn parse(input: &str) -> Result<Self, HostError> {
        match Host::parse(input)? {
            Host::Name(name) => Ok(name),
            Host::Addr(_) => Err(HostError::NotAName),
        }
    }

    /// Parses what is known not to be an address.
    pub(super) fn parse_bytes(input: &[u8]) -> Result<Self, HostError> {
        if input.len() > MAX_TEXT {
            return Err(HostError::TooLong);
        }
        let body = input.strip_suffix(b".").unwrap_or(input);
        let ascii = match scan(body)? {
            Script::Plain => std::str::from_utf8(body).map_err(|_| HostError::NotUtf8)?.to_ascii_lowercase(),
            // With its dots, since UTS 46 knows other dots than the ASCII one and only one may end a name.
            Script::International => international(input)?,
        };
        if ends_in_number(&ascii) {
            return Err(HostError::NumericName);
        }
        Ok(Self(ascii.into_boxed_str()))
    }

    /// The name, e.g. `www.example.com` or `xn--bcher-kva.example`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its labels from left to right; `.rev()` goes from the top down.
    pub fn labels(&self) -> impl DoubleEndedIterator<Item = &str> + Clone {
        self.0.split('.')
    }

    /// What is left without the first label: `example.com` of `www.example.com`; `None` of a single label.
    pub fn parent(&self) -> Option<&str> {
        self.0.split_once('.').map(|(_, parent)| parent)
    }

    /// Whether it is below `ancestor`, by one label or more; never below itself.
    pub fn is_below(&self, ancestor: &Self) -> bool {
        self.0.strip_suffix(&*ancestor.0).is_some_and(|rest| rest.ends_with('.'))
    }

    /// The Unicode form, for prompts; show it next to the name itself, since scripts have lookalikes.
    pub fn unicode(&self) -> Cow<'_, str> {
        if !self.labels().any(is_puny) {
            return Cow::Borrowed(self.as_str());
        }
        let (unicode, valid) =
            Uts46::new().to_unicode(self.0.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow);
        if valid.is_ok() { unicode } else { Cow::Borrowed(self.as_str()) }
    }
}

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for DomainName {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl FromStr for DomainName {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        Self::parse(text)
    }
}

/// What has to be done with a name.
#[derive(PartialEq, Eq)]
enum Script {
    /// ASCII without A-labels: only its case can differ from the canonical form.
    Plain,
    /// UTS 46 has to look at it.
    International,
}

/// What a byte is in a name.
#[derive(Clone, Copy)]
enum Class {
    Label,
    Dot,
    Unicode,
    Forbidden,
}

/// One look-up per byte: this runs for every connection.
const CLASSES: [Class; 256] = {
    let mut classes = [Class::Forbidden; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => Class::Label,
            b'.' => Class::Dot,
            0x80..=0xff => Class::Unicode,
            _ => Class::Forbidden,
        };
        byte += 1;
    }
    classes
};

/// Checks bytes and lengths of a name without its trailing dot.
fn scan(body: &[u8]) -> Result<Script, HostError> {
    let mut script = Script::Plain;
    let mut start = 0;
    for (at, &byte) in body.iter().enumerate() {
        match CLASSES[usize::from(byte)] {
            Class::Label => {}
            Class::Dot => {
                scan_label(&body[start..at], &mut script)?;
                start = at + 1;
            }
            Class::Unicode => return Ok(Script::International),
            Class::Forbidden => return Err(HostError::Byte(byte)),
        }
    }
    scan_label(&body[start..], &mut script)?;
    if body.len() > MAX_NAME { Err(HostError::TooLong) } else { Ok(script) }
}

fn scan_label(label: &[u8], script: &mut Script) -> Result<(), HostError> {
    match label.len() {
        0 => return Err(HostError::EmptyLabel),
        1..=MAX_LABEL => {}
        _ => return Err(HostError::LabelTooLong),
    }
    if label.len() >= 4 && label[..4].eq_ignore_ascii_case(b"xn--") {
        *script = Script::International;
    }
    Ok(())
}

/// UTS 46 ToASCII, non-transitional. What comes out is checked like any other name: mappings can make dots and
/// forbidden bytes (`％` becomes `%`).
fn international(input: &[u8]) -> Result<String, HostError> {
    let text = std::str::from_utf8(input).map_err(|_| HostError::NotUtf8)?;
    let mapped = Uts46::new()
        .to_ascii(text.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow, DnsLength::Ignore)
        .map_err(|_| HostError::BadIdna)?;
    let name = mapped.strip_suffix('.').unwrap_or(&mapped);
    scan(name.as_bytes())?;
    // An A-label has one spelling; one that would come back different was never valid.
    if text.is_ascii() && !mapped.eq_ignore_ascii_case(text) {
        return Err(HostError::BadIdna);
    }
    Ok(name.to_owned())
}

fn is_puny(label: &str) -> bool {
    label.starts_with("xn--")
}

/// WHATWG URL, "ends in a number": names that `inet_aton` and its heirs take for an address.
fn ends_in_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name).as_bytes();
    match last.strip_prefix(b"0x") {
        Some(hex) => hex.iter().all(u8::is_ascii_hexdigit),
        None => last.iter().all(u8::is_ascii_digit),
    }
}
