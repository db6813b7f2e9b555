#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oracle_agent::testkit::fuzz::snapshot(data));
