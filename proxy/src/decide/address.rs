//! The guard's table: addresses that names may not lead to.
//!
//! One classifier for literals and for every resolved address, over the IANA special-purpose registries
//! (RFC 6890) and the metadata services of the clouds. What may lift a row is not here but in `permit`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of a denied address, as metrics, records and sentences name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AddressClass {
    /// A cloud metadata service; no rule lifts it.
    Metadata,
    /// One of the proxy's own listeners; no rule lifts it.
    OwnListener,
    /// An address that a deny rule names.
    DeniedByRule,
    /// `0.0.0.0`, `::`.
    Unspecified,
    /// The rest of `0.0.0.0/8` (RFC 791).
    ThisNetwork,
    /// `127.0.0.0/8`, `::1`.
    Loopback,
    /// `10.0.0.0/8`, `172.16.0.0/12`, `192.168.0.0/16` (RFC 1918).
    Private,
    /// `100.64.0.0/10`, behind a carrier's NAT (RFC 6598).
    Shared,
    /// `169.254.0.0/16`, `fe80::/10`.
    LinkLocal,
    /// `192.0.0.0/24`, but for its two anycast addresses (RFC 6890).
    ProtocolAssignment,
    /// `192.0.2.0/24`, `198.51.100.0/24`, `203.0.113.0/24`, `2001:db8::/32`, `3fff::/20`.
    Documentation,
    /// `198.18.0.0/15`, `2001:2::/48`.
    Benchmarking,
    /// `224.0.0.0/4`, `ff00::/8`.
    Multicast,
    /// `240.0.0.0/4`, broadcast included.
    Reserved,
    /// `::/96`: an IPv4 address in a form that was given up (RFC 4291 section 2.5.5.1).
    Ipv4Compatible,
    /// `::ffff:0:0:0/96`: stateless translation (RFC 2765).
    Ipv4Translated,
    /// `64:ff9b::/96`, `64:ff9b:1::/48`: an IPv4 address behind a translator (RFC 6052, RFC 8215).
    Nat64,
    /// `100::/64`, `100:0:0:1::/64`: discarded (RFC 6666, RFC 9780).
    Discard,
    /// `2001::/32`: tunnels to an IPv4 address (RFC 4380).
    Teredo,
    /// `2001:10::/28`, `2001:20::/28`: identifiers, not places (RFC 4843, RFC 7343).
    Orchid,
    /// `2002::/16`, and the relays of `192.88.99.0/24` (RFC 3056, RFC 7526).
    SixToFour,
    /// `5f00::/16`: segment routing (RFC 9602).
    SegmentRouting,
    /// `fc00::/7` (RFC 4193).
    UniqueLocal,
    /// `fec0::/10` (RFC 3879).
    SiteLocal,
    /// An interface id that embeds an IPv4 address (RFC 5214), below any prefix.
    Isatap,
}

impl AddressClass {
    /// Every class, in the order of the documents.
    pub const ALL: [Self; 25] = [
        Self::Metadata,
        Self::OwnListener,
        Self::DeniedByRule,
        Self::Unspecified,
        Self::ThisNetwork,
        Self::Loopback,
        Self::Private,
        Self::Shared,
        Self::LinkLocal,
        Self::ProtocolAssignment,
        Self::Documentation,
        Self::Benchmarking,
        Self::Multicast,
        Self::Reserved,
        Self::Ipv4Compatible,
        Self::Ipv4Translated,
        Self::Nat64,
        Self::Discard,
        Self::Teredo,
        Self::Orchid,
        Self::SixToFour,
        Self::SegmentRouting,
        Self::UniqueLocal,
        Self::SiteLocal,
        Self::Isatap,
    ];

