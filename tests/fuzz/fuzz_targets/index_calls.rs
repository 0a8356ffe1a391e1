//! Any bytes as what processes say to each other about the index.
#![no_main]

use blockyard::index::remote::decode_untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    assert!(decode_untrusted(data) <= 20);
});
