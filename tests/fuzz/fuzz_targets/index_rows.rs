//! Any bytes as each kind of row: accepted or refused, never a panic.
#![no_main]

use blockyard::index::objects::decode_untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    assert!(decode_untrusted(data) < 64);
});
