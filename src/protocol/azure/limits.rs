//! Body limits by service version.
//!
//! Source: "Scalability and performance targets for Blob storage", "Put Blob", "Put Block", "Append
//! Block".

use crate::protocol::azure::ServiceVersion;

const MIB: u64 = 1024 * 1024;
const LARGE_SINCE: ServiceVersion = ServiceVersion::new(2019, 12, 12);
const MEDIUM_SINCE: ServiceVersion = ServiceVersion::new(2016, 5, 31);
const LARGE_APPENDS_SINCE: ServiceVersion = ServiceVersion::new(2022, 11, 2);

/// Bytes of a Put Page body.
pub(super) const PUT_PAGE_BYTES_MAX: u64 = 4 * MIB;

/// Bytes of a Put Blob body.
pub(super) fn put_blob(version: ServiceVersion) -> u64 {
    by_version(version, [5000, 256, 64])
}

/// Bytes of an Append Block body.
pub(super) fn append_block(version: ServiceVersion) -> u64 {
    if version >= LARGE_APPENDS_SINCE { 100 * MIB } else { 4 * MIB }
}

/// Bytes of a Put Block body.
pub(super) fn put_block(version: ServiceVersion) -> u64 {
    by_version(version, [4000, 100, 4])
}

fn by_version(version: ServiceVersion, [large, medium, small]: [u64; 3]) -> u64 {
    let mebibytes = if version >= LARGE_SINCE {
        large
    } else if version >= MEDIUM_SINCE {
        medium
    } else {
        small
    };
    mebibytes * MIB
}
