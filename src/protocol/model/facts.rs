//! The facts of containers and blobs that clients see.

use crate::protocol::model::copy::CopyFacts;
use crate::types::AccessTier;
use crate::types::BlobKind;
use crate::types::BlobProperties;
use crate::types::ChecksumValue;
use crate::types::ContentChecksum;
use crate::types::ContentEtag;
use crate::types::Crc64;
use crate::types::Encryption;
use crate::types::EncryptionScope;
use crate::types::Etag;
use crate::types::Lease;
use crate::types::LeaseState;
use crate::types::Metadata;
use crate::types::ObjectProperties;
use crate::types::PublicAccess;
use crate::types::Rehydration;
use crate::types::Retention;
use crate::types::StorageClass;
use crate::types::Tags;
use crate::types::TierState;
use crate::types::Timestamp;
use crate::types::VersionId;

/// Tag and time after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The new tag.
    pub etag: Etag,
    /// The new time.
    pub last_modified: Timestamp,
    /// The version; `None` where versions are not kept.
    pub version: Option<VersionId>,
}

/// The facts of a lease that clients see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseFacts {
    /// As of the answer.
    pub state: LeaseState,
    /// Whether it never runs out.
    pub infinite: bool,
}

impl LeaseFacts {
    /// No lease.
    pub const NONE: Self = Self { state: LeaseState::Available, infinite: false };

    /// A lease as it is at `now`.
    #[must_use]
    pub fn at(now: Timestamp, lease: Option<&Lease>) -> Self {
        lease.map_or(Self::NONE, |lease| Self {
            state: lease.state(now),
            infinite: lease.duration.is_none(),
        })
    }
}

/// The facts of a tier that clients see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierFacts {
    /// The tier.
    pub tier: AccessTier,
    /// Whether it was never set: it is that of the account, or follows from the length.
    pub inferred: bool,
    /// When it was set; `None` also for page blobs, of which the service does not show it.
    pub changed: Option<Timestamp>,
    /// On the way out of the archive.
    pub rehydrating: Option<Rehydration>,
    /// Whether it left the archive, and its tier was not set since.
    pub rehydrated: bool,
}

impl TierFacts {
    /// The tier of a blob of which none was set.
    pub const INFERRED: Self = Self {
        tier: AccessTier::Hot,
        inferred: true,
        changed: None,
        rehydrating: None,
        rehydrated: false,
    };

    /// The tier of a page blob of a premium account. Source: "Get Blob Properties".
    #[must_use]
    pub fn of_page_blob(len: u64, state: Option<&TierState>) -> Self {
        let set = state.map(|state| state.tier).filter(|tier| tier.bytes_max().is_some());
        let tier = set.unwrap_or_else(|| AccessTier::of_page_blob(len));
        Self { tier, inferred: set.is_none(), ..Self::INFERRED }
    }

    /// A tier as it is at `now`.
    #[must_use]
    pub fn at(now: Timestamp, state: Option<&TierState>) -> Self {
        state.map_or(Self::INFERRED, |state| {
            let was_rehydrating = state.rehydrating.is_some();
            let TierState { tier, changed, rehydrating } = state.at(now);
            let rehydrated = was_rehydrating && rehydrating.is_none();
            Self { tier, inferred: false, changed: Some(changed), rehydrating, rehydrated }
        })
    }

    /// The state of a blob on its way out of the archive, in one word.
    #[must_use]
    pub fn archive_status(&self) -> Option<String> {
        let to = self.rehydrating.as_ref()?.to;
        Some(format!("rehydrate-pending-to-{}", to.as_str().to_ascii_lowercase()))
    }
}

