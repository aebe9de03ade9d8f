//! Real clients through the real proxy: each does one allowed request, byte for byte, and is refused another in words
//! that it shows.
//!
//! Every test runs in a private network with public-looking addresses, so that the guard of addresses is at its
//! default. The clients get nothing of the machine's own settings. Which interpreters are used can be said by
//! `EXEAT_TEST_PYTHON` and `EXEAT_TEST_NODE`; a client that is not there skips its test loudly, or fails under
//! `CI=true`.
#![expect(clippy::unwrap_used, reason = "tests")]

mod curl;
mod git;
mod http2;
mod node;
mod npm;
mod pip;
mod python;
mod wget;
mod world;