    /// The stable word for it.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::OwnListener => "own-listener",
            Self::DeniedByRule => "denied-by-rule",
            Self::Unspecified => "unspecified",
            Self::ThisNetwork => "this-network",
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::Shared => "shared",
            Self::LinkLocal => "link-local",
            Self::ProtocolAssignment => "protocol-assignment",
            Self::Documentation => "documentation",
            Self::Benchmarking => "benchmarking",
            Self::Multicast => "multicast",
            Self::Reserved => "reserved",
            Self::Ipv4Compatible => "ipv4-compatible",
            Self::Ipv4Translated => "ipv4-translated",
            Self::Nat64 => "nat64",
            Self::Discard => "discard",
            Self::Teredo => "teredo",
            Self::Orchid => "orchid",
            Self::SixToFour => "6to4",
            Self::SegmentRouting => "segment-routing",
            Self::UniqueLocal => "unique-local",
            Self::SiteLocal => "site-local",
            Self::Isatap => "isatap",
        }
    }

    /// With its article, as it ends the sentence `10.0.0.1:80 is …`.
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Metadata => "a cloud metadata service",
            Self::OwnListener => "this proxy itself",
            Self::DeniedByRule => "an address that a rule denies",
            Self::Unspecified => "the unspecified address",
            Self::ThisNetwork => "a this-network address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::Shared => "a shared (carrier NAT) address",
            Self::LinkLocal => "a link-local address",
            Self::ProtocolAssignment => "a protocol assignment",
            Self::Documentation => "a documentation address",
            Self::Benchmarking => "a benchmarking address",
            Self::Multicast => "a multicast address",
            Self::Reserved => "a reserved address",
            Self::Ipv4Compatible => "an ipv4-compatible address",
            Self::Ipv4Translated => "an ipv4-translated address",
            Self::Nat64 => "a nat64 address",
            Self::Discard => "a discard address",
            Self::Teredo => "a teredo address",
            Self::Orchid => "an orchid identifier",
            Self::SixToFour => "a 6to4 address",
            Self::SegmentRouting => "a segment-routing address",
            Self::UniqueLocal => "a unique-local address",
            Self::SiteLocal => "a site-local address",
            Self::Isatap => "an isatap address",
        }
    }
}

/// The class of an address that names may not lead to; `None` for a public one.
///
/// IPv4-mapped IPv6 is unwrapped first. The two classes that depend on more than the address
/// ([`AddressClass::OwnListener`], [`AddressClass::DeniedByRule`]) are never the answer here.
pub fn classify(addr: IpAddr) -> Option<AddressClass> {
    if is_metadata(addr) { Some(AddressClass::Metadata) } else { special_use(addr) }
}

/// The same without the metadata services, for an operator who allows them.
pub(super) fn special_use(addr: IpAddr) -> Option<AddressClass> {
    match addr.to_canonical() {
        IpAddr::V4(addr) => special_v4(addr),
        IpAddr::V6(addr) => special_v6(addr),
    }
}

/// Whether a cloud's metadata service answers there, also when the IPv4 address is embedded in a translated or
/// tunnelled one: an operator who admits a translator's prefix does not mean this.
pub(super) fn is_metadata(addr: IpAddr) -> bool {
    let addr = addr.to_canonical();
    is_metadata_itself(addr) || embedded_v4(addr).any(|inner| is_metadata_itself(IpAddr::V4(inner)))
}

fn is_metadata_itself(addr: IpAddr) -> bool {
    match addr {
        IpAddr::V4(addr) => matches!(
            addr.octets(),
            // AWS, Azure, GCP, OCI, DigitalOcean …: the instance; ECS tasks; EKS pod identity; AWS's resolver.
            [169, 254, 169, 254 | 253] | [169, 254, 170, 2 | 23]
            // Alibaba; Azure's wire server; Oracle.
            | [100, 100, 100, 200] | [168, 63, 129, 16] | [192, 0, 0, 192]
        ),
        // AWS; GCP.
        IpAddr::V6(addr) => {
            matches!(
                addr.segments(),
                [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254] | [0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x254]
            )
        }
    }
}

