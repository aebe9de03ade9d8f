//! One question in every protocol: may this target be reached?

use std::net::{IpAddr, SocketAddr};

use exeat_loadtest::client::{
    ConnectError, Credentials, Exchange, SocksError, SocksHost, connect, socks5_connect,
};

use super::{Exeat, SOON};

/// A way to ask the proxy for a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// HTTP CONNECT.
    Connect,
    /// `GET http://…`.
    Http,
    /// SOCKS5 with the host as text, also when it is an address.
    SocksName,
    /// SOCKS5 with the host as an address; the same as [`Way::SocksName`] for a name.
    SocksAddress,
}

/// What the proxy said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// It let us through, and (for plain HTTP) the target answered.
    Yes,
    /// It did not.
    No {
        /// The status of HTTP, or the REP of SOCKS5.
        code: u16,
        /// `X-Exeat-Error`; SOCKS5 has no place for it.
        reason: Option<String>,
    },
}

/// `host:port`, with brackets where they are due.
pub(crate) fn authority(host: &str, port: u16) -> String {
    match host.parse() {
        Ok(IpAddr::V6(addr)) => format!("[{addr}]:{port}"),
        Ok(IpAddr::V4(_)) | Err(_) => format!("{host}:{port}"),
    }
}

impl Way {
    pub(crate) const ALL: [Self; 4] = [Self::Connect, Self::Http, Self::SocksName, Self::SocksAddress];

    /// Ways that end in a tunnel, without a protocol of the proxy's own in it.
    pub(crate) const TUNNELS: [Self; 3] = [Self::Connect, Self::SocksName, Self::SocksAddress];

    /// Its word in records and metrics.
    pub(crate) fn protocol(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Http => "http",
            Self::SocksName | Self::SocksAddress => "socks5",
        }
    }

    /// Asks with the credentials of its session.
    pub(crate) fn ask(self, exeat: &Exeat, host: &str, port: u16) -> Said {
        self.ask_as(exeat.proxy(), exeat.login(), host, port)
    }

    /// Asks with any credentials, or none.
    pub(crate) fn ask_as(
        self,
        proxy: SocketAddr,
        login: Option<&Credentials>,
        host: &str,
        port: u16,
    ) -> Said {
        let socks_host = match (self, host.parse::<IpAddr>()) {
            (Self::SocksAddress, Ok(addr)) => SocksHost::from(addr),
            _ => SocksHost::from(host),
        };
        match self {
            Self::Connect => match connect(proxy, &authority(host, port), login) {
                Ok(_) => Said::Yes,
                Err(ConnectError::Refused(answer)) => Said::No {
                    code: answer.status,
                    reason: answer.header("X-Exeat-Error").map(str::to_owned),
                },
                Err(error @ (ConnectError::Malformed(_) | ConnectError::Io(_))) => {
                    panic!("CONNECT {host}:{port}: {error}")
                }
            },
            Self::Http => {
                let authority = authority(host, port);
                let login =
                    login.map_or(String::new(), |l| format!("Proxy-Authorization: {}\r\n", l.basic()));
                let request = format!(
                    "GET http://{authority}/ HTTP/1.1\r\nHost: {authority}\r\n{login}Connection: close\r\n\r\n"
                );
                let answer = Exchange::new().timeout(SOON).run(proxy, request).unwrap().answer();
                match answer.header("X-Exeat-Error") {
                    Some(reason) => Said::No { code: answer.status, reason: Some(reason.to_owned()) },
                    None => Said::Yes,
                }
            }
            Self::SocksName | Self::SocksAddress => match socks5_connect(proxy, socks_host, port, login) {
                Ok(_) => Said::Yes,
                Err(SocksError::Refused(reply)) => Said::No { code: reply.code.into(), reason: None },
                Err(
                    error @ (SocksError::NoMethod(_)
                    | SocksError::LoginRefused(_)
                    | SocksError::Malformed(_)
                    | SocksError::Io(_)),
                ) => panic!("SOCKS5 to {host}:{port}: {error}"),
            },
        }
    }

    /// The refusal by policy that this way has for a reason.
    pub(crate) fn refusal(self, reason: &str) -> Said {
        match self {
            Self::Connect | Self::Http => Said::No { code: 403, reason: Some(reason.to_owned()) },
            Self::SocksName | Self::SocksAddress => Said::No { code: 2, reason: None },
        }
    }

    /// The failure to reach a target that was permitted.
    pub(crate) fn failure(self, status: u16, reason: &str, rep: u16) -> Said {
        match self {
            Self::Connect | Self::Http => Said::No { code: status, reason: Some(reason.to_owned()) },
            Self::SocksName | Self::SocksAddress => Said::No { code: rep, reason: None },
        }
    }
}
