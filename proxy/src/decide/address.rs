//! Addresses that names may not lead to (the guard's table).

use std::net::IpAddr;

/// The kind of a special-use address, as metrics and records name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum AddressClass {
    /// A cloud metadata service.
    Metadata,
    /// 127.0.0.0/8, ::1.
    Loopback,
    /// Stand-in until the table is written.
    Special,
}

impl AddressClass {
    /// Every class, in the order of the documents.
    pub const ALL: [Self; 3] = [Self::Metadata, Self::Loopback, Self::Special];

    /// The stable word for it.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Loopback => "loopback",
            Self::Special => "special",
        }
    }
}

/// The class of a special-use address; `None` for a public one.
pub fn classify(addr: IpAddr) -> Option<AddressClass> {
    addr.to_canonical().is_loopback().then_some(AddressClass::Loopback)
}
