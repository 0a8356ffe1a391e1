//! Tagged fields in rows: the golden bytes of each, and rows of any content written and read again.

use bytes::Bytes;
use serde_json::Value;

use super::golden::unhex;
use super::support::*;
use super::vectors::NOW;
use crate::index::api::*;
use crate::index::objects::keys;
use crate::index::objects::part_fields::PartFields;
use crate::index::objects::values;
use crate::index::objects::values::BlobContent;
use crate::index::objects::values::Content;
use crate::index::objects::values::Entry;
use crate::index::objects::values::Layout;
use crate::index::objects::values::NullVersion;
use crate::index::objects::values::StagedBlock;
use crate::index::record::AccountFields;
use crate::index::record::AccountRecord;
use crate::index::record::BlobFields;
use crate::index::record::BlobRecord;
use crate::index::record::CompletedRecord;
use crate::index::record::ContainerFields;
use crate::index::record::ContainerRecord;
use crate::index::record::IncrementalCopy;
use crate::index::record::IncrementalSource;
use crate::index::record::UnknownFields;
use crate::index::record::Upgrade;
use crate::index::record::UploadFields;
use crate::index::record::UploadRecord;
use crate::index::record::UserKey;
use crate::index::record::UserRecord;
use crate::index::rows::Family;
use crate::types::*;

mod random;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_ticks(640_000_000_000_000_000).plus(std::time::Duration::from_secs(seconds))
}

fn checksum(algorithm: ChecksumAlgorithm, kind: ChecksumKind, digest: &[u8]) -> ContentChecksum {
    ContentChecksum { algorithm, kind, digest: Bytes::copy_from_slice(digest) }
}

fn of_later_releases() -> UnknownFields {
    UnknownFields::of([(1_000, Bytes::from_static(b"later"))])
}

fn blob(fields: BlobFields) -> BlobRecord {
    let made = BlobRecord::new(at(0), at(1), 3, Crc64::of(b"abc"));
    BlobRecord { fields: Some(Box::new(fields)), ..made }
}

fn whole(bytes: &'static [u8]) -> BlobContent {
    BlobContent { id_len: 0, layout: Layout::Whole(Content::Inline(Bytes::from_static(bytes))) }
}

fn every_blob_field() -> BlobFields {
    BlobFields {
        content_tag: Some(ContentTag::Parts(Md5::of(b"abc"), 2)),
        checksums: vec![
            checksum(ChecksumAlgorithm::Crc32, ChecksumKind::FullObject, &[1, 2, 3, 4]),
            checksum(ChecksumAlgorithm::Sha256, ChecksumKind::Composite(2), &[5; 32]),
        ],
        owner: Some("o".to_owned()),
        acl: Some(CannedAcl::PublicRead),
        version: Some(VersionId { time: at(1), is_null: false }),
        delete_marker: false,
        deleted: Some(SoftDelete { since: at(2), until: at(3) }),
        retention: Some(Retention { mode: RetentionMode::Locked, until: at(4) }),
        legal_hold: Some(true),
        expires: Some("e".to_owned()),
        redirect: Some("/r".to_owned()),
        storage_class: Some("GLACIER".to_owned()),
        restored_until: Some(at(5)),
        scope_key: Some([6; 32]),
        incremental_copy: Some(IncrementalCopy { snapshot: Some(at(6)) }),
        incremental_source: None,
        unknown: of_later_releases(),
    }
}

fn incremental() -> BlobFields {
    let blob = RoutingKey::blob(&key("s"));
    BlobFields {
        incremental_copy: Some(IncrementalCopy { snapshot: Some(at(6)) }),
        incremental_source: Some(IncrementalSource { blob, snapshot: at(7) }),
        ..BlobFields::default()
    }
}

fn account_with_a_user() -> AccountRecord {
    let user = UserRecord {
        name: UserName::new("u").unwrap(),
        display: "U".to_owned(),
        canonical: "c".to_owned(),
        created: at(1),
        keys: vec![UserKey {
            id: AccessKeyId::new("KEY").unwrap(),
            created: at(2),
            secret: Secret::Sealed(Bytes::from_static(b"s")),
        }],
    };
    let mut account = AccountRecord::new(AccountId::new(1), at(0), true);
    account.fields =
        Some(Box::new(AccountFields { users: vec![user], ..AccountFields::default() }));
    account
}

