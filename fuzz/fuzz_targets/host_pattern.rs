//! `cargo +nightly fuzz run host_pattern`

#![no_main]

#[path = "../invariants/host_pattern.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|data: &[u8]| invariants::check(data));
