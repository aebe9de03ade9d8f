//! Socket addresses as people write them, with errors that say the right form.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::{diagnostic::shown, error::Fault, ports::Port};

/// The port of the Domain Name System (RFC 1035 section 4.2).
const DNS_PORT: u16 = 53;

/// `ADDRESS:PORT` to listen on; port 0 lets the system choose.
pub(crate) fn listener(text: &str) -> Result<SocketAddr, Fault> {
    parse(text, 3128)
}

/// `ADDRESS` or `ADDRESS:PORT` of a DNS server.
pub(crate) fn resolver(text: &str) -> Result<SocketAddr, Fault> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        if bare.len() == text.len()
            && let Some((host, port)) = split_ipv6(text).filter(|(_, port)| port.get() == DNS_PORT)
        {
            let message = format!("`{}` is one IPv6 address, or an address and a port", shown(text));
            return fault(text, 0, message, Some(format!("write `[{host}]:{port}` or `[{text}]`")));
        }
        return Ok(SocketAddr::new(address, DNS_PORT));
    }
    match parse(text, DNS_PORT) {
        Ok(address) if address.port() == 0 => fault(
            text,
            text.len() - 1,
            "a DNS server's port is not 0",
            Some(format!("leave it out for {DNS_PORT}")),
        ),
        result => result,
    }
}

/// `example_port` is what the hints say.
fn parse(text: &str, example_port: u16) -> Result<SocketAddr, Fault> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        // `080` is read as 80 by the standard library, and as an octal number by people.
        let port = text.rsplit(':').next().unwrap_or_default();
        if port == "0" || Port::parse_bytes(port.as_bytes()).is_some() {
            return Ok(address);
        }
    }
    let shown_text = shown(text);
    if let Some((scheme, rest)) = text.split_once("://") {
        let rest = rest.trim_end_matches('/');
        let hint = rest.parse::<SocketAddr>().ok().map(|address| format!("write `{address}`"));
        return fault(
            text,
            0,
            format!("`{shown_text}` is a URL, and only an address and a port belong here"),
            hint,
        )
        .map_err(|fault| Fault { span: 0..scheme.len() + 3, ..fault });
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    match bare.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) if bare.len() == text.len() => {
            let hint = match split_ipv6(text) {
                Some((address, port)) => format!("write `[{address}]:{port}`"),
                None => format!("write `[{address}]:{example_port}`"),
            };
            let message = format!("`{shown_text}`: an IPv6 address needs brackets, and a port after them");
            return fault(text, 0, message, Some(hint));
        }
        Ok(address) => {
            let hint = format!("write `{}`", SocketAddr::new(address, example_port));
            return fault(text, 0, format!("`{shown_text}` has no port"), Some(hint));
        }
        Err(_) => {}
    }
    if text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty() {
        let hint = format!("write `127.0.0.1:{shown_text}`");
        return fault(text, 0, format!("`{shown_text}` has no address"), Some(hint));
    }
    let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
    let port_at = host.len() + 1;
    let example = Port::parse_bytes(port.as_bytes()).map_or(example_port, Port::get);
    if host.is_empty() {
        let hint = format!("write `127.0.0.1:{example}`, or `0.0.0.0:{example}` for every interface");
        return fault(text, 0, format!("`{shown_text}` has no address"), Some(hint));
    }
    if host == "*" {
        let hint = format!("write `0.0.0.0:{example}` or `[::]:{example}` for every interface");
        return fault(text, 0, "`*` is not an address", Some(hint));
    }
    if host.eq_ignore_ascii_case("localhost") {
        let hint = format!("write `127.0.0.1:{example}` or `[::1]:{example}`");
        return fault(text, 0, "`localhost` is a name, and an address belongs here", Some(hint))
            .map_err(|fault| Fault { span: 0..host.len(), ..fault });
    }
    let is_address = format!("{host}:1").parse::<SocketAddr>().is_ok();
    if is_address {
        return fault(
            text,
            port_at,
            format!("`{}` is not a port", shown(port)),
            Some("a port is 1 to 65535".into()),
        );
    }
    let hint = Some(format!("write an address and a port, such as `127.0.0.1:{example}`"));
    fault(text, 0, format!("`{shown_text}` is not an address with a port"), hint)
}

/// Reads `::1:3128` as it was probably meant.
fn split_ipv6(text: &str) -> Option<(Ipv6Addr, Port)> {
    let (address, port) = text.rsplit_once(':')?;
    // Four digits or fewer are as well a part of the address: only where the rest is an address of its own.
    Some((address.parse().ok()?, Port::parse_bytes(port.as_bytes())?))
}

fn fault(
    text: &str,
    from: usize,
    message: impl Into<String>,
    hint: Option<String>,
) -> Result<SocketAddr, Fault> {
    Err(Fault { message: message.into(), span: from..text.len(), hint })
}
