//! How much of a file is read and believed, each bound with its reason.
//!
//! Not here: the limits of the proxy at work (`proxy/limits`).

/// The largest `exeat.toml`. Two million rules of thirty bytes fit; a disk image named by mistake does not.
pub const MAX_CONFIG_BYTES: usize = 64 << 20;

/// The most tokens of TOML in a file. The parser keeps some 60 bytes for each, so that a file of nothing but
/// commas would take gigabytes; two million rules, one on a line, are six million tokens.
pub const MAX_TOKENS: usize = 10_000_000;

/// The most rules of all profiles together, after `extends`. The compiled index is measured up to a million.
pub const MAX_RULES: usize = 2_000_000;

/// The longest rule, address or other word. A name has at most 253 bytes as A-labels and some 1,000 as Unicode.
pub const MAX_WORD_BYTES: usize = 1_024;

/// The longest path: Linux's `PATH_MAX`.
pub const MAX_PATH_BYTES: usize = 4_096;

/// The most profiles; each is compiled and each has its line in listings.
pub const MAX_PROFILES: usize = 10_000;

/// The most sessions that files may name; a fleet's worth.
pub const MAX_SESSIONS: usize = 100_000;

/// The largest sessions file: [`MAX_SESSIONS`] lines with the longest id, token and profile name, and comments.
pub const MAX_SESSIONS_BYTES: usize = 64 << 20;

/// The most addresses to listen on, or DNS servers to ask: each costs a socket and a line in messages.
pub const MAX_ADDRESSES: usize = 64;

/// The most port ranges of one rule, and the most ranges it may resolve to: they are searched one by one.
pub const MAX_RANGES_PER_RULE: usize = 256;

/// The longest label of a session; it is printed in every record.
pub const MAX_LABEL_BYTES: usize = 128;

/// How many errors, and how many warnings, one answer shows. Who has more will not read them.
pub const MAX_SHOWN: usize = 20;

/// How wide a quoted line of a file may get before it is clipped around the fault.
pub const MAX_EXCERPT_CHARS: usize = 100;
