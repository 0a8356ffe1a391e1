//! Any body of Put Block List: read within its limits, or refused.
#![no_main]

use blockyard::protocol::azure::errors::error_row;
use blockyard::protocol::azure::xml::block_list;
use blockyard::types::BLOCKS_COMMITTED_MAX;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    match block_list(data) {
        Ok(entries) => {
            assert!(entries.len() <= BLOCKS_COMMITTED_MAX && entries.len() <= data.len());
            assert!(entries.iter().all(|entry| (1..=64).contains(&entry.id.as_bytes().len())));
        }
        Err(error) => assert_eq!(error_row(error.reason).status, 400, "{error:?}"),
    }
});
