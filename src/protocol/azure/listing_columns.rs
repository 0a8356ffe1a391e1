//! List Blobs in columns: an Apache Arrow stream of one batch, a row for each entry.
//!
//! A column has the name that its element has in XML. One without a value on the page is left out.
//! The marker of the next page is in the metadata of the schema, empty at the end. The types are
//! those that the service answers with: text, unsigned 64 bits, true or false, whole seconds since
//! 1970, and maps of text.
//!
//! Source: "List Blobs", "Apache Arrow response"; the readers of the JavaScript client 12.34 and of
//! Hadoop's ABFS.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::ArrayRef;
use arrow_array::BooleanArray;
use arrow_array::RecordBatch;
use arrow_array::StringArray;
use arrow_array::TimestampSecondArray;
use arrow_array::UInt64Array;
use arrow_array::builder::MapBuilder;
use arrow_array::builder::StringBuilder;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use arrow_schema::Field;
use arrow_schema::Schema;
use bytes::Bytes;

use crate::protocol::azure::encryption;
use crate::protocol::azure::errors;
use crate::protocol::azure::listing;
use crate::protocol::azure::words;
use crate::protocol::model::copy::CopyFacts;
use crate::protocol::model::list_reply::BlobItem;
use crate::protocol::model::list_reply::BlobListing;
use crate::protocol::model::operation::ListBlobs;
use crate::protocol::model::reply::BlobFacts;
use crate::protocol::model::reply::LeaseFacts;
use crate::protocol::model::reply::TierFacts;
use crate::types::BlobKind;
use crate::types::Encryption;
use crate::types::Metadata;
use crate::types::Retention;
use crate::types::Revision;
use crate::types::Timestamp;
use crate::types::VersionId;

/// An entry, and the fields that the request asks for.
#[derive(Clone, Copy)]
struct Row<'a> {
    item: &'a BlobItem,
    asked: &'a ListBlobs,
}

