use arrow_array::cast::AsArray;
use arrow_array::types::TimestampSecondType;
use arrow_array::types::UInt64Type;
use arrow_ipc::reader::StreamReader;

use super::*;
use crate::protocol::model::facts::Change;
use crate::types::ContainerName;
use crate::types::ContentMd5;
use crate::types::Etag;
use crate::types::Md5;
use crate::types::Tags;

fn asked() -> ListBlobs {
    ListBlobs {
        container: ContainerName::new("con").unwrap(),
        prefix: None,
        delimiter: None,
        marker: None,
        start_from: None,
        end_before: None,
        after: None,
        exact: false,
        max_results: None,
        metadata: true,
        uncommitted: false,
        snapshots: false,
        versions: None,
        deleted: false,
        versions_only: false,
        tags: true,
        copy: false,
        retention: false,
        legal_hold: false,
        content_etag: false,
        columns: true,
    }
}

fn facts() -> BlobFacts {
    let change = Change {
        etag: Etag::parse("0x7").unwrap(),
        last_modified: Timestamp::from_iso("2026-11-28T01:00:00.5Z").unwrap(),
        version: None,
    };
    let mut facts = BlobFacts::new(change, change.last_modified, 100);
    facts.properties.content_md5 = ContentMd5::Plain(Md5::from_bytes([1; 16]));
    facts.metadata = Metadata::new([("Key".to_owned(), b"v".to_vec())]).unwrap();
    facts.tags = Tags::new(vec![("t".to_owned(), "1".to_owned())]).unwrap();
    facts
}

fn item(name: &str, facts: BlobFacts) -> BlobItem {
    BlobItem::Blob { name: name.to_owned(), revision: Revision::Current, facts: Box::new(facts) }
}

/// The batch, and the marker.
fn read(body: &Bytes) -> (RecordBatch, String) {
    let mut reader = StreamReader::try_new(body.as_ref(), None).unwrap();
    let marker = reader.schema().metadata()["NextMarker"].clone();
    let batch = reader.next().unwrap().unwrap();
    assert!(reader.next().is_none());
    (batch, marker)
}

#[test]
fn entries_are_rows_and_values_columns() {
    let prefix = BlobItem::Prefix { name: "p/".to_owned() };
    let staged = BlobItem::Uncommitted { name: "u\u{1}".to_owned() };
    let items = vec![item("a&<", facts()), prefix, staged];
    let listing =
        BlobListing { items, next: Some(Bytes::from_static(b"m&1")), ..BlobListing::default() };
    let (batch, marker) = read(&blobs(&listing, &asked()).unwrap());
    assert_eq!((batch.num_rows(), marker.as_str()), (3, "bSYx"));
    let text = |name: &str| -> Vec<Option<String>> {
        let column = batch.column_by_name(name).unwrap();
        column.as_string::<i32>().iter().map(|value| value.map(str::to_owned)).collect()
    };
    let some = |value: &str| Some(value.to_owned());
    assert_eq!(text("Name"), [some("a&<"), some("p/"), some("u\u{1}")]);
    assert_eq!(text("ResourceType"), [None, some("blobprefix"), None]);
    assert_eq!(text("Content-MD5"), [some("AQEBAQEBAQEBAQEBAQEBAQ=="), None, None]);
    assert_eq!(text("BlobType"), [some("BlockBlob"), None, some("BlockBlob")]);
    assert_eq!(text("LeaseState"), [some("available"), None, some("available")]);
    let len = batch.column_by_name("Content-Length").unwrap().as_primitive::<UInt64Type>();
    assert_eq!(len.iter().collect::<Vec<_>>(), [Some(100), None, Some(0)]);
    let time = batch.column_by_name("Last-Modified").unwrap();
    assert_eq!(time.as_primitive::<TimestampSecondType>().value(0), 1_795_827_600);
    for (name, key, value) in [("Metadata", "Key", "v"), ("Tags", "t", "1")] {
        let maps = batch.column_by_name(name).unwrap().as_map();
        assert_eq!((maps.is_valid(0), maps.is_valid(1), maps.is_valid(2)), (true, false, false));
        let entries = maps.value(0);
        let of = |at: usize| entries.column(at).as_string::<i32>().value(0).to_owned();
        assert_eq!((of(0).as_str(), of(1).as_str()), (key, value));
    }
    assert!(batch.column_by_name("Snapshot").is_none(), "no row has a value");
}

#[test]
fn what_was_not_asked_for_or_is_under_a_key_is_not_shown() {
    let mut secret = facts();
    secret.encryption = Some(Encryption::Customer([3; 32]));
    let listing = BlobListing { items: vec![item("a", secret)], ..BlobListing::default() };
    let (batch, marker) = read(&blobs(&listing, &asked()).unwrap());
    assert_eq!(marker, "");
    assert!(batch.column_by_name("Metadata").is_none());
    assert!(batch.column_by_name("Content-MD5").is_none());
    assert!(batch.column_by_name("CustomerProvidedKeySha256").is_some());
    let listing = BlobListing { items: vec![item("a", facts())], ..BlobListing::default() };
    let plain = ListBlobs { metadata: false, tags: false, ..asked() };
    let (batch, _) = read(&blobs(&listing, &plain).unwrap());
    assert!(batch.column_by_name("Metadata").is_none());
    assert!(batch.column_by_name("Tags").is_none());
    assert!(batch.column_by_name("TagCount").is_some());
}

#[test]
fn an_empty_page_has_no_rows() {
    let (batch, marker) = read(&blobs(&BlobListing::default(), &asked()).unwrap());
    assert_eq!((batch.num_rows(), marker.as_str()), (0, ""));
}
