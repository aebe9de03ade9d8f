//! SOCKS5 by the `fast-socks5` client: proof that not only our own bytes are understood.

use super::{Credentials, PATIENCE};
use fast_socks5::client::{Config, Socks5Stream};
use std::io;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// A tunnel made by `fast-socks5`; reads and writes like any asynchronous stream.
pub type FastSocks5Stream = Socks5Stream<TcpStream>;

/// Asks `proxy` for a tunnel to `host`, a name or an address as text. With credentials the client
/// offers both "no authentication" and the login.
pub async fn fast_socks5_connect(
    proxy: SocketAddr,
    host: &str,
    port: u16,
    credentials: Option<&Credentials>,
) -> io::Result<FastSocks5Stream> {
    let mut config = Config::default();
    config.set_connect_timeout(PATIENCE);
    let host = host.to_owned();
    let connected = async {
        match credentials {
            None => Socks5Stream::connect(proxy, host, port, config).await,
            Some(Credentials { user, password }) => {
                let (user, password) = (user.clone(), password.clone());
                Socks5Stream::connect_with_password(proxy, host, port, user, password, config).await
            }
        }
    };
    match tokio::time::timeout(PATIENCE, connected).await {
        Ok(done) => done.map_err(io::Error::other),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}
