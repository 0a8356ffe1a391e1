//! Records and contents of any kind are read as they were written.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::index::record::CopyRecord;
use crate::index::record::CopyStatus;
use crate::index::record::ListedFields;
use crate::index::rows::Row;

fn time() -> impl Strategy<Value = Timestamp> {
    (0..=u64::MAX >> 1).prop_map(Timestamp::from_ticks)
}

fn text() -> impl Strategy<Value = String> {
    "[ -~äß]{0,20}"
}

fn bytes(most: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..=most).prop_map(Bytes::from)
}

fn md5() -> impl Strategy<Value = Md5> {
    any::<u64>().prop_map(|seed| Md5::of(&seed.to_be_bytes()))
}

fn unknown() -> impl Strategy<Value = UnknownFields> {
    let fields = proptest::collection::btree_map(500u32..1 << 30, bytes(20), 0..3);
    fields.prop_map(UnknownFields::of)
}

fn content_tag() -> impl Strategy<Value = ContentTag> {
    prop_oneof![
        Just(ContentTag::PropertyMd5),
        md5().prop_map(ContentTag::Md5),
        (md5(), any::<u32>()).prop_map(|(md5, parts)| ContentTag::Parts(md5, parts)),
        (any::<[u8; 16]>(), any::<u32>()).prop_map(|(tag, n)| ContentTag::Opaque(tag, n)),
    ]
}

fn a_checksum() -> impl Strategy<Value = ContentChecksum> {
    let algorithm = prop::sample::select(vec![
        ChecksumAlgorithm::Crc32,
        ChecksumAlgorithm::Crc32c,
        ChecksumAlgorithm::Crc64Nvme,
        ChecksumAlgorithm::Sha1,
        ChecksumAlgorithm::Sha256,
        ChecksumAlgorithm::Md5,
    ]);
    let kind =
        prop_oneof![Just(ChecksumKind::FullObject), any::<u32>().prop_map(ChecksumKind::Composite)];
    (algorithm, kind, bytes(32)).prop_map(|(algorithm, kind, digest)| ContentChecksum {
        algorithm,
        kind,
        digest,
    })
}

fn acl() -> impl Strategy<Value = CannedAcl> {
    prop::sample::select(vec![
        CannedAcl::Private,
        CannedAcl::PublicRead,
        CannedAcl::PublicReadWrite,
        CannedAcl::AuthenticatedRead,
        CannedAcl::BucketOwnerRead,
        CannedAcl::BucketOwnerFullControl,
    ])
}

fn mode() -> impl Strategy<Value = RetentionMode> {
    prop::sample::select(vec![RetentionMode::Unlocked, RetentionMode::Locked])
}

fn soft_delete() -> impl Strategy<Value = SoftDelete> {
    (time(), time()).prop_map(|(since, until)| SoftDelete { since, until })
}

prop_compose! {
    fn blob_fields()(
        content_tag in option::of(content_tag()),
        checksums in vec(a_checksum(), 0..3),
        (owner, expires, redirect, storage_class) in
            (option::of(text()), option::of(text()), option::of(text()), option::of(text())),
        acl in option::of(acl()),
        version in option::of((time(), any::<bool>())),
        (delete_marker, legal_hold) in any::<(bool, Option<bool>)>(),
        deleted in option::of(soft_delete()),
        retention in option::of((mode(), time())),
        restored_until in option::of(time()),
        scope_key in option::of(any::<[u8; 32]>()),
        incremental_copy in option::of(option::of(time())),
        incremental_source in option::of((text(), time())),
        unknown in unknown(),
    ) -> BlobFields {
        BlobFields {
            content_tag,
            checksums,
            owner,
            acl,
            version: version.map(|(time, is_null)| VersionId { time, is_null }),
            delete_marker,
            deleted,
            retention: retention.map(|(mode, until)| Retention { mode, until }),
            legal_hold,
            expires,
            redirect,
            storage_class,
            restored_until,
            scope_key,
            incremental_copy: incremental_copy.map(|snapshot| IncrementalCopy { snapshot }),
            incremental_source: incremental_source.map(|(blob, snapshot)| {
                IncrementalSource { blob: RoutingKey::from_bytes(blob.into_bytes().into()), snapshot }
            }),
            unknown,
        }
    }
}

