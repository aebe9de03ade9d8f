//! SOCKS4 and 4a: recognised, and refused in their own words, so that the client prints something.
//!
//! They carry no password, so they cannot say whose session they belong to. Nothing after the version is read.

use crate::{decide::Reason, failure::Failure};

/// The first byte of every SOCKS4 and 4a request.
pub const VERSION: u8 = 4;

/// The refusal: VN 0, CD 91 ("request rejected or failed"), and the six bytes of DSTPORT and DSTIP that a client
/// ignores.
pub const REFUSAL: [u8; 8] = [0x00, 0x5b, 0, 0, 0, 0, 0, 0];

/// The refusal, for the record.
pub fn failure() -> Failure {
    Failure::new(Reason::Unsupported, "this proxy does not speak SOCKS4; use `socks5h://`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_is_a_whole_socks4_reply() {
        assert_eq!(REFUSAL, *b"\x00\x5b\x00\x00\x00\x00\x00\x00");
        assert_eq!(failure().reason, Reason::Unsupported);
    }
}
