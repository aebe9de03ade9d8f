//! `cargo +nightly fuzz run hello`

#![no_main]

#[path = "../invariants/hello.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|data: &[u8]| invariants::check(data));
