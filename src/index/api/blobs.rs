//! Changes of blobs.

use std::fmt::Debug;

use bytes::Bytes;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use uuid::Uuid;

use crate::index::api::NewBlobFields;
use crate::types::AccessTier;
use crate::types::Audience;
use crate::types::BlobKey;
use crate::types::BlobProperties;
use crate::types::BlockId;
use crate::types::BlockListEntry;
use crate::types::CannedAcl;
use crate::types::Conditions;
use crate::types::Crc64;
use crate::types::DeleteScope;
use crate::types::Encryption;
use crate::types::KeyedNonce;
use crate::types::Location;
use crate::types::LockClaim;
use crate::types::Metadata;
use crate::types::NewKind;
use crate::types::Protection;
use crate::types::Retention;
use crate::types::Revision;
use crate::types::TagCondition;
use crate::types::Tags;

/// The preconditions of a request on the current state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    /// `If-*`.
    pub conditions: Conditions,
    /// `x-ms-lease-id`, if sent.
    pub lease: Option<Uuid>,
    /// `x-ms-if-tags`, if sent.
    pub if_tags: Option<TagCondition>,
    /// The encryption that the request names.
    pub encryption: EncryptionClaim,
    /// The audience that the blob's access control list must permit, because the sender has no
    /// other permission to read it. For a missing blob this fails.
    pub open_to: Option<Audience>,
    /// Whether a blob in the archive tier may be replaced, or its content be read. In Blob REST it
    /// may not be replaced, in S3 it may. Its content is only read by a copy that is rehydrated.
    pub over_archived: bool,
    /// How blobs that are overwritten or deleted are protected. For a write, these are the settings
    /// of the container when the write was about to commit.
    pub protection: Protection,
    /// The protection by object lock that the request sets.
    pub lock: LockClaim,
}

/// The encryption that a request names: that of new content, or the one that an existing blob must
/// have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EncryptionClaim {
    /// Not checked: neither content nor metadata are read or written.
    #[default]
    Unchecked,
    /// A key, a scope, or neither.
    Given(Option<Encryption>),
}

impl EncryptionClaim {
    /// The encryption of a blob that the request makes.
    #[must_use]
    pub fn applied(&self) -> Option<Encryption> {
        match self {
            Self::Unchecked => None,
            Self::Given(encryption) => encryption.clone(),
        }
    }
}

/// Content whose bytes are durable already, or small enough to live in the row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NewContent {
    /// Kept in the row; may be empty.
    Inline(Bytes),
    /// Stored in extents, in order, by this request alone.
    Stored(Vec<Location>),
    /// Stored in extents, in order; other rows refer to them too.
    Shared(Vec<Location>),
    /// Any of those above, encrypted as earlier releases did; their bytes are ciphertext.
    Encrypted(KeyedNonce, #[serde(deserialize_with = "unencrypted")] Box<Self>),
    /// Any of those above but encrypted ones: their bytes are authenticated chunks
    /// (`types::chunks`). In a Put Page each location is a content by itself, under its part of the
    /// nonce.
    Authenticated(KeyedNonce, #[serde(deserialize_with = "unencrypted")] Box<Self>),
}

/// Content that is not encrypted, as a message holds it: the first variants of [`NewContent`].
#[derive(Deserialize)]
enum Unencrypted {
    Inline(Bytes),
    Stored(Vec<Location>),
    Shared(Vec<Location>),
}

/// Decodes what is encrypted. Content is encrypted once: deeper levels are refused, so that a
/// message cannot exhaust the stack.
fn unencrypted<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<NewContent>, D::Error> {
    Ok(Box::new(match Unencrypted::deserialize(deserializer)? {
        Unencrypted::Inline(bytes) => NewContent::Inline(bytes),
        Unencrypted::Stored(locations) => NewContent::Stored(locations),
        Unencrypted::Shared(locations) => NewContent::Shared(locations),
    }))
}

/// Makes or replaces a blob; its staged blocks are discarded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutBlob {
    /// The blob.
    pub key: BlobKey,
    /// The precondition.
    pub guard: Guard,
    /// System properties.
    pub properties: BlobProperties,
    /// User metadata.
    #[serde(deserialize_with = "Metadata::deserialize_checked")]
    pub metadata: Metadata,
    /// Index tags.
    pub tags: Tags,
    /// The kind of blob to make.
    pub kind: NewKind,
    /// The bytes; of a block blob, else empty and inline.
    pub content: NewContent,
    /// Their CRC-64/NVME.
    pub crc64: Crc64,
    /// The tier, when it is given.
    pub tier: Option<AccessTier>,
    /// Its tagged fields.
    pub fields: NewBlobFields,
}

/// Stages one block, replacing a staged one of the same id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageBlock {
    /// The blob.
    pub key: BlobKey,
    /// Only the lease counts: Put Block takes no conditions.
    pub guard: Guard,
    /// The block.
    pub id: BlockId,
    /// The bytes, not empty.
    pub content: NewContent,
    /// Their CRC-64/NVME.
    pub crc64: Crc64,
}

/// Commits a block list: the named blocks become the blob, all other staged ones are discarded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitBlocks {
    /// The blob.
    pub key: BlobKey,
    /// The precondition.
    pub guard: Guard,
    /// System properties, replacing all.
    pub properties: BlobProperties,
    /// User metadata, replacing all.
    #[serde(deserialize_with = "Metadata::deserialize_checked")]
    pub metadata: Metadata,
    /// Index tags, replacing all.
    pub tags: Tags,
    /// The blocks, at most [`crate::types::BLOCKS_COMMITTED_MAX`].
    pub list: Vec<BlockListEntry>,
    /// The tier, when it is given.
    pub tier: Option<AccessTier>,
}

/// A change of a blob that leaves its content alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlobChange {
    /// Replaces the system properties.
    Properties(BlobProperties),
    /// Replaces the user metadata.
    Metadata(#[serde(deserialize_with = "Metadata::deserialize_checked")] Metadata),
    /// Replaces the tags; leaves the blob's tag and time alone.
    Tags(Tags),
    /// Replaces the access control list; leaves the blob's tag and time alone.
    Acl(CannedAcl),
    /// Replaces the retention; leaves the blob's tag and time alone.
    Retention(Option<Retention>),
    /// Puts it under a legal hold, or ends that; leaves the blob's tag and time alone.
    LegalHold(bool),
}

impl BlobChange {
    /// Whether the change is of what belongs to every version: neither the content nor what
    /// describes it, nor the blob's tag and time.
    #[must_use]
    pub const fn is_beside_content(&self) -> bool {
        match self {
            Self::Properties(_) | Self::Metadata(_) => false,
            Self::Tags(_) | Self::Acl(_) | Self::Retention(_) | Self::LegalHold(_) => true,
        }
    }
}

/// Changes properties or metadata.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateBlob {
    /// The blob.
    pub key: BlobKey,
    /// Which of its states. Of a snapshot or version, only what [`BlobChange::is_beside_content`]
    /// may change.
    pub revision: Revision,
    /// The precondition.
    pub guard: Guard,
    /// The change.
    pub change: BlobChange,
}

/// Deletes a blob with its staged blocks, or snapshots or a version of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteBlob {
    /// The blob.
    pub key: BlobKey,
    /// The precondition.
    pub guard: Guard,
    /// What is deleted.
    pub scope: DeleteScope,
}
