//! The parts of rows that clients see.

use crate::frontend::copy_failure;
use crate::frontend::state::FrontEnd;
use crate::index::BlobRecord;
use crate::index::ContainerRecord;
use crate::index::CopyRecord;
use crate::index::CopyStatus;
use crate::protocol::model::copy::CopyFacts;
use crate::protocol::model::copy::CopyState;
use crate::protocol::model::copy::IncrementalFacts;
use crate::protocol::model::reply::BlobFacts;
use crate::protocol::model::reply::Change;
use crate::protocol::model::reply::ContainerFacts;
use crate::protocol::model::reply::DeletedFacts;
use crate::protocol::model::reply::LeaseFacts;
use crate::protocol::model::reply::TierFacts;
use crate::types::BlobKind;
use crate::types::SoftDelete;
use crate::types::TierFamily;
use crate::types::Timestamp;
use crate::types::VersionId;
use crate::types::Versioning;

/// The properties of a container, as of now.
pub(crate) fn of_container(
    front: &FrontEnd,
    record: ContainerRecord,
    now: Timestamp,
) -> ContainerFacts {
    let deleted = record.deleted().map(|deleted| deleted_facts(front, deleted, now));
    let has_object_lock = record.object_lock().is_some();
    let (owner, region) = (record.owner().map(str::to_owned), record.region().map(str::to_owned));
    ContainerFacts {
        created: record.created,
        owner,
        region,
        deleted,
        has_object_lock,
        change: Change { etag: record.etag, last_modified: record.last_modified, version: None },
        lease: LeaseFacts::at(now, record.lease.as_ref()),
        metadata: record.metadata,
        public_access: record.public_access,
        encryption_scope: record.encryption_scope,
    }
}

/// Tag, time and version of a blob.
pub(crate) fn change(record: &BlobRecord) -> Change {
    let BlobRecord { etag, last_modified, .. } = *record;
    Change { etag, last_modified, version: record.version() }
}

/// The properties of a blob, as of now, in an account whose blobs have these `tiers`.
pub(crate) fn of_blob(
    front: &FrontEnd,
    tiers: TierFamily,
    record: BlobRecord,
    now: Timestamp,
) -> Box<BlobFacts> {
    let change = change(&record);
    let (content_etag, crc64) = (record.content_etag(), record.content_crc64());
    let object = record.fields.as_ref().and_then(|fields| fields.object());
    let under = record.under();
    let incremental = record.incremental_copy();
    let incremental = incremental.map(|copy| IncrementalFacts { snapshot: copy.snapshot });
    Box::new(BlobFacts {
        last_access: front.last_access.as_ref().and_then(|_| record.last_access()),
        lease: LeaseFacts::at(now, record.lease.as_ref()),
        is_marker: record.is_delete_marker(),
        deleted: record.deleted().map(|deleted| deleted_facts(front, deleted, now)),
        retention: record.retention(),
        legal_hold: record.legal_hold(),
        kind: record.kind,
        tier: tier(tiers, &record, now),
        properties: record.properties,
        metadata: record.metadata,
        tags: record.tags,
        copy: record.copy.map(|copy| Box::new(copied(*copy, incremental))),
        encryption: under,
        content_etag,
        crc64,
        checksums: record.fields.map(|fields| fields.checksums).unwrap_or_default(),
        object,
        ..BlobFacts::new(change, record.created, record.len)
    })
}

/// The tier of a blob, if it has one.
fn tier(tiers: TierFamily, record: &BlobRecord, now: Timestamp) -> Option<TierFacts> {
    let set = record.tier.as_ref();
    match (tiers, record.kind) {
        (TierFamily::Standard, BlobKind::Block) => Some(TierFacts::at(now, set)),
        (TierFamily::PremiumPages, BlobKind::Page { .. }) => {
            Some(TierFacts::of_page_blob(record.len, set))
        }
        (TierFamily::Standard, BlobKind::Append { .. } | BlobKind::Page { .. })
        | (TierFamily::PremiumPages, BlobKind::Block | BlobKind::Append { .. })
        | (TierFamily::Untiered, _) => None,
    }
}

/// As [`of_blob`], for a blob of a container that may keep versions: a blob that was written before
/// is the null version.
pub(crate) fn of_version(
    front: &FrontEnd,
    seen: Seen,
    now: Timestamp,
    versioning: Option<Versioning>,
) -> Box<BlobFacts> {
    let mut facts = of_blob(front, seen.tiers, seen.record, now);
    if versioning.is_some() && facts.change.version.is_none() {
        facts.change.version = Some(VersionId::null(facts.change.last_modified));
    }
    facts.is_current = seen.is_current;
    facts
}

/// The facts of a soft-deleted row that clients see.
pub(crate) fn deleted_facts(front: &FrontEnd, deleted: SoftDelete, now: Timestamp) -> DeletedFacts {
    let day = front.rows.retention_day.as_secs().max(1);
    DeletedFacts { since: deleted.since, days_left: deleted.until.since(now).as_secs() / day }
}

/// A blob that was read.
pub(crate) struct Seen {
    pub(crate) record: BlobRecord,
    /// Whether it is the current blob.
    pub(crate) is_current: bool,
    /// The tiers of its account.
    pub(crate) tiers: TierFamily,
}

/// The state of a copy.
fn copied(copy: CopyRecord, incremental: Option<IncrementalFacts>) -> CopyFacts {
    CopyFacts {
        id: copy.id,
        source: copy.source,
        state: match copy.status {
            CopyStatus::Pending => CopyState::Pending,
            CopyStatus::Success => CopyState::Success,
            CopyStatus::Aborted => CopyState::Aborted,
            CopyStatus::Failed => CopyState::Failed,
        },
        failure: copy.description.map(copy_failure::read),
        copied: copy.copied,
        total: copy.total,
        completed: copy.completed,
        incremental,
    }
}
