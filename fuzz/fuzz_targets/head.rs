//! `cargo +nightly fuzz run head`

#![no_main]

#[path = "../invariants/head.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|data: &[u8]| invariants::check(data));
