//! `cargo +nightly fuzz run socks5`

#![no_main]

#[path = "../invariants/socks5.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|data: &[u8]| invariants::check(data));
