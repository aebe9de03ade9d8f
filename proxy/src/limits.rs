//! Every bound of the proxy on what a peer can make it hold or wait for, each with its reason.

use std::time::Duration;

/// A request head. Browsers and tools stay far below; 64 KiB is what Apache and nginx accept in practice.
pub const MAX_HEAD: usize = 64 * 1024;

/// A request target (the URI of a request line).
pub const MAX_URI: usize = 16 * 1024;

/// Header fields of one message.
pub const MAX_HEADERS: usize = 128;

/// A method name; the longest registered one (UPDATEREDIRECTREF) has 17 bytes.
pub const MAX_METHOD: usize = 32;

/// A TLS ClientHello with every extension in use, post-quantum key shares included, is below 4 KiB.
pub const MAX_CLIENT_HELLO: usize = 16 * 1024;

/// One DNS lookup, all servers and retries together.
pub const DNS_TIMEOUT: Duration = Duration::from_secs(5);

/// Addresses kept of one DNS answer; more is an attack or a mistake, and happy eyeballs would not try them.
pub const MAX_ADDRESSES: usize = 32;

/// RFC 8305 section 5: the time between two connection attempts.
pub const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// RFC 8305 section 3: how long an IPv4 answer waits for the IPv6 one.
pub const RESOLUTION_DELAY: Duration = Duration::from_millis(50);

/// After a failure reply the client has this long to read it and leave.
pub const LINGER: Duration = Duration::from_secs(5);
