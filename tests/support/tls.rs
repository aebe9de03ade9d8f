//! TLS origins and clients under an authority of the test's own.

use std::{
    io::{self, Read, Write},
    path::Path,
};

use exeat_loadtest::{
    ca::TestCa,
    client::{Tunnel, tls_over},
    origin::{Origin, Script},
};
use tempfile::TempDir;

/// An authority that only this test trusts.
#[derive(Debug)]
pub(crate) struct Tls {
    ca: TestCa,
    _directory: TempDir,
}

impl Tls {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { ca: TestCa::new(directory.path()).unwrap(), _directory: directory }
    }

    pub(crate) fn ca(&self) -> &TestCa {
        &self.ca
    }

    /// The root for `--cacert`.
    pub(crate) fn root(&self) -> &Path {
        self.ca.root_path()
    }

    /// An origin at `address` whose certificate is for `names`.
    pub(crate) fn origin(&self, address: &str, names: &[&str], script: Script) -> Origin {
        let config = self.ca.server_config(names, &["http/1.1"]).unwrap();
        Origin::start_tls(address, script, config).unwrap()
    }

    /// A handshake with `name` inside a tunnel.
    pub(crate) fn handshake(&self, tunnel: Tunnel, name: &str) -> io::Result<impl Read + Write + use<>> {
        tls_over(tunnel, name, self.ca.client_config(&["http/1.1"])?)
    }
}
