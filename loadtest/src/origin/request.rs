//! An HTTP/1 request as an origin reads it: lenient, since judging it is the test's business.

/// A request head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Which connection of the origin it came on, counted from 0.
    pub connection: usize,
    /// The exact bytes of the head, with the empty line.
    pub head: Vec<u8>,
    /// The method.
    pub method: String,
    /// The request target.
    pub target: String,
    /// The version (`HTTP/1.1`).
    pub version: String,
    /// The fields in order: the name as sent, the value without surrounding blanks.
    pub headers: Vec<(String, String)>,
}

/// How a request's body is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
}

impl Request {
    /// The first value of a field, its name in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers_named(name).next()
    }

    /// All values of a field, its name in any case.
    pub fn headers_named(&self, name: &str) -> impl Iterator<Item = &str> {
        self.headers.iter().filter(move |(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// Whether the client wants the connection closed after the answer (RFC 9112 section 9.3).
    pub fn wants_close(&self) -> bool {
        let says = |word: &str| {
            self.headers_named("connection")
                .any(|value| value.split(',').any(|option| option.trim().eq_ignore_ascii_case(word)))
        };
        says("close") || (self.version == "HTTP/1.0" && !says("keep-alive"))
    }

    pub(super) fn parse(head: &[u8], connection: usize) -> Self {
        let text = String::from_utf8_lossy(head);
        let mut lines = text.split("\r\n");
        let mut words = lines.next().unwrap_or_default().splitn(3, ' ').map(str::to_owned);
        let mut word = || words.next().unwrap_or_default();
        let (method, target, version) = (word(), word(), word());
        let field = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_owned(), value.trim_matches([' ', '\t']).to_owned()))
        };
        let headers = lines.filter_map(field).collect();
        Self { connection, head: head.to_vec(), method, target, version, headers }
    }

    pub(super) fn framing(&self) -> Framing {
        if self.headers_named("transfer-encoding").any(|v| v.to_ascii_lowercase().contains("chunked")) {
            return Framing::Chunked;
        }
        let length = self.header("content-length").and_then(|value| value.parse().ok());
        Framing::Length(length.unwrap_or(0))
    }
}