type Text = for<'a> fn(Row<'a>) -> Option<Cow<'a, str>>;
type Number = fn(Row<'_>) -> Option<u64>;
type Flag = fn(Row<'_>) -> Option<bool>;
type Time = fn(Row<'_>) -> Option<Timestamp>;

/// The type of a column's values, and their source.
enum Column {
    Text(Text),
    Number(Number),
    Flag(Flag),
    Time(Time),
    Metadata,
    Tags,
}

const COLUMNS: &[(&str, Column)] = &[
    ("Name", Column::Text(|row| Some(row.name().into()))),
    ("ResourceType", Column::Text(|row| row.is_prefix().then_some("blobprefix".into()))),
    ("Snapshot", Column::Text(|row| Some(row.revision()?.snapshot()?.to_iso().into()))),
    ("VersionId", Column::Text(|row| row.version_id().map(Into::into))),
    ("IsCurrentVersion", Column::Flag(|row| row.version().map(|(is_current, _)| is_current))),
    ("Deleted", Column::Flag(|row| row.blob()?.deleted.map(|_| true))),
    ("HasVersionsOnly", Column::Flag(|row| row.has_versions_only().then_some(true))),
    ("Creation-Time", Column::Time(|row| Some(row.facts()?.created))),
    ("Last-Modified", Column::Time(|row| Some(row.facts()?.change.last_modified))),
    ("Etag", Column::Text(|row| Some(row.facts()?.change.etag.to_string().into()))),
    ("Content-Length", Column::Number(|row| row.len())),
    ("Content-Type", Column::Text(|row| row.content_type())),
    ("Content-Encoding", Column::Text(|row| text(&row.facts()?.properties.content_encoding))),
    ("Content-Language", Column::Text(|row| text(&row.facts()?.properties.content_language))),
    ("Content-MD5", Column::Text(|row| row.md5().map(Into::into))),
    ("Cache-Control", Column::Text(|row| text(&row.facts()?.properties.cache_control))),
    ("Content-Disposition", Column::Text(|row| text(&row.facts()?.properties.content_disposition))),
    ("x-ms-blob-sequence-number", Column::Number(|row| row.sequence())),
    ("BlobType", Column::Text(|row| row.kind())),
    ("Sealed", Column::Flag(|row| row.sealed())),
    ("AccessTier", Column::Text(|row| Some(row.tier()?.tier.as_str().into()))),
    ("AccessTierInferred", Column::Flag(|row| Some(row.tier()?.inferred).filter(|on| *on))),
    ("SmartAccessTier", Column::Text(|row| Some(row.tier()?.tier.smart()?.as_str().into()))),
    ("AccessTierChangeTime", Column::Time(|row| row.tier()?.changed)),
    ("ArchiveStatus", Column::Text(|row| Some(row.tier()?.archive_status()?.into()))),
    (
        "RehydratePriority",
        Column::Text(|row| Some(row.tier()?.rehydrating?.priority.as_str().into())),
    ),
    ("LeaseStatus", Column::Text(|row| row.lease(|lease| Some(words::lease_status(lease.state))))),
    ("LeaseState", Column::Text(|row| row.lease(|lease| Some(words::lease_state(lease.state))))),
    ("LeaseDuration", Column::Text(|row| row.lease(words::lease_duration))),
    ("CopyId", Column::Text(|row| Some(row.copy()?.id.hyphenated().to_string().into()))),
    ("CopySource", Column::Text(|row| Some(row.copy()?.source.as_str().into()))),
    ("CopyStatus", Column::Text(|row| Some(row.copy()?.state.as_str().into()))),
    ("CopyProgress", Column::Text(|row| row.copy_progress())),
    ("CopyCompletionTime", Column::Time(|row| row.copy()?.completed)),
    (
        "CopyStatusDescription",
        Column::Text(|row| Some(errors::copy_failure(row.copy()?.failure.as_ref()?).into())),
    ),
    ("IncrementalCopy", Column::Flag(|row| row.copy()?.incremental.map(|_| true))),
    (
        "CopyDestinationSnapshot",
        Column::Text(|row| Some(row.copy()?.incremental?.snapshot?.to_iso().into())),
    ),
    ("ServerEncrypted", Column::Flag(|row| (!row.is_prefix()).then_some(true))),
    ("CustomerProvidedKeySha256", Column::Text(|row| row.key())),
    ("EncryptionScope", Column::Text(|row| row.scope())),
    ("ImmutabilityPolicyUntilDate", Column::Time(|row| Some(row.retention()?.until))),
    (
        "ImmutabilityPolicyMode",
        Column::Text(|row| Some(words::policy_mode(row.retention()?.mode).into())),
    ),
    ("LegalHold", Column::Flag(|row| row.facts()?.legal_hold.filter(|_| row.asked.legal_hold))),
    ("LastAccessTime", Column::Time(|row| row.facts()?.last_access)),
    ("TagCount", Column::Number(|row| row.tag_count())),
    ("DeletedTime", Column::Time(|row| Some(row.facts()?.deleted?.since))),
    ("RemainingRetentionDays", Column::Number(|row| Some(row.facts()?.deleted?.days_left))),
    ("Metadata", Column::Metadata),
    ("Tags", Column::Tags),
];

fn text(value: &Option<String>) -> Option<Cow<'_, str>> {
    value.as_deref().map(Cow::Borrowed)
}

impl<'a> Row<'a> {
    fn name(self) -> &'a str {
        match self.item {
            BlobItem::Blob { name, .. }
            | BlobItem::VersionsOnly { name, .. }
            | BlobItem::Uncommitted { name }
            | BlobItem::Prefix { name } => name,
        }
    }

    const fn is_prefix(self) -> bool {
        matches!(self.item, BlobItem::Prefix { .. })
    }

    const fn has_versions_only(self) -> bool {
        matches!(self.item, BlobItem::VersionsOnly { .. })
    }

    fn facts(self) -> Option<&'a BlobFacts> {
        match self.item {
            BlobItem::Blob { facts, .. } | BlobItem::VersionsOnly { facts, .. } => Some(facts),
            BlobItem::Uncommitted { .. } | BlobItem::Prefix { .. } => None,
        }
    }

    /// As [`Self::facts`], of a blob, snapshot or version that is listed itself.
    fn blob(self) -> Option<&'a BlobFacts> {
        self.facts().filter(|_| !self.has_versions_only())
    }

    const fn revision(self) -> Option<Revision> {
        match self.item {
            BlobItem::Blob { revision, .. } => Some(*revision),
            BlobItem::VersionsOnly { .. }
            | BlobItem::Uncommitted { .. }
            | BlobItem::Prefix { .. } => None,
        }
    }

    /// Whether it is the current version, if versions are listed.
    fn version(self) -> Option<(bool, VersionId)> {
        let (revision, facts) = (self.revision()?, self.facts()?);
        if revision.snapshot().is_some() || self.asked.versions.is_none() {
            return None;
        }
        Some((revision.is_current() && facts.deleted.is_none(), facts.change.version?))
    }

    fn version_id(self) -> Option<String> {
        let (is_current, id) = self.version()?;
        (!id.is_null || !is_current).then(|| id.time.to_iso())
    }

    /// A blob with staged blocks only has no bytes.
    fn len(self) -> Option<u64> {
        match self.item {
            BlobItem::Prefix { .. } => None,
            BlobItem::Uncommitted { .. } => Some(0),
            BlobItem::Blob { facts, .. } | BlobItem::VersionsOnly { facts, .. } => Some(facts.len),
        }
    }

    fn content_type(self) -> Option<Cow<'a, str>> {
        let named = self.facts()?.properties.content_type.as_deref();
        let shown = named.unwrap_or("application/octet-stream");
        Some(shown).filter(|text| !text.is_empty()).map(Cow::Borrowed)
    }

    /// Without the key it is not for the reader.
    fn md5(self) -> Option<String> {
        let facts = self.facts().filter(|facts| !listing::is_by_customer(facts))?;
        facts.properties.content_md5.to_base64()
    }

    fn sequence(self) -> Option<u64> {
        match self.facts()?.kind {
            BlobKind::Page { sequence } => Some(sequence),
            BlobKind::Block | BlobKind::Append { .. } => None,
        }
    }

    fn kind(self) -> Option<Cow<'a, str>> {
        match self.facts() {
            Some(facts) => Some(facts.kind.as_str().into()),
            None => (!self.is_prefix()).then(|| BlobKind::Block.as_str().into()),
        }
    }

    fn sealed(self) -> Option<bool> {
        matches!(self.facts()?.kind, BlobKind::Append { sealed: true, .. }).then_some(true)
    }

    fn tier(self) -> Option<&'a TierFacts> {
        self.facts()?.tier.as_ref()
    }

    fn lease(self, word: fn(LeaseFacts) -> Option<&'static str>) -> Option<Cow<'a, str>> {
        let lease = match self.item {
            BlobItem::Prefix { .. } => return None,
            BlobItem::Uncommitted { .. } => LeaseFacts::NONE,
            BlobItem::Blob { facts, .. } | BlobItem::VersionsOnly { facts, .. } => {
                if facts.deleted.is_some() {
                    return None;
                }
                facts.lease
            }
        };
        word(lease).map(Cow::Borrowed)
    }

    fn copy(self) -> Option<&'a CopyFacts> {
        self.facts()?.copy.as_deref().filter(|_| self.asked.copy)
    }

    fn copy_progress(self) -> Option<Cow<'a, str>> {
        let copy = self.copy()?;
        Some(format!("{}/{}", copy.copied, copy.total).into())
    }

    fn key(self) -> Option<Cow<'a, str>> {
        let encryption = self.facts()?.encryption.as_ref()?;
        encryption.is_by_customer().then(|| encryption::header(encryption).1.into())
    }

    fn scope(self) -> Option<Cow<'a, str>> {
        match self.facts()?.encryption.as_ref()? {
            Encryption::Scope(name) | Encryption::KeyedScope { name, .. } => {
                Some(name.to_string().into())
            }
            Encryption::Customer(_) => None,
        }
    }

    fn retention(self) -> Option<Retention> {
        self.facts()?.retention.filter(|_| self.asked.retention)
    }

    fn tag_count(self) -> Option<u64> {
        Some(self.facts()?.tags.len() as u64).filter(|count| *count > 0)
    }

    /// Metadata under a customer's key is not for a reader without it.
    fn metadata(self) -> Option<&'a Metadata> {
        let facts = self.blob().filter(|_| self.asked.metadata)?;
        Some(&facts.metadata).filter(|all| !all.is_empty() && !listing::is_by_customer(facts))
    }
}

