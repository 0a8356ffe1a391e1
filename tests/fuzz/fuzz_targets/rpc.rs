//! Any bytes as what a connection between nodes carries.
#![no_main]

use blockyard::rpc::decode_untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = decode_untrusted(data);
});
