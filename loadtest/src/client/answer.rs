//! HTTP/1 answers as bytes: a small lenient reader of the kit's own.

/// An HTTP answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The version (`HTTP/1.1`).
    pub version: String,
    /// The status code.
    pub status: u16,
    /// The reason phrase.
    pub reason: String,
    /// The fields in order: the name as sent, the value without surrounding blanks.
    pub headers: Vec<(String, String)>,
    /// The body without its framing, as far as it came.
    pub body: Vec<u8>,
}

impl HttpAnswer {
    /// Reads all answers in `bytes`, as they follow each other on a connection. An answer without a
    /// length takes all that is left.
    pub fn parse_all(bytes: &[u8]) -> Vec<Self> {
        let mut answers = Vec::new();
        let mut rest = bytes;
        while let Some((mut answer, after)) = Self::parse_head(rest) {
            rest = answer.take_body(after);
            answers.push(answer);
        }
        answers
    }

    /// Reads a head and gives it with the bytes behind it; the body is left empty.
    pub fn parse_head(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.split("\r\n");
        let mut words = lines.next()?.splitn(3, ' ');
        let version = words.next().filter(|version| version.starts_with("HTTP/"))?.to_owned();
        let status = words.next()?.parse().ok()?;
        let reason = words.next().unwrap_or_default().to_owned();
        let headers = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_owned(), value.trim_matches([' ', '\t']).to_owned()))
            .collect();
        Some((Self { version, status, reason, headers, body: Vec::new() }, &bytes[end + 4..]))
    }

    /// The first value of a field, its name in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Takes the body off `bytes` and gives the rest.
    fn take_body<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        if matches!(self.status, 100..=199 | 204 | 304) {
            // After 101 the bytes are another protocol's.
            return if self.status == 101 { &[] } else { bytes };
        }
        if self.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            return self.take_chunks(bytes);
        }
        let length = self.header("content-length").and_then(|value| value.parse().ok());
        let (body, rest) = bytes.split_at(length.unwrap_or(bytes.len()).min(bytes.len()));
        self.body = body.to_vec();
        rest
    }

    /// Decodes chunks as far as they are whole and well-formed.
    fn take_chunks<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let mut rest = bytes;
        while let Some((line, after)) = line(rest) {
            let size = std::str::from_utf8(line).ok().and_then(|line| line.split(';').next());
            let Some(size) = size.and_then(|size| usize::from_str_radix(size.trim(), 16).ok()) else { break };
            if size == 0 {
                rest = after;
                while let Some((trailer, after)) = self::line(rest) {
                    rest = after;
                    if trailer.is_empty() {
                        break;
                    }
                }
                return rest;
            }
            let Some((chunk, after)) = after.split_at_checked(size) else { break };
            self.body.extend_from_slice(chunk);
            rest = after.strip_prefix(b"\r\n").unwrap_or(after);
        }
        &[]
    }
}

/// A line without its end, and what follows.
fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.windows(2).position(|two| two == b"\r\n")?;
    Some((&bytes[..end], &bytes[end + 2..]))
}
