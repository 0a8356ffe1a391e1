//! Any document of CompleteMultipartUpload: read within its limits, or refused.
#![no_main]

use blockyard::protocol::s3::completion::parts;
use blockyard::protocol::s3::errors::error_row;
use blockyard::types::UPLOAD_PARTS_MAX;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    match parts(data) {
        Ok(parts) => {
            let count = u32::try_from(parts.len()).expect("few parts");
            assert!((1..=UPLOAD_PARTS_MAX).contains(&count) && parts.len() <= data.len());
        }
        Err(error) => assert_eq!(error_row(error.reason).status, 400, "{error:?}"),
    }
});