fn premium_account() -> AccountRecord {
    let account_type = AccountType::new(Sku::PremiumZrs, AccountKind::BlockBlobStorage).ok();
    let fields = AccountFields { account_type, ..AccountFields::default() };
    let account = AccountRecord::new(AccountId::new(1), at(0), false);
    AccountRecord { fields: Some(Box::new(fields)), ..account }
}

fn part() -> Box<PartFields> {
    let md5 = checksum(ChecksumAlgorithm::Md5, ChecksumKind::FullObject, &[7; 16]);
    Box::new(PartFields { checksums: vec![md5], unknown: UnknownFields::default() })
}

/// Three blocks, of which the second has fields.
fn parts() -> Vec<Entry> {
    let entry = |id: &str, bytes: &'static [u8]| {
        let content = Content::Inline(Bytes::from_static(bytes));
        Entry::new(block_id(id), 1, Crc64::of(bytes), content)
    };
    let second = Entry { fields: Some(part()), ..entry("y", b"b") };
    vec![entry("x", b"a"), second, entry("z", b"c")]
}

fn upload() -> UploadRecord {
    let fields = BlobFields { owner: Some("o".to_owned()), ..BlobFields::default() };
    let blob = BlobRecord {
        fields: Some(Box::new(fields)),
        ..BlobRecord::new(at(0), at(0), 0, Crc64::EMPTY)
    };
    let fields = UploadFields {
        checksum: UploadChecksum::new(ChecksumAlgorithm::Sha256, None),
        initiator: Some("i".to_owned()),
        unknown: of_later_releases(),
    };
    UploadRecord { blob, fields: Some(Box::new(fields)) }
}

fn completed_upload() -> CompletedRecord {
    let fields = BlobFields {
        content_tag: Some(ContentTag::Parts(Md5::of(b"abc"), 2)),
        checksums: vec![checksum(ChecksumAlgorithm::Sha256, ChecksumKind::Composite(2), &[5; 32])],
        ..BlobFields::default()
    };
    CompletedRecord { completed: at(1), fields: Some(Box::new(fields)) }
}

/// What each row with fields is, and its bytes.
fn rows() -> Vec<(&'static str, Bytes)> {
    let mut container = ContainerRecord::new(ContainerId::new(2), Collation::Utf8, at(0));
    container.fields = Some(Box::new(ContainerFields {
        owner: Some("o".to_owned()),
        region: Some("eu".to_owned()),
        versioning: Some(Versioning::Suspended),
        object_lock: Some(ObjectLock {
            default: Some(DefaultRetention {
                mode: RetentionMode::Unlocked,
                period: RetentionPeriod::Days(7),
            }),
        }),
        closing: Some(at(1)),
        deleted: Some(SoftDelete { since: at(2), until: at(3) }),
        acl: Some(CannedAcl::Private),
        unknown: of_later_releases(),
    }));
    let mut account = AccountRecord::new(AccountId::new(1), at(0), true);
    account.fields =
        Some(Box::new(AccountFields { unknown: of_later_releases(), ..AccountFields::default() }));
    let marker = BlobFields {
        version: Some(VersionId { time: at(1), is_null: true }),
        delete_marker: true,
        ..BlobFields::default()
    };
    let empty = BlobRecord { len: 0, crc64: Crc64::EMPTY, ..blob(marker) };
    let by_property =
        BlobFields { content_tag: Some(ContentTag::PropertyMd5), ..BlobFields::default() };
    let opaque =
        BlobFields { content_tag: Some(ContentTag::Opaque([8; 16], 1)), ..BlobFields::default() };
    let mut other_md5 = BlobRecord::new(at(0), at(1), 3, Crc64::of(b"abc"));
    other_md5.properties.content_md5 = ContentMd5::Other(Bytes::from_static(b"odd"));
    other_md5.tier = Some(TierState::new(AccessTier::P80, at(2)));
    let content = Content::Inline(Bytes::from_static(b"abc"));
    let staged = StagedBlock {
        len: 3,
        crc64: Crc64::of(b"abc"),
        time: at(1),
        fields: Some(part()),
        content,
    };
    let layout = Layout::Blocks(parts());
    vec![
        ("blob with every field", values::encode_blob(&blob(every_blob_field()), &whole(b"abc"))),
        ("incremental copy", values::encode_blob(&blob(incremental()), &whole(b"abc"))),
        ("delete marker, the null version", values::encode_blob(&empty, &whole(b""))),
        ("blob whose MD5 is the tag", values::encode_blob(&blob(by_property), &whole(b"abc"))),
        ("blob with an opaque tag", values::encode_blob(&blob(opaque), &whole(b"abc"))),
        (
            "blob with a Content-MD5 of 3 bytes and tier P80",
            values::encode_blob(&other_md5, &whole(b"abc")),
        ),
        (
            "blob of three blocks, the second with an MD5",
            values::encode_blob(
                &BlobRecord::new(at(0), at(1), 3, Crc64::of(b"abc")),
                &BlobContent { id_len: 1, layout },
            ),
        ),
        ("container with every field", values::encode_record(&container)),
        ("account with a field of a later release", values::encode_record(&account)),
        ("account with a user", values::encode_record(&account_with_a_user())),
        ("premium account of block blobs", values::encode_record(&premium_account())),
        ("staged block with an MD5", values::encode_record(&staged)),
        ("segment of three blocks, the second with an MD5", values::encode_segment(&parts())),
        ("null version", values::encode(&NullVersion { committed: at(1) })),
        ("upload with a checksum and an initiator", values::encode_record(&upload())),
        ("completed upload", values::encode_record(&completed_upload())),
    ]
}

