//! Versions, delete markers and the null version; uploads.

use super::*;
use crate::index::objects::keys::DeletedKey;
use crate::index::objects::keys::DeletedState;
use crate::index::objects::settings;
use crate::index::objects::values::BlobContent;
use crate::index::objects::values::Content;
use crate::index::objects::values::DeletedWork;
use crate::index::objects::values::NullVersion;
use crate::index::objects::values::StagedBlock;
use crate::index::record::BlobFields;
use crate::index::record::BlobRecord;
use crate::index::record::CompletedRecord;
use crate::index::record::ContainerRecord;
use crate::index::record::UploadRecord;

const OLDER: Timestamp = Timestamp::from_ticks(640_000_000_000_000_001);
const NEWER: Timestamp = Timestamp::from_ticks(640_000_000_000_000_002);
const UPLOAD: UploadId = UploadId::from_bytes(*b"an upload's id..");

fn blob() -> RoutingKey {
    RoutingKey::blob(&key("versioned"))
}

fn version(time: Timestamp, is_null: bool) -> BlobFields {
    BlobFields { version: Some(VersionId { time, is_null }), ..BlobFields::default() }
}

fn row_of(time: Timestamp, bytes: &'static [u8], fields: BlobFields) -> Bytes {
    let len = u64::try_from(bytes.len()).unwrap();
    let fields = Some(Box::new(fields));
    let record = BlobRecord { fields, ..BlobRecord::new(time, time, len, Crc64::of(bytes)) };
    let layout = Layout::Whole(Content::Inline(Bytes::from_static(bytes)));
    values::encode_blob(&record, &BlobContent { id_len: 0, layout })
}

impl Store {
    fn set(&mut self, family: Family, row: Bytes, value: Bytes) {
        self.partition.memory.rows.insert((family, row), value);
    }

    fn set_version(&mut self, time: Timestamp, value: Bytes) {
        self.set(Family::Versions, keys::version(&blob(), time), value);
    }
}

/// A null version below a delete marker, no current blob, and an upload with a part.
async fn versioned() -> Store {
    let mut store = Store::new().await;
    let marker = BlobFields { delete_marker: true, ..version(NEWER, false) };
    store.set_version(NEWER, row_of(NEWER, b"", marker));
    store.set_version(OLDER, row_of(OLDER, b"old", version(OLDER, true)));
    let null = values::encode(&NullVersion { committed: OLDER });
    store.set(Family::Versions, keys::null_version(&blob()), null);
    let upload =
        UploadRecord { blob: BlobRecord::new(NEWER, NEWER, 0, Crc64::EMPTY), fields: None };
    let upload = values::encode_record(&upload);
    store.set(Family::Staged, keys::upload(&blob(), UPLOAD), upload);
    let completed = CompletedRecord { completed: NEWER, fields: None };
    let other = UploadId::from_bytes([7; 16]);
    let row = keys::completed_upload(&blob(), other);
    store.set(Family::Staged, row, values::encode_record(&completed));
    let location = store.store(b"part").await;
    let part = StagedBlock {
        len: 4,
        crc64: Crc64::of(b"part"),
        time: NEWER,
        fields: None,
        content: Content::Stored(vec![location]),
    };
    store.set(Family::Staged, keys::part(&blob(), UPLOAD, 1), values::encode_record(&part));
    store
}

#[tokio::test]
async fn versions_and_uploads_are_verified() {
    let store = versioned().await;
    let report = store.check().await;
    assert_eq!(report.problems_count, 0, "{:?}", report.problems);
    assert_eq!((report.rows, report.blobs, report.staged_blocks, report.bytes), (6, 0, 1, 7));
    store.capacity.flip(EXTENT, 0, 3);
    let damaged = store.check().await;
    assert_eq!((damaged.problems_count, damaged.affected.blobs), (1, 1), "a part is read");

    let mut store = versioned().await;
    store.partition.memory.rows.remove(&(Family::Staged, keys::upload(&blob(), UPLOAD)));
    assert!(store.problems().await.contains("part 1 of upload"), "a part without its upload");
    let mut store = versioned().await;
    let stray =
        store.partition.memory.rows[&(Family::Staged, keys::part(&blob(), UPLOAD, 1))].clone();
    store.set(Family::Staged, keys::part(&blob(), UPLOAD, 10_001), stray);
    assert!(store.problems().await.contains("has no valid number"));

    let mut store = versioned().await;
    let wrong = version(NEWER, true);
    store.set_version(OLDER, row_of(OLDER, b"old", wrong));
    assert!(store.problems().await.contains("in the row of version"));

    let mut store = versioned().await;
    let marker = BlobFields { delete_marker: true, ..version(NEWER, false) };
    store.set_version(NEWER, row_of(NEWER, b"content", marker.clone()));
    assert!(store.problems().await.contains("a delete marker has content"));

    let mut store = versioned().await;
    store.set(Family::Main, blob().as_bytes().clone(), row_of(NEWER, b"", marker));
    assert!(store.problems().await.contains("the current blob is a deleted one"));

    let mut store = versioned().await;
    store.set_version(NEWER, row_of(NEWER, b"new", BlobFields::default()));
    assert!(store.problems().await.contains("does not say its id"));
}

