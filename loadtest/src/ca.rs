//! A certificate authority for tests: one root, written as `ca.pem`, and leaves on demand.
//!
//! Nothing outside a test ever trusts it; the root's key never leaves the process.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A certificate authority.
#[derive(Debug)]
pub struct TestCa {
    issuer: Issuer<'static, KeyPair>,
    root: CertificateDer<'static>,
    root_path: PathBuf,
    directory: PathBuf,
}

/// A certificate of the authority with its key, in memory and as PEM files for other programs.
#[derive(Debug)]
pub struct Leaf {
    /// The certificate.
    pub certificate: CertificateDer<'static>,
    /// Its private key.
    pub key: PrivateKeyDer<'static>,
    /// The certificate as a PEM file.
    pub certificate_path: PathBuf,
    /// The key as a PEM file.
    pub key_path: PathBuf,
}

impl TestCa {
    /// Makes an authority and writes its root as `ca.pem` into `directory`.
    pub fn new(directory: &Path) -> io::Result<Self> {
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let mut params = CertificateParams::new([]).map_err(io::Error::other)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, "exeat test authority");
        let root = params.self_signed(&key).map_err(io::Error::other)?;
        let root_path = directory.join("ca.pem");
        std::fs::write(&root_path, root.pem())?;
        Ok(Self {
            issuer: Issuer::new(params, key),
            root: root.der().clone(),
            root_path,
            directory: directory.to_owned(),
        })
    }

    /// The file that clients are told to trust (`curl --cacert`, `SSL_CERT_FILE`, …).
    pub fn root_path(&self) -> &Path {
        &self.root_path
    }

    /// Makes a certificate for DNS names and IP addresses. Its files are named after the first.
    pub fn issue(&self, names: &[&str]) -> io::Result<Leaf> {
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let label = names.first().map_or("leaf", String::as_str).replace(['*', '/', ':'], "_");
        let mut params = CertificateParams::new(names).map_err(io::Error::other)?;
        // Not the default name: some clients take a leaf with the name of its issuer for a root.
        params.distinguished_name.push(DnType::CommonName, label.as_str());
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.signed_by(&key, &self.issuer).map_err(io::Error::other)?;
        let certificate_path = self.directory.join(format!("{label}.pem"));
        let key_path = self.directory.join(format!("{label}.key"));
        std::fs::write(&certificate_path, certificate.pem())?;
        std::fs::write(&key_path, key.serialize_pem())?;
        Ok(Leaf {
            certificate: certificate.der().clone(),
            key: PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
            certificate_path,
            key_path,
        })
    }

    /// A server's TLS settings with a fresh certificate for `names`, offering `alpn` in that order.
    pub fn server_config(&self, names: &[&str], alpn: &[&str]) -> io::Result<Arc<ServerConfig>> {
        let leaf = self.issue(names)?;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![leaf.certificate], leaf.key)
            .map_err(io::Error::other)?;
        config.alpn_protocols = alpn.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Ok(Arc::new(config))
    }

    /// A client's TLS settings that trust this authority and nothing else.
    pub fn client_config(&self, alpn: &[&str]) -> io::Result<Arc<ClientConfig>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).map_err(io::Error::other)?;
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Ok(Arc::new(config))
    }
}

/// Named, so that no test depends on which provider was installed first.
pub(crate) fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

#[cfg(test)]
mod tests {
    use super::TestCa;

    #[test]
    fn files_are_written() {
        let directory = tempfile::tempdir().unwrap();
        let ca = TestCa::new(directory.path()).unwrap();
        let leaf = ca.issue(&["*.good.test", "127.0.0.1", "::1"]).unwrap();
        assert_eq!(leaf.certificate_path, directory.path().join("_.good.test.pem"));
        for (path, kind) in [
            (ca.root_path(), "CERTIFICATE"),
            (&leaf.certificate_path, "CERTIFICATE"),
            (&leaf.key_path, "PRIVATE KEY"),
        ] {
            let text = std::fs::read_to_string(path).unwrap();
            assert!(text.starts_with(&format!("-----BEGIN {kind}-----")), "{text}");
        }
        assert!(ca.issue(&["bücher.test"]).is_err());
        assert_eq!(ca.server_config(&["a.test"], &["h2", "http/1.1"]).unwrap().alpn_protocols.len(), 2);
    }
}
