//! TLS inside a tunnel.

use super::Tunnel;
use crate::ca::provider;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{self, Write as _};
use std::sync::Arc;

/// Does a TLS handshake through `tunnel` as a client of `server_name` (a name or an address) and
/// gives the secured stream.
pub fn tls_over(
    tunnel: Tunnel,
    server_name: &str,
    config: Arc<ClientConfig>,
) -> io::Result<StreamOwned<ClientConnection, Tunnel>> {
    let name = ServerName::try_from(server_name.to_owned()).map_err(io::Error::other)?;
    let session = ClientConnection::new(config, name).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(session, tunnel);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    stream.flush()?;
    Ok(stream)
}

/// The first bytes of a TLS client, a whole ClientHello record, with or without the name (SNI).
pub fn client_hello(server_name: Option<&str>) -> io::Result<Vec<u8>> {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    config.enable_sni = server_name.is_some();
    let name = server_name.unwrap_or("unnamed.invalid").to_owned();
    let name = ServerName::try_from(name).map_err(io::Error::other)?;
    let mut session = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    let mut hello = Vec::new();
    session.write_tls(&mut hello)?;
    Ok(hello)
}