/// Whether a value is one of any kind of row.
fn reads(value: &[u8]) -> Vec<Result<(), Error>> {
    let family = Family::Main;
    let blob = values::decode_record_head::<BlobRecord>(family, b"", value)
        .and_then(|(_, content)| values::decode_content(b"", content));
    vec![
        blob.map(drop),
        values::decode_record::<ContainerRecord>(family, b"", value).map(drop),
        values::decode_record::<AccountRecord>(family, b"", value).map(drop),
        values::decode_record::<StagedBlock>(family, b"", value).map(drop),
        values::decode_segment(b"", value).map(drop),
        values::decode::<NullVersion>(family, b"", value).map(drop),
        values::decode_record::<UploadRecord>(family, b"", value).map(drop),
        values::decode_record::<CompletedRecord>(family, b"", value).map(drop),
    ]
}

#[test]
fn rows_with_fields_have_the_documented_bytes() {
    let all: Value = serde_json::from_str(NOW).unwrap();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let line = |what: &str, value: &str| format!(r#"{{"what": "{what}", "value": "{value}"}}"#);
    let text = |row: &Value, field: &str| row[field].as_str().unwrap().to_owned();
    let documented: Vec<String> = all["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| line(&text(row, "what"), &text(row, "value")))
        .collect();
    let written: Vec<String> = rows().iter().map(|(what, row)| line(what, &hex(row))).collect();
    assert_eq!(documented, written, "\n{}", written.join(",\n"));
}

#[test]
fn rows_with_fields_are_read_and_cut_ones_refused() {
    let blob_of = |what: &str| {
        let (_, row) = rows().into_iter().find(|(of, _)| *of == what).unwrap();
        let (record, content) =
            values::decode_record_head::<BlobRecord>(Family::Main, b"", &row).unwrap();
        (record, values::decode_content(b"", content).unwrap())
    };
    assert_eq!(
        blob_of("blob with every field"),
        (blob(every_blob_field()), whole(b"abc")),
        "all fields, those of later releases too"
    );
    let (_, content) = blob_of("blob of three blocks, the second with an MD5");
    assert_eq!(content, BlobContent { id_len: 1, layout: Layout::Blocks(parts()) });
    let (_, segment) = rows().into_iter().find(|(what, _)| what.starts_with("segment")).unwrap();
    assert_eq!(values::decode_segment(b"", &segment), Ok(parts()));
    for (what, row) in rows() {
        let whole: Vec<bool> = reads(&row).iter().map(Result::is_ok).collect();
        assert!(whole.contains(&true), "{what}");
        for len in 0..row.len() {
            for (cut, whole) in reads(&row[..len]).iter().zip(&whole) {
                assert!(!whole || cut.is_err(), "{what}: cut to {len} it is taken");
            }
        }
        let longer = [row.as_ref(), b"x"].concat();
        for (longer, whole) in reads(&longer).iter().zip(&whole) {
            assert!(!whole || longer.is_err(), "{what}: with a byte more it is taken");
        }
    }
}

/// The row of blob `a` with these bytes as its fields.
fn with_fields(p: &mut crate::index::objects::fake::Partition, fields: &[u8]) {
    let row = (Family::Main, RoutingKey::blob(&key("a")).as_bytes().clone());
    let value = p.memory.rows[&row].clone();
    let (record, content) =
        values::decode_record_head::<BlobRecord>(Family::Main, &row.1, &value).unwrap();
    let without = values::encode_record(&record);
    let (none, head) = without.split_last().unwrap();
    assert_eq!(*none, 0, "it has no fields");
    let fields = postcard::to_stdvec(fields).unwrap();
    p.memory.rows.insert(row, [head, &fields, content].concat().into());
}

#[test]
fn a_field_of_a_later_release_stays_or_is_refused() {
    let mut p = partition();
    p.must(&Write::PutBlob(put(&key("a"), inline(b"abc"))));
    let mut newer = p.clone();
    // Number 200, which a reader may leave alone.
    with_fields(&mut p, &[0x90, 3, 2, 8, 9]);
    let (guard, revision) = (Guard::default(), Revision::Current);
    let metadata = Metadata::new([("k".to_owned(), "v")]).unwrap();
    let change = BlobChange::Metadata(metadata.clone());
    p.must(&Write::UpdateBlob(UpdateBlob { key: key("a"), revision, guard, change }));
    let found = p.blob(&read(&key("a"))).unwrap();
    let unknown = UnknownFields::of([(200, Bytes::from_static(&[8, 9]))]);
    let fields = BlobFields { unknown, ..BlobFields::default() };
    assert_eq!(found.record.metadata, metadata);
    assert_eq!(found.record.fields, Some(Box::new(fields)), "written again with the row");
    p.must(&Write::PutBlob(put(&key("a"), inline(b"new"))));
    assert_eq!(p.blob(&read(&key("a"))).unwrap().record.fields, None, "of the blob before");

    // Number 200, which a reader must know.
    with_fields(&mut newer, &[0x91, 3, 2, 8, 9]);
    let refused = newer.read(&Read::Blob(read(&key("a")))).unwrap_err();
    assert!(refused.to_string().contains("field 200 is of a newer release"), "{refused}");
}

#[test]
fn checksums_of_a_staged_block_go_with_it_into_the_list() {
    let mut p = partition();
    p.must(&stage(&key("a"), "x", inline(b"1")));
    p.must(&stage(&key("a"), "y", inline(b"2")));
    let row = keys::staged_block(&RoutingKey::blob(&key("a")), &block_id("y"));
    let place = (Family::Staged, row.clone());
    let mut block: StagedBlock =
        values::decode_record(Family::Staged, &row, &p.memory.rows[&place]).unwrap();
    block.fields = Some(part());
    p.memory.rows.insert(place, values::encode_record(&block));
    let fields_of = |p: &crate::index::objects::fake::Partition| {
        let main = (Family::Main, RoutingKey::blob(&key("a")).as_bytes().clone());
        let value = &p.memory.rows[&main];
        let (_, content) =
            values::decode_record_head::<BlobRecord>(Family::Main, &main.1, value).unwrap();
        match values::decode_content(&main.1, content).unwrap().layout {
            Layout::Blocks(entries) => {
                entries.into_iter().map(|entry| entry.fields).collect::<Vec<_>>()
            }
            Layout::Segments { .. } => {
                let mut rows = p.memory.rows.iter().filter(|((f, _), _)| *f == Family::Layout);
                let (_, value) = rows.next().unwrap();
                let entries = values::decode_segment(b"", value).unwrap();
                entries.into_iter().map(|entry| entry.fields).collect::<Vec<_>>()
            }
            other @ (Layout::Whole(_) | Layout::Appended { .. } | Layout::Pages { .. }) => {
                panic!("{other:?}")
            }
        }
    };
    p.must(&Write::CommitBlocks(commit(&key("a"), &["x", "y"])));
    assert_eq!(fields_of(&p), [None, Some(part())]);
    p.must(&Write::SnapshotBlob(SnapshotBlob {
        key: key("a"),
        guard: Guard::default(),
        metadata: None,
    }));
    assert_eq!(fields_of(&p), [None, Some(part())], "a snapshot shares the blocks");
    let many: Vec<&str> = std::iter::repeat_n("y", 64).chain(["x"]).collect();
    p.must(&Write::CommitBlocks(commit(&key("a"), &many)));
    let mut expected = vec![Some(part()); 64];
    expected.push(None);
    assert_eq!(fields_of(&p), expected, "in a segment too");
}

#[test]
fn keys_of_versions_settings_and_uploads_have_the_documented_bytes() {
    let blob = RoutingKey::blob(&key("a"));
    let hex = |row: &Bytes| {
        let suffix = row.strip_prefix(blob.as_bytes().as_ref()).unwrap();
        suffix.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let ticks = Timestamp::from_ticks(0x08de_2f1d_4b79_804e);
    let id = UploadId::from_bytes(*b"0123456789abcdef");
    assert_eq!(hex(&keys::snapshot(&blob, ticks)), "08de2f1d4b79804e");
    assert_eq!(hex(&keys::version(&blob, ticks)), "f721d0e2b4867fb1");
    assert_eq!(hex(&keys::null_version(&blob)), "00");
    assert_eq!(hex(&keys::setting(&blob, 7)), "0107");
    assert_eq!(hex(&keys::upload(&blob, id)), "0230313233343536373839616263646566");
    assert_eq!(hex(&keys::part(&blob, id, 10_000)), "023031323334353637383961626364656600002710");
    assert_eq!(hex(&keys::completed_upload(&blob, id)), "0330313233343536373839616263646566");
    // The null version, snapshots by age, versions newest first.
    let later = Timestamp::from_ticks(ticks.ticks() + 1);
    let order = [
        keys::null_version(&blob),
        keys::snapshot(&blob, ticks),
        keys::snapshot(&blob, later),
        keys::version(&blob, later),
        keys::version(&blob, ticks),
    ];
    assert!(order.is_sorted(), "{order:?}");
    assert!(order.iter().all(|row| *row < keys::after(&blob)));
    // Uploads come after all staged blocks, which end before them.
    let last = BlockId::from_bytes(&[0xff; 64]).unwrap();
    let staged = [
        keys::staged_summary(&blob),
        keys::staged_block(&blob, &last),
        keys::upload(&blob, id),
        keys::part(&blob, id, u32::MAX >> 8),
        keys::after_upload(&blob, id),
        keys::completed_upload(&blob, id),
        keys::after(&blob),
    ];
    assert!(staged.is_sorted() && staged[1] < keys::staged_blocks_end(&blob), "{staged:?}");
    assert!(keys::staged_blocks_end(&blob) <= staged[2]);
    let cut = keys::upload(&blob, id);
    assert!(keys::parse_staged(&cut.slice(..cut.len() - 1), &blob).is_err());
    let cut = keys::completed_upload(&blob, id);
    assert!(keys::parse_staged(&cut.slice(..cut.len() - 1), &blob).is_err());
    for row in staged.iter().take(3) {
        assert!(keys::parse_staged(row, &blob).is_ok());
    }
    assert!(keys::parse_version(&unhex("0001"), &RoutingKey::min()).is_err(), "neither 1 nor 8");
}

#[test]
fn versions_of_rows_are_those_of_the_specification() {
    let versions = [
        AccountRecord::VERSION,
        ContainerRecord::VERSION,
        BlobRecord::VERSION,
        StagedBlock::VERSION,
    ];
    assert_eq!(versions, [5, 3, 3, 2]);
}