prop_compose! {
    fn container_fields()(
        (owner, region) in (option::of(text()), option::of(text())),
        versioning in option::of(prop::sample::select(vec![
            Versioning::Enabled,
            Versioning::Suspended,
        ])),
        object_lock in option::of(option::of((mode(), any::<(bool, u32)>()))),
        closing in option::of(time()),
        deleted in option::of(soft_delete()),
        acl in option::of(acl()),
        unknown in unknown(),
    ) -> ContainerFields {
        let period = |(years, count)| match years {
            true => RetentionPeriod::Years(count),
            false => RetentionPeriod::Days(count),
        };
        let default = |of: Option<(RetentionMode, (bool, u32))>| ObjectLock {
            default: of.map(|(mode, of)| DefaultRetention { mode, period: period(of) }),
        };
        let object_lock = object_lock.map(default);
        ContainerFields { owner, region, versioning, object_lock, closing, deleted, acl, unknown }
    }
}

fn content_md5() -> impl Strategy<Value = ContentMd5> {
    prop_oneof![
        Just(ContentMd5::Absent),
        md5().prop_map(ContentMd5::Plain),
        bytes(40).prop_map(ContentMd5::Other),
    ]
}

fn tier() -> impl Strategy<Value = AccessTier> {
    use AccessTier::*;
    prop::sample::select(vec![
        Hot, Cool, Cold, Archive, Smart, P4, P6, P10, P15, P20, P30, P40, P50, P60, P70, P80,
    ])
}

prop_compose! {
    fn properties()(
        content_type in option::of(text()),
        content_encoding in option::of(text()),
        content_language in option::of(text()),
        content_disposition in option::of(text()),
        cache_control in option::of(text()),
        content_md5 in content_md5(),
    ) -> BlobProperties {
        BlobProperties {
            content_type,
            content_encoding,
            content_language,
            content_disposition,
            cache_control,
            content_md5,
        }
    }
}

fn copy() -> impl Strategy<Value = CopyRecord> {
    (any::<u128>(), text(), option::of(text()), any::<(u64, u64)>(), option::of(time())).prop_map(
        |(id, source, description, (copied, total), completed)| CopyRecord {
            id: Uuid::from_u128(id),
            source,
            status: CopyStatus::Aborted,
            description,
            copied,
            total,
            completed,
        },
    )
}

prop_compose! {
    fn record()(
        (created, last_modified, len, crc) in (time(), time(), any::<u64>(), any::<[u8; 8]>()),
        properties in properties(),
        metadata in option::of(("[a-z.-]{1,9}", vec(0x80..=0xff_u8, 0..=9))),
        kind in prop_oneof![
            Just(BlobKind::Block),
            any::<(u32, bool)>().prop_map(|(blocks, sealed)| BlobKind::Append { blocks, sealed }),
            any::<u64>().prop_map(|sequence| BlobKind::Page { sequence }),
        ],
        tag in option::of("[a-z]{1,9}"),
        lease in option::of((any::<u128>(), time(), option::of(time()))),
        tier in option::of((tier(), time())),
        copy in option::of(copy()),
        encryption in option::of(prop_oneof![
            any::<[u8; 32]>().prop_map(Encryption::Customer),
            text().prop_map(Encryption::Scope),
        ]),
        (accessed, snapshots) in (option::of(time()), any::<u32>()),
        fields in option::of(blob_fields()),
    ) -> BlobRecord {
        let pair = |key: String| (key.clone(), key);
        BlobRecord {
            properties,
            metadata: Metadata::new(metadata).unwrap(),
            kind,
            tags: Tags::new(tag.map(pair).into_iter().collect()).unwrap(),
            lease: lease.map(|(id, since, breaks_at)| Lease {
                id: Uuid::from_u128(id),
                duration: None,
                since,
                breaks_at,
            }),
            tier: tier.map(|(tier, changed)| TierState::new(tier, changed)),
            copy: copy.map(Box::new),
            encryption,
            accessed,
            snapshots,
            // None says the same as no field at all.
            fields: fields.filter(|fields| *fields != BlobFields::default()).map(Box::new),
            ..BlobRecord::new(created, last_modified, len, Crc64::from_le_bytes(crc))
        }
    }
}

fn content() -> impl Strategy<Value = Content> {
    let locations = || {
        let one = any::<(u64, u64, u64)>();
        vec(one.prop_map(|(extent, offset, len)| location(extent, offset, len)), 0..3)
    };
    prop_oneof![
        bytes(20).prop_map(Content::Inline),
        locations().prop_map(Content::Stored),
        locations().prop_map(Content::Shared),
    ]
}