#[tokio::test]
async fn what_was_softly_deleted_is_verified() {
    let deleted = Some(SoftDelete { since: NEWER, until: NEWER });
    let restorable = || BlobFields { deleted, ..version(OLDER, false) };
    let key = |state| keys::deleted(&blob(), DeletedKey { state, time: NEWER });
    let work = values::encode(&DeletedWork { until: NEWER });
    let mut store = versioned().await;
    store.set(Family::Versions, key(DeletedState::Blob), row_of(NEWER, b"new", restorable()));
    assert!(store.problems().await.contains("no work row that ends them"));
    store.set(Family::Work, keys::deleted_work(&blob()), work);
    assert_eq!(store.problems().await, "");

    store.set(Family::Versions, key(DeletedState::Version), row_of(NEWER, b"new", restorable()));
    assert!(store.problems().await.contains("in the row of version"));
    let marked = BlobFields { deleted: None, ..restorable() };
    store.set(Family::Versions, key(DeletedState::Version), row_of(NEWER, b"new", marked));
    assert!(store.problems().await.contains("does not say so"));
    store.partition.memory.rows.remove(&(Family::Versions, key(DeletedState::Version)));

    store.set_version(OLDER, row_of(OLDER, b"new", restorable()));
    assert!(store.problems().await.contains("among what was not"));
}

#[tokio::test]
async fn the_null_version_is_the_one_that_its_row_names() {
    let mut store = versioned().await;
    let row = keys::null_version(&blob());
    store.set(Family::Versions, row.clone(), values::encode(&NullVersion { committed: NEWER }));
    assert!(store.problems().await.contains("the row of the null version names"));
    store.partition.memory.rows.remove(&(Family::Versions, row));
    assert!(store.problems().await.contains("the row of the null version names []"));
    store.set_version(OLDER, row_of(OLDER, b"old", version(OLDER, false)));
    assert_eq!(store.problems().await, "");
}

#[tokio::test]
async fn two_owners_of_bytes_are_found() {
    let mut store = Store::new().await;
    let location = store.store(b"old").await;
    let row = |time: Timestamp| {
        let fields = Some(Box::new(version(time, false)));
        let record = BlobRecord { fields, ..BlobRecord::new(time, time, 3, Crc64::of(b"old")) };
        let layout = Layout::Whole(Content::Stored(vec![location]));
        values::encode_blob(&record, &BlobContent { id_len: 0, layout })
    };
    store.set_version(OLDER, row(OLDER));
    assert_eq!(store.problems().await, "");
    store.set_version(NEWER, row(NEWER));
    assert!(store.problems().await.contains("has two owners"));
}

#[tokio::test]
async fn snapshots_need_a_row_that_counts_them() {
    let mut store = versioned().await;
    let taken = Timestamp::from_ticks(639_000_000_000_000_000);
    let row = keys::snapshot(&blob(), taken);
    store.set(Family::Versions, row, row_of(taken, b"was", BlobFields::default()));
    assert!(store.problems().await.contains("1 snapshots, the record says 0"));
}

#[tokio::test]
async fn settings_are_read_and_belong_to_containers() {
    let mut store = Store::new().await;
    let container = RoutingKey::container(AccountId::new(1), &ContainerName::new("abc").unwrap());
    let row = |number| keys::setting(&container, number);
    let tags = ContainerTags::new(vec![("k".to_owned(), "v".to_owned())]).unwrap();
    store.set(Family::Versions, row(1), settings::encode(&Setting::Tags(tags)));
    assert!(store.problems().await.contains("a container that does not exist"));
    let record = ContainerRecord::new(ContainerId::new(1), Collation::Utf8, OLDER);
    store.set(Family::Main, container.as_bytes().clone(), values::encode_record(&record));
    assert_eq!(store.problems().await, "");
    store.set(Family::Versions, row(2), Bytes::from_static(&[1, 9]));
    assert!(store.problems().await.contains("bad value"));
    store.set(Family::Versions, row(2), settings::encode(&Setting::Cors(Vec::new())));
    store.set(Family::Versions, row(9), Bytes::from_static(&[1]));
    assert!(store.problems().await.contains("unknown row"));
}
