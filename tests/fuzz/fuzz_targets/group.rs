//! Any bytes as the record of a group: refused, or exactly the bytes of the record that was read.
#![no_main]

use blockyard::capacity::groups::GroupRecord;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(record) = GroupRecord::decode(data) {
        assert_eq!(record.encode(), data);
        let closed = record.closed();
        assert_eq!(GroupRecord::decode(&closed.encode()), Ok(closed));
    }
});