fn part_fields() -> impl Strategy<Value = Option<Box<PartFields>>> {
    let fields = (vec(a_checksum(), 0..3), unknown())
        .prop_map(|(checksums, unknown)| PartFields { checksums, unknown })
        .prop_filter("says something", |fields| *fields != PartFields::default());
    option::of(fields.prop_map(Box::new))
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let entry = (vec(any::<u8>(), 1..9), any::<u64>(), any::<[u8; 8]>(), content(), part_fields())
        .prop_map(|(id, len, crc, content, fields)| Entry {
            fields,
            ..Entry::new(BlockId::from_bytes(&id).unwrap(), len, Crc64::from_le_bytes(crc), content)
        });
    vec(entry, 0..9)
}

fn blob_content() -> impl Strategy<Value = BlobContent> {
    let layout = prop_oneof![
        content().prop_map(Layout::Whole),
        entries().prop_map(Layout::Blocks),
        vec(any::<u64>(), 0..4).prop_map(|layers| Layout::Pages { layers }),
    ];
    (any::<u8>(), layout).prop_map(|(id_len, layout)| BlobContent { id_len, layout })
}

proptest! {
    #[test]
    fn any_blob_is_read_as_it_was_written(record in record(), content in blob_content(), at in any::<prop::sample::Index>()) {
        let row = values::encode_blob(&record, &content);
        let (head, rest) =
            values::decode_record_head::<BlobRecord>(Family::Main, b"", &row).unwrap();
        prop_assert_eq!(&head, &record);
        prop_assert_eq!(values::decode_content(b"", rest).unwrap(), content);
        // Raw content stays what it is beside another record.
        let again = values::encode_blob_raw(&record, rest);
        prop_assert_eq!(&again, &row);
        let cut = values::decode_record_head::<BlobRecord>(Family::Main, b"", &row[..at.index(row.len())]);
        let cut = cut.and_then(|(_, rest)| values::decode_content(b"", rest));
        prop_assert!(cut.is_err());
    }

    #[test]
    fn any_blob_is_listed_without_what_the_list_does_not_show(
        record in record(),
        shown in (any::<bool>(), any::<bool>(), any::<bool>()),
        at in any::<prop::sample::Index>(),
    ) {
        let shown = ListedFields { metadata: shown.0, copy: shown.1, content_tag: shown.2 };
        let mut value = values::encode_blob_raw(&record, &[]).to_vec();
        let cut = Bytes::copy_from_slice(&value[..at.index(value.len())]);
        let cut = Row { key: Bytes::new(), value: cut };
        prop_assert!(values::decode_listed(Family::Main, &cut, shown).is_err());

        // No layout begins like this: the content of a row is not read.
        value.extend([0xFF; 32]);
        let row = Row { key: Bytes::new(), value: value.into() };
        let listed = values::decode_listed(Family::Main, &row, shown).unwrap();
        prop_assert_eq!(listed.weight, record.weight());
        let mut expected = record;
        if !shown.metadata {
            expected.metadata = Metadata::default();
        }
        if !shown.copy {
            expected.copy = None;
        }
        prop_assert_eq!(listed.record, expected);
    }

    #[test]
    fn any_container_is_read_as_it_was_written(fields in container_fields(), of in (any::<u64>(), time())) {
        let mut record = ContainerRecord::new(ContainerId::new(of.0), Collation::Utf8, of.1);
        record.fields = Some(Box::new(fields)).filter(|fields| **fields != ContainerFields::default());
        let row = values::encode_record(&record);
        prop_assert_eq!(values::decode_record::<ContainerRecord>(Family::Main, b"", &row).unwrap(), record);
    }

    #[test]
    fn any_staged_block_and_segment_are_read_as_they_were_written(
        entries in entries(),
        of in (any::<u64>(), any::<[u8; 8]>(), time()),
        content in content(),
        fields in part_fields(),
    ) {
        let crc64 = Crc64::from_le_bytes(of.1);
        let block = StagedBlock { len: of.0, crc64, time: of.2, fields, content };
        let row = values::encode_record(&block);
        prop_assert_eq!(values::decode_record::<StagedBlock>(Family::Staged, b"", &row).unwrap(), block);
        let row = values::encode_segment(&entries);
        prop_assert_eq!(values::decode_segment(b"", &row).unwrap(), entries);
    }
}
