//! Runs every decoder of rows on arbitrary bytes. The fuzz target calls it.

#![deny(clippy::indexing_slicing)]

use bytes::Bytes;

use crate::index::objects::keys;
use crate::index::objects::keys::StagedKey;
use crate::index::objects::keys::VersionKey;
use crate::index::objects::settings;
use crate::index::objects::values;
use crate::index::objects::values::DeadContainer;
use crate::index::objects::values::GarbageValue;
use crate::index::objects::values::NullVersion;
use crate::index::objects::values::Span;
use crate::index::objects::values::StagedBlock;
use crate::index::objects::values::StagedSummary;
use crate::index::record::AccountRecord;
use crate::index::record::BlobRecord;
use crate::index::record::CompletedRecord;
use crate::index::record::ContainerRecord;
use crate::index::record::CopyJob;
use crate::index::record::ListedFields;
use crate::index::record::ListedRecord;
use crate::index::record::UploadRecord;
use crate::index::rows::Family;
use crate::index::rows::Row;
use crate::types::RoutingKey;
use crate::types::SettingKind;

/// Decodes `bytes` as each kind of row value and key, and returns how many accepted them. Each
/// decoded value is encoded again and read back.
///
/// # Panics
/// If the value changes by this: a fault of this program.
#[must_use]
pub fn decode_untrusted(bytes: &[u8]) -> usize {
    let row = Bytes::copy_from_slice(bytes);
    let staged = RoutingKey::of_row(&row).map(|blob| keys::parse_staged(&row, &blob).is_ok());
    let key = RoutingKey::of_row(&row).map(|blob| key_again(&row, &blob));
    let family = Family::Main;
    let blob = values::decode_record_head::<BlobRecord>(family, bytes, bytes);
    let taken = [
        blob.is_ok_and(|(_, content)| values::decode_content(bytes, content).is_ok()),
        values::decode_record::<AccountRecord>(family, bytes, bytes).is_ok(),
        values::decode_record::<ContainerRecord>(family, bytes, bytes).is_ok(),
        values::decode_record::<CopyJob>(family, bytes, bytes).is_ok(),
        values::decode_content(bytes, bytes).is_ok(),
        values::decode_segment(bytes, bytes).is_ok(),
        values::decode_record::<StagedBlock>(family, bytes, bytes).is_ok(),
        values::decode::<StagedSummary>(family, bytes, bytes).is_ok(),
        values::decode::<Span>(family, bytes, bytes).is_ok_and(|span| {
            // As at the begin of a read: lengths of any size must not overflow.
            span.content.is_none_or(|content| content.len() >= content.len_of(0))
        }),
        values::decode::<GarbageValue>(family, bytes, bytes).is_ok(),
        values::decode::<DeadContainer>(family, bytes, bytes).is_ok(),
        keys::parse_purge(bytes).is_some(),
        keys::routing_key(family, &row).is_ok(),
        values::decode::<NullVersion>(family, bytes, bytes).is_ok(),
        SettingKind::ALL.into_iter().any(|kind| setting_again(kind, bytes)),
        values::decode_record::<UploadRecord>(family, bytes, bytes).is_ok(),
        values::decode_record::<CompletedRecord>(family, bytes, bytes).is_ok(),
        staged == Some(true),
        key == Some(true),
        records_again(bytes),
    ];
    taken.iter().filter(|taken| **taken).count()
}

/// Whether a key with a suffix of this release is the same after it was parsed and built again.
fn key_again(row: &Bytes, blob: &RoutingKey) -> bool {
    let of_version = keys::parse_version(row, blob).ok().map(|key| match key {
        VersionKey::Snapshot(taken) => keys::snapshot(blob, taken),
        VersionKey::Version(committed) => keys::version(blob, committed),
        VersionKey::Deleted(key) => keys::deleted(blob, key),
        VersionKey::Null => keys::null_version(blob),
    });
    let of_staged = keys::parse_staged(row, blob).ok().map(|key| match key {
        StagedKey::Summary => keys::staged_summary(blob),
        StagedKey::Block(id) => keys::staged_block(blob, &id),
        StagedKey::Upload(id) => keys::upload(blob, id),
        StagedKey::Part(id, number) => keys::part(blob, id, number),
        StagedKey::Completed(id) => keys::completed_upload(blob, id),
    });
    let of_setting = keys::parse_setting(row, blob).map(|number| keys::setting(blob, number));
    let of_container =
        keys::parse_deleted_container(row, blob).map(|since| keys::deleted_container(blob, since));
    let built = [of_version, of_staged, of_setting, of_container].into_iter().flatten();
    let built: Vec<Bytes> = built.collect();
    assert!(built.iter().all(|built| built == row), "a key is not built again");
    !built.is_empty()
}

/// Whether the bytes are a setting that is the same after it was written again.
fn setting_again(kind: SettingKind, bytes: &[u8]) -> bool {
    let Ok(setting) = settings::decode(kind, bytes, bytes) else { return false };
    let again = settings::decode(kind, bytes, &settings::encode(&setting));
    assert_eq!(again, Ok(setting), "a setting is another one when written again");
    true
}

/// Compares the two decoders of a blob's record: that of lists must return the same as the other
/// one.
fn check_listed(bytes: &[u8]) {
    let row = Row { key: Bytes::new(), value: Bytes::copy_from_slice(bytes) };
    let whole = values::decode_record_head::<BlobRecord>(Family::Main, b"", bytes);
    for is_shown in [false, true] {
        let shown = ListedFields { metadata: is_shown, copy: is_shown, content_tag: is_shown };
        let listed = values::decode_listed(Family::Main, &row, shown);
        let expected = whole.clone().map(|(record, _content)| ListedRecord::of(record, shown));
        assert_eq!(listed, expected, "a list shows another blob");
    }
}

/// Whether the bytes are a record that is the same after it was written again.
fn records_again(bytes: &[u8]) -> bool {
    let mut taken = false;
    if let Ok((record, content)) =
        values::decode_record_head::<BlobRecord>(Family::Main, bytes, bytes)
        && let Ok(content) = values::decode_content(bytes, content)
    {
        let again = values::encode_blob(&record, &content);
        let read = values::decode_record_head::<BlobRecord>(Family::Main, bytes, &again);
        let read = read.map(|(record, rest)| (record, values::decode_content(bytes, rest)));
        assert_eq!(read, Ok((record, Ok(content))), "a blob is another one when written again");
        taken = true;
    }
    check_listed(bytes);
    if let Ok(block) = values::decode_record::<StagedBlock>(Family::Staged, bytes, bytes) {
        let again = values::encode_record(&block);
        assert_eq!(values::decode_record(Family::Staged, bytes, &again), Ok(block));
        taken = true;
    }
    if let Ok(upload) = values::decode_record::<UploadRecord>(Family::Staged, bytes, bytes) {
        let again = values::encode_record(&upload);
        assert_eq!(values::decode_record(Family::Staged, bytes, &again), Ok(upload));
        taken = true;
    }
    if let Ok(entries) = values::decode_segment(bytes, bytes) {
        assert_eq!(values::decode_segment(bytes, &values::encode_segment(&entries)), Ok(entries));
        taken = true;
    }
    taken
}
