//! The promises of `docs/guarantees.md`, one module each.
#![expect(clippy::unwrap_used, reason = "tests")]

mod g12_exact_bytes;