/// The facts of a container that clients see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerFacts {
    /// Its tag and time.
    pub change: Change,
    /// User metadata.
    pub metadata: Metadata,
    /// Anonymous access.
    pub public_access: PublicAccess,
    /// Its lease.
    pub lease: LeaseFacts,
    /// The scope of blobs that name none.
    pub encryption_scope: Option<EncryptionScope>,
    /// When it was made.
    pub created: Timestamp,
    /// Canonical id of the user that owns it; `None` for the account's root.
    pub owner: Option<String>,
    /// Its region; `None` for that of the server.
    pub region: Option<String>,
    /// When it was softly deleted.
    pub deleted: Option<DeletedFacts>,
    /// Whether it has object lock.
    pub has_object_lock: bool,
}

/// The facts of a blob that clients see besides its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobFacts {
    /// Its tag and time.
    pub change: Change,
    /// When it was made.
    pub created: Timestamp,
    /// Block, append or page blob.
    pub kind: BlobKind,
    /// Content length, bytes.
    pub len: u64,
    /// System properties.
    pub properties: BlobProperties,
    /// User metadata.
    pub metadata: Metadata,
    /// Index tags.
    pub tags: Tags,
    /// Whether it is a delete marker.
    pub is_marker: bool,
    /// Whether it is the current version, where versions are kept. Not known in lists.
    pub is_current: bool,
    /// When it was softly deleted.
    pub deleted: Option<DeletedFacts>,
    /// Its retention.
    pub retention: Option<Retention>,
    /// Whether it is under a legal hold; `None` if it never was.
    pub legal_hold: Option<bool>,
    /// Its lease.
    pub lease: LeaseFacts,
    /// The last copy into it.
    pub copy: Option<Box<CopyFacts>>,
    /// Its tier; `None` if blobs of its kind have none in its account.
    pub tier: Option<TierFacts>,
    /// Encryption by a customer-provided key or under a scope.
    pub encryption: Option<Encryption>,
    /// When it was last read or changed; when that is tracked.
    pub last_access: Option<Timestamp>,
    /// S3's tag of the content.
    pub content_etag: ContentEtag,
    /// The CRC-64 of the content, if it is known.
    pub crc64: Option<Crc64>,
    /// Other checksums of the content that are kept. A list of blobs may show those of content
    /// under a customer's key encrypted.
    pub checksums: Vec<ContentChecksum>,
    /// The fields of an object of S3 beyond these properties, if it has any.
    pub object: Option<Box<ObjectProperties>>,
}

/// When something was softly deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletedFacts {
    /// The time.
    pub since: Timestamp,
    /// The whole days for which it can still be restored.
    pub days_left: u64,
}

impl BlobFacts {
    /// Facts of a blob of which nothing was ever set.
    #[must_use]
    pub fn new(change: Change, created: Timestamp, len: u64) -> Self {
        Self {
            change,
            created,
            kind: BlobKind::Block,
            len,
            properties: BlobProperties::default(),
            metadata: Metadata::default(),
            tags: Tags::default(),
            is_marker: false,
            is_current: false,
            deleted: None,
            retention: None,
            legal_hold: None,
            lease: LeaseFacts::NONE,
            copy: None,
            tier: Some(TierFacts::INFERRED),
            encryption: None,
            last_access: None,
            content_etag: ContentEtag::of_commit(change.etag, len, 1),
            crc64: None,
            checksums: Vec::new(),
            object: None,
        }
    }
}

impl BlobFacts {
    /// The storage class: that which the row keeps, else the one of the tier.
    #[must_use]
    pub fn storage_class(&self) -> StorageClass {
        let kept = self.object.as_ref().and_then(|object| object.storage_class.as_deref());
        let tier = self.tier.as_ref();
        tier.map_or(StorageClass::Standard, |tier| StorageClass::shown(kept, tier.tier))
    }

    /// The checksums of the content: those that are kept, else the CRC-64, if it is known. Source:
    /// S3, "Checking object integrity".
    #[must_use]
    pub fn content_checksums(&self) -> Vec<ContentChecksum> {
        if !self.checksums.is_empty() {
            return self.checksums.clone();
        }
        let crc64 = self.crc64.map(|crc64| ChecksumValue::from(crc64).of_whole());
        crc64.into_iter().collect()
    }
}
