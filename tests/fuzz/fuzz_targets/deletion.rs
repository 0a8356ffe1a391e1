//! Any document of DeleteObjects or RestoreObject: read within its limits, or refused.
#![no_main]

use blockyard::protocol::model::operation::DELETIONS_MAX;
use blockyard::protocol::s3::deletions;
use blockyard::protocol::s3::errors::error_row;
use blockyard::protocol::s3::restore;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    match deletions::read(data) {
        Ok(read) => {
            assert!((1..=DELETIONS_MAX).contains(&read.items.len()));
            let bytes: usize = read.items.iter().map(|item| item.name.len()).sum();
            assert!(bytes <= data.len());
        }
        Err(error) => assert_eq!(error_row(error.reason).status, 400, "{error:?}"),
    }
    if let Err(error) = restore::read(data) {
        assert!(matches!(error_row(error.reason).status, 400 | 501), "{error:?}");
    }
});
