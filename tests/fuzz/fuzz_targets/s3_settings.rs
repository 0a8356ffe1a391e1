//! Any document about tags or settings of a bucket: read within its limits, or refused.
#![no_main]

use blockyard::protocol::s3::decode_untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _taken = decode_untrusted(data);
});