/// The body, and its bytes.
///
/// # Errors
/// Those of the library, which the columns here give no reason for.
pub(super) fn blobs(listing: &BlobListing, asked: &ListBlobs) -> Result<Bytes, ArrowError> {
    let rows: Vec<Row<'_>> = listing.items.iter().map(|item| Row { item, asked }).collect();
    let mut columns: Vec<(Field, ArrayRef)> = Vec::new();
    for (name, column) in COLUMNS {
        let values = values(column, &rows);
        if values.null_count() < values.len() || columns.is_empty() {
            columns.push((Field::new(*name, values.data_type().clone(), true), values));
        }
    }
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let marker = listing.next.as_ref().map(listing::marker).unwrap_or_default();
    let metadata = HashMap::from([("NextMarker".to_owned(), marker)]);
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
    let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
    writer.write(&batch)?;
    writer.into_inner().map(Bytes::from)
}

fn values(column: &Column, rows: &[Row<'_>]) -> ArrayRef {
    match column {
        Column::Text(text) => Arc::new(rows.iter().map(|row| text(*row)).collect::<StringArray>()),
        Column::Number(number) => {
            Arc::new(rows.iter().map(|row| number(*row)).collect::<UInt64Array>())
        }
        Column::Flag(flag) => Arc::new(rows.iter().map(|row| flag(*row)).collect::<BooleanArray>()),
        Column::Time(time) => {
            let seconds = |time: Timestamp| i64::try_from(time.since_unix().as_secs()).ok();
            let seconds = rows.iter().map(|row| time(*row).and_then(seconds));
            Arc::new(seconds.collect::<TimestampSecondArray>())
        }
        Column::Metadata => map(rows.iter().map(|row| {
            let pairs = row.metadata()?.iter();
            Some(pairs.map(|(key, value)| (key, String::from_utf8_lossy(value))).collect())
        })),
        Column::Tags => map(rows.iter().map(|row| {
            let tags = &row.blob().filter(|_| row.asked.tags)?.tags;
            (!tags.is_empty())
                .then(|| tags.iter().map(|(key, value)| (key, value.into())).collect())
        })),
    }
}

/// A column of maps.
fn map<'a>(rows: impl Iterator<Item = Option<Vec<(&'a str, Cow<'a, str>)>>>) -> ArrayRef {
    let mut maps = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    for pairs in rows {
        for (key, value) in pairs.iter().flatten() {
            maps.keys().append_value(key);
            maps.values().append_value(value);
        }
        maps.append(pairs.is_some()).expect("as many keys as values");
    }
    Arc::new(maps.finish())
}

#[cfg(test)]
mod tests;
