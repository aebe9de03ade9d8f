//! HTTP CONNECT, and the tunnel that any way of connecting gives.

use super::{HttpAnswer, dial};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// The longest head of an answer to a CONNECT.
const MAX_HEAD: usize = 64 * 1024;

/// A user and a password (for exeat: a session and its token).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user.
    pub user: String,
    /// The password.
    pub password: String,
}

impl Credentials {
    /// Credentials from their two parts.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: user.into(), password: password.into() }
    }

    /// The value of a `Proxy-Authorization` field (RFC 7617).
    pub fn basic(&self) -> String {
        format!("Basic {}", base64(format!("{}:{}", self.user, self.password).as_bytes()))
    }
}

/// Why there is no tunnel.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The proxy said no; its whole answer, with the body as far as its length says.
    #[error("refused with {} {}", .0.status, .0.reason)]
    Refused(HttpAnswer),
    /// What came back is no answer.
    #[error("no HTTP answer: {:?}", String::from_utf8_lossy(.0))]
    Malformed(Vec<u8>),
    /// The connection failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ConnectError {
    /// The proxy's refusal.
    ///
    /// # Panics
    /// When it is anything else.
    pub fn refusal(self) -> HttpAnswer {
        match self {
            Self::Refused(answer) => answer,
            Self::Malformed(_) | Self::Io(_) => panic!("not a refusal: {self}"),
        }
    }
}

/// Asks `proxy` for a tunnel to `authority` (`"good.test:443"`).
pub fn connect(
    proxy: SocketAddr,
    authority: &str,
    credentials: Option<&Credentials>,
) -> Result<Tunnel, ConnectError> {
    let login = credentials.map_or(String::new(), |c| format!("Proxy-Authorization: {}\r\n", c.basic()));
    connect_raw(proxy, format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{login}\r\n"))
}

/// Sends `bytes` to `proxy`, a CONNECT head with whatever else, and takes the answer.
pub fn connect_raw(proxy: SocketAddr, bytes: impl AsRef<[u8]>) -> Result<Tunnel, ConnectError> {
    let mut stream = dial(proxy)?;
    stream.write_all(bytes.as_ref())?;
    let mut read = Vec::new();
    let mut piece = [0; 4096];
    loop {
        if let Some((answer, rest)) = HttpAnswer::parse_head(&read) {
            if (200..=299).contains(&answer.status) {
                return Ok(Tunnel { early: rest.to_vec(), answer: Some(answer), stream });
            }
            return Err(ConnectError::Refused(read_body(answer, rest.to_vec(), &mut stream)?));
        }
        let length = stream.read(&mut piece)?;
        if length == 0 || read.len() > MAX_HEAD {
            return Err(ConnectError::Malformed(read));
        }
        read.extend_from_slice(&piece[..length]);
    }
}

fn read_body(mut answer: HttpAnswer, start: Vec<u8>, stream: &mut TcpStream) -> io::Result<HttpAnswer> {
    let length: u64 = answer.header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
    answer.body = start;
    let missing = length.saturating_sub(answer.body.len() as u64);
    stream.take(missing).read_to_end(&mut answer.body)?;
    Ok(answer)
}

/// A connection through a proxy, ready for the inner protocol.
#[derive(Debug)]
pub struct Tunnel {
    stream: TcpStream,
    /// What came with the proxy's answer and is not read yet.
    early: Vec<u8>,
    answer: Option<HttpAnswer>,
}

impl Tunnel {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, early: Vec::new(), answer: None }
    }

    /// The head of the proxy's answer; none with SOCKS.
    pub fn answer(&self) -> Option<&HttpAnswer> {
        self.answer.as_ref()
    }

    /// The TCP connection to the proxy, for its options. Reading from it may miss bytes that came
    /// with the proxy's answer.
    pub fn tcp(&self) -> &TcpStream {
        &self.stream
    }

    /// The TCP connection and the bytes that came with the proxy's answer.
    pub fn into_parts(self) -> (TcpStream, Vec<u8>) {
        (self.stream, self.early)
    }

    /// A second handle on the same connection, for writing while the first reads.
    pub fn writer(&self) -> io::Result<TcpStream> {
        self.stream.try_clone()
    }

    /// Finishes sending (FIN).
    pub fn finish_sending(&self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
    }

    /// Sets how long a single read may take.
    pub fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.stream.set_read_timeout(Some(patience))
    }

    /// Makes the drop of this tunnel send a reset.
    pub fn reset(self) -> io::Result<()> {
        rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO))?;
        Ok(())
    }

    /// Reads exactly `length` bytes.
    pub fn read_bytes(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads until the peer finishes sending.
    pub fn read_all(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Read for Tunnel {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.early.is_empty() {
            return self.stream.read(buffer);
        }
        let length = self.early.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.early[..length]);
        self.early.drain(..length);
        Ok(length)
    }
}

impl Write for Tunnel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// RFC 4648 section 4.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let byte = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for index in 0..4 {
            let six = (bits >> (18 - 6 * index)) & 63;
            text.push(if index > three.len() { '=' } else { char::from(ALPHABET[six as usize]) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Credentials, base64};

    #[test]
    fn base64_as_in_the_rfc() {
        for (input, expected) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(input.as_bytes()), expected);
        }
        // RFC 7617 section 2.
        assert_eq!(Credentials::new("Aladdin", "open sesame").basic(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    }
}