/// The IPv4 addresses that a translated or tunnelled one may lead to: one, but for the local NAT64 prefix (RFC 8215),
/// which is a /48 to some translators and cut into /96 by others (RFC 6052 section 2.2).
pub(super) fn embedded_v4(addr: IpAddr) -> impl Iterator<Item = Ipv4Addr> {
    let segments = match addr {
        IpAddr::V6(addr) => addr.segments(),
        IpAddr::V4(_) => [0; 8],
    };
    let from = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    let leads_on = |addr| {
        matches!(
            special_v6(addr),
            Some(
                AddressClass::Nat64
                    | AddressClass::Ipv4Compatible
                    | AddressClass::Ipv4Translated
                    | AddressClass::Isatap
            )
        ) || is_isatap(addr.segments())
    };
    let first = match (addr, segments) {
        (IpAddr::V4(_), _) => None,
        (_, [0x2002, high, low, ..]) => Some(from(high, low)),
        // Teredo hides its client's address by inverting the bits (RFC 4380 section 4).
        (_, [0x2001, 0, _, _, _, _, high, low]) => Some(from(!high, !low)),
        (IpAddr::V6(addr), [.., high, low]) => leads_on(addr).then(|| from(high, low)),
    };
    let second = match segments {
        // Behind a /48: octets 6 and 7, then 9 and 10 around the `u` octet.
        [0x64, 0xff9b, 1, high, middle, low, ..] => Some(from(high, (middle << 8) | (low >> 8))),
        _ => None,
    };
    first.into_iter().chain(second)
}

fn special_v4(addr: Ipv4Addr) -> Option<AddressClass> {
    use AddressClass as Class;
    Some(match addr.octets() {
        [0, 0, 0, 0] => Class::Unspecified,
        [0, ..] => Class::ThisNetwork,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Class::Private,
        [100, 64..=127, ..] => Class::Shared,
        [127, ..] => Class::Loopback,
        [169, 254, ..] => Class::LinkLocal,
        // Port Control Protocol and TURN anycast: the two that the registry marks as globally reachable.
        [192, 0, 0, 9 | 10] => return None,
        [192, 0, 0, _] => Class::ProtocolAssignment,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Class::Documentation,
        [192, 88, 99, _] => Class::SixToFour,
        [198, 18 | 19, ..] => Class::Benchmarking,
        [224..=239, ..] => Class::Multicast,
        [240..=255, ..] => Class::Reserved,
        _ => return None,
    })
}

fn special_v6(addr: Ipv6Addr) -> Option<AddressClass> {
    use AddressClass as Class;
    let segments = addr.segments();
    Some(match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => Class::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => Class::Loopback,
        [0, 0, 0, 0, 0, 0, ..] => Class::Ipv4Compatible,
        [0, 0, 0, 0, 0xffff, 0, ..] => Class::Ipv4Translated,
        [0x64, 0xff9b, 0, 0, 0, 0, ..] | [0x64, 0xff9b, 1, ..] => Class::Nat64,
        [0x100, 0, 0, 0 | 1, ..] => Class::Discard,
        [0x2001, 0, ..] => Class::Teredo,
        [0x2001, 2, 0, ..] => Class::Benchmarking,
        [0x2001, 0x10..=0x2f, ..] => Class::Orchid,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0x0fff, ..] => Class::Documentation,
        [0x2002, ..] => Class::SixToFour,
        [0x5f00, ..] => Class::SegmentRouting,
        [0xfc00..=0xfdff, ..] => Class::UniqueLocal,
        [0xfe80..=0xfebf, ..] => Class::LinkLocal,
        [0xfec0..=0xfeff, ..] => Class::SiteLocal,
        [0xff00..=0xffff, ..] => Class::Multicast,
        _ if is_isatap(segments) => Class::Isatap,
        _ => return None,
    })
}

/// RFC 5214 section 6.1: `::0:5efe:a.b.c.d`, or `::200:5efe:a.b.c.d` when the embedded address is unique.
const fn is_isatap(segments: [u16; 8]) -> bool {
    matches!(segments, [_, _, _, _, 0 | 0x200, 0x5efe, _, _])
}
