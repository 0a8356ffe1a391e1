//! Any text as each of the values of headers and names; an accepted value is written as it was
//! read.
#![no_main]

use blockyard::protocol::azure::ServiceVersion;
use blockyard::protocol::azure::block_id;
use blockyard::types::AccountId;
use blockyard::types::AccountName;
use blockyard::types::BlobKey;
use blockyard::types::BlobName;
use blockyard::types::Collation;
use blockyard::types::ContainerId;
use blockyard::types::ContainerName;
use blockyard::types::Crc64;
use blockyard::types::Etag;
use blockyard::types::Md5;
use blockyard::types::Metadata;
use blockyard::types::RoutingKey;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    drop(RoutingKey::of_row(&Bytes::copy_from_slice(data)));
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(etag) = Etag::parse(text) {
        assert_eq!(Etag::parse(&etag.to_string()), Some(etag));
    }
    if let Ok(id) = block_id::read(text) {
        assert_eq!(block_id::write(&id), text);
    }
    if let Some(md5) = Md5::from_base64(text) {
        assert_eq!(md5.to_base64(), text);
    }
    if let Some(crc64) = Crc64::from_base64(text) {
        assert_eq!(crc64.to_base64(), text);
    }
    if let Some(version) = ServiceVersion::parse(text) {
        assert_eq!(version.to_string(), text);
    }
    if let Ok(name) = AccountName::new(text) {
        assert_eq!(name.as_str(), text);
    }
    if let Ok(name) = ContainerName::new(text) {
        assert_eq!(name.as_str(), text);
    }
    if let Ok(metadata) = Metadata::new(vec![(text.to_owned(), text.to_owned())]) {
        assert!(metadata.iter().all(|(name, value)| name == text && value == text.as_bytes()));
    }
    let Ok(name) = BlobName::new(text) else { return };
    for collation in [Collation::Utf16, Collation::Utf8] {
        let (account, container) = (AccountId::new(1), ContainerId::new(2));
        let key = RoutingKey::blob(&BlobKey { account, container, collation, name: name.clone() });
        let row = [key.as_bytes().as_ref(), b"more"].concat();
        assert_eq!(RoutingKey::of_row(&Bytes::from(row)), Some(key));
    }
});
