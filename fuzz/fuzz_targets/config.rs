//! `cargo +nightly fuzz run config`

#![no_main]

#[path = "../invariants/config.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|data: &[u8]| invariants::check(data));
