//! SOCKS5 by hand (RFC 1928, RFC 1929): the bytes of each message, and a whole CONNECT.

use super::{Credentials, Tunnel, dial};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};

/// The destination of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocksHost {
    /// A name (address type 3), at most 255 bytes; also for an address written as text.
    Name(Vec<u8>),
    /// An address (type 1 or 4).
    Address(IpAddr),
    /// Any type with any bytes, whether they make sense or not.
    Raw(u8, Vec<u8>),
}

impl SocksHost {
    /// A name.
    pub fn name(name: impl AsRef<[u8]>) -> Self {
        Self::Name(name.as_ref().to_vec())
    }
}

impl From<IpAddr> for SocksHost {
    fn from(address: IpAddr) -> Self {
        Self::Address(address)
    }
}

impl From<&str> for SocksHost {
    fn from(name: &str) -> Self {
        Self::name(name)
    }
}

/// A greeting that offers `methods`.
pub fn socks5_greeting(methods: &[u8]) -> Vec<u8> {
    [&[5, methods.len() as u8], methods].concat()
}

/// A login (RFC 1929).
pub fn socks5_login(credentials: &Credentials) -> Vec<u8> {
    let (user, password) = (credentials.user.as_bytes(), credentials.password.as_bytes());
    [&[1, user.len() as u8], user, &[password.len() as u8], password].concat()
}

/// A request; `command` is 1 for CONNECT, 2 for BIND, 3 for UDP ASSOCIATE.
pub fn socks5_request(command: u8, host: &SocksHost, port: u16) -> Vec<u8> {
    let (kind, address) = match host {
        SocksHost::Name(name) => (3, [&[name.len() as u8], name.as_slice()].concat()),
        SocksHost::Address(IpAddr::V4(v4)) => (1, v4.octets().to_vec()),
        SocksHost::Address(IpAddr::V6(v6)) => (4, v6.octets().to_vec()),
        SocksHost::Raw(kind, bytes) => (*kind, bytes.clone()),
    };
    [&[5, command, 0, kind], address.as_slice(), &port.to_be_bytes()].concat()
}

/// The proxy's reply to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocksReply {
    /// The reply code; 0 is success.
    pub code: u8,
    /// The exact bytes.
    pub bytes: Vec<u8>,
}

/// Why there is no tunnel.
#[derive(Debug, thiserror::Error)]
pub enum SocksError {
    /// The answer to the greeting: no method fits.
    #[error("no method was accepted: {0:02x?}")]
    NoMethod([u8; 2]),
    /// The answer to the login.
    #[error("the login was refused: {0:02x?}")]
    LoginRefused([u8; 2]),
    /// The reply to the request.
    #[error("refused with code {:02x}", .0.code)]
    Refused(SocksReply),
    /// What came back is no SOCKS5.
    #[error("no SOCKS5 answer: {0:02x?}")]
    Malformed(Vec<u8>),
    /// The connection failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl SocksError {
    /// The code of the proxy's refusal of the request.
    ///
    /// # Panics
    /// When it is anything else.
    pub fn refusal(&self) -> u8 {
        match self {
            Self::Refused(reply) => reply.code,
            Self::NoMethod(_) | Self::LoginRefused(_) | Self::Malformed(_) | Self::Io(_) => {
                panic!("not a refusal of the request: {self}")
            }
        }
    }
}

/// Asks `proxy` for a tunnel to `host`; with credentials only the login method is offered.
pub fn socks5_connect(
    proxy: SocketAddr,
    host: impl Into<SocksHost>,
    port: u16,
    credentials: Option<&Credentials>,
) -> Result<Tunnel, SocksError> {
    let mut stream = dial(proxy)?;
    let method = if credentials.is_some() { 2 } else { 0 };
    stream.write_all(&socks5_greeting(&[method]))?;
    let chosen = read_array(&mut stream)?;
    match chosen {
        [5, chosen] if chosen == method => {}
        [5, _] => return Err(SocksError::NoMethod(chosen)),
        _ => return Err(SocksError::Malformed(chosen.to_vec())),
    }
    if let Some(credentials) = credentials {
        stream.write_all(&socks5_login(credentials))?;
        match read_array(&mut stream)? {
            [1, 0] => {}
            refused @ [1, _] => return Err(SocksError::LoginRefused(refused)),
            other => return Err(SocksError::Malformed(other.to_vec())),
        }
    }
    stream.write_all(&socks5_request(1, &host.into(), port))?;
    let reply = read_reply(&mut stream)?;
    if reply.code == 0 { Ok(Tunnel::new(stream)) } else { Err(SocksError::Refused(reply)) }
}

fn read_reply(stream: &mut TcpStream) -> Result<SocksReply, SocksError> {
    // Version, code, reserved, type and the first byte of the address, which may be its length.
    let start: [u8; 5] = read_array(stream)?;
    let [5, code, 0, kind, first] = start else { return Err(SocksError::Malformed(start.to_vec())) };
    let address_left = match kind {
        1 => 3,
        3 => usize::from(first),
        4 => 15,
        _ => return Err(SocksError::Malformed(start.to_vec())),
    };
    let mut rest = vec![0; address_left + 2];
    stream.read_exact(&mut rest)?;
    Ok(SocksReply { code, bytes: [&start[..], &rest].concat() })
}

fn read_array<const N: usize>(stream: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}
