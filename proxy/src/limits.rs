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

/// Early data (RFC 8446 section 4.2.10) between a ClientHello and a second one. Servers pass over 16 KiB of it.
pub const MAX_EARLY_DATA: usize = 64 * 1024;

/// One DNS lookup, all servers and retries together.
pub const DNS_TIMEOUT: Duration = Duration::from_secs(5);

/// Addresses kept of one DNS answer; more is an attack or a mistake, and happy eyeballs would not try them.
pub const MAX_ADDRESSES: usize = 32;

/// Names whose answer is remembered; a client that is allowed `*.example.com` can make up any number of them.
pub const MAX_CACHED_NAMES: usize = 10_000;

/// Names looked up at once. Each may hold a few sockets until it is answered or `DNS_TIMEOUT` has passed.
pub const MAX_LOOKUPS: usize = 1024;

/// An answer is used for at least this long, whatever its TTL, so that a TTL of 0 is not a query per connection.
pub const MIN_TTL: Duration = Duration::from_secs(1);

/// An answer is used for at most this long, whatever its TTL.
pub const MAX_TTL: Duration = Duration::from_secs(60 * 60);

/// RFC 2308 section 5: that a name does not exist is remembered for as long as its zone says, up to this, since
/// a person who has just added the name is waiting.
pub const MAX_NEGATIVE_TTL: Duration = Duration::from_secs(30);

/// RFC 9520 section 3.2: a failed lookup is remembered for at least a second.
pub const FAILURE_TTL: Duration = Duration::from_secs(1);

/// A DNS server that has not answered after this is helped by the next one.
pub const SERVER_DELAY: Duration = Duration::from_secs(1);

/// DNS servers that are asked; resolv.conf(5) allows three.
pub const MAX_SERVERS: usize = 8;

/// Aliases (CNAME) followed from a name to its addresses; beyond this it is a loop or an attack.
pub const MAX_ALIASES: usize = 16;

/// How often the hosts file and resolv.conf are looked at for a change.
pub const FILE_CHECK: Duration = Duration::from_secs(5);

/// The hosts file; lists of blocked names kept in it reach some megabytes.
pub const MAX_HOSTS_FILE: u64 = 16 * 1024 * 1024;

/// resolv.conf; a usual one has a few hundred bytes.
pub const MAX_RESOLV_CONF: u64 = 64 * 1024;

/// RFC 8305 section 5: the time between two connection attempts.
pub const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// RFC 8305 section 3: how long an IPv4 answer waits for the IPv6 one.
pub const RESOLUTION_DELAY: Duration = Duration::from_millis(50);

/// TCP keepalive: silence before the first probe. Below the idle limits of common NATs and load balancers.
pub const KEEPALIVE_TIME: Duration = Duration::from_secs(60);

/// TCP keepalive: the time between probes.
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// TCP keepalive: unanswered probes until the peer counts as gone.
pub const KEEPALIVE_PROBES: u32 = 4;

/// After a failure reply the client has this long to read it and leave.
pub const LINGER: Duration = Duration::from_secs(5);

/// Bytes that are read and thrown away while a client leaves; a client that still sends more is cut off.
pub const LINGER_BYTES: usize = 256 * 1024;

/// A client has this long to take an answer of ours; it fits the socket's buffer, so this is a dead client's time.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The first read of a connection: most heads and all greetings fit.
pub const FIRST_READ: usize = 4 * 1024;

/// A kept-alive client may be silent this long between two requests.
pub const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// Lookups of one session at once, a quarter of all: names whose servers are silent must not keep other sessions from
/// theirs.
pub const MAX_LOOKUPS_PER_SESSION: usize = MAX_LOOKUPS / 4;
