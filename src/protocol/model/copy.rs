//! Operations that take their bytes from a URL.

use std::fmt;

use http::Uri;
use uuid::Uuid;

use crate::protocol::model::Refusal;
use crate::protocol::model::operation::parts::BlobPath;
use crate::protocol::model::operation::parts::Precondition;
use crate::types::AccessTier;
use crate::types::BlobProperties;
use crate::types::ByteRange;
use crate::types::Crc64;
use crate::types::CustomerKey;
use crate::types::Md5;
use crate::types::Metadata;
use crate::types::RehydratePriority;
use crate::types::Tags;
use crate::types::Timestamp;

/// The source of bytes, and its preconditions. Its `Debug` hides signatures, tokens and keys.
#[derive(Clone, PartialEq, Eq)]
pub struct CopySource {
    /// Absolute, `http` or `https`.
    pub url: Uri,
    /// The `Authorization` header for its server: `Bearer` and a token.
    pub authorization: Option<String>,
    /// The key under which its content is.
    pub key: Option<CustomerKey>,
    /// Its precondition.
    pub conditions: SourceConditions,
    /// The bytes wanted; none for all.
    pub range: Option<ByteRange>,
    /// Of the bytes taken, as the client claims.
    pub md5: Option<Md5>,
    /// Of the bytes taken, as the client claims.
    pub crc64: Option<Crc64>,
    /// The purpose of the copy.
    pub purpose: CopyPurpose,
    /// Whether the source may be in the archive tier.
    pub archived: ArchivedSource,
}

/// From where the copy of a source in the archive tier may be rehydrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchivedSource {
    /// From nowhere: the operation needs the bytes now, or names no other tier.
    Refused,
    /// From the account of the destination.
    OwnAccount,
    /// From any account.
    AnyAccount,
}

/// The purpose for which the bytes of a source are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyPurpose {
    /// Put Block, Append Block and Put Page From URL.
    Part,
    /// Put Blob From URL.
    Blob,
    /// Copy Blob.
    Copy {
        /// Whether the answer waits for the bytes.
        sync: bool,
    },
}

impl CopyPurpose {
    /// Whether a source in the requester's own account needs no authorization of its own. Source:
    /// "Copy Blob", and recorded answers for the other operations (2021-08-06).
    #[must_use]
    pub const fn trusts_own_account(self) -> bool {
        matches!(self, Self::Copy { sync: false })
    }
}

/// The preconditions on the source of a copy. The texts are the client's, and well formed. The
/// server of the source evaluates them, because an entity tag of another server has no meaning
/// here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceConditions {
    /// Entity tags, one of which the source must have.
    pub if_match: Option<String>,
    /// Entity tags, none of which the source may have.
    pub if_none_match: Option<String>,
    /// A date since which the source must have changed.
    pub if_modified_since: Option<String>,
    /// A date since which the source must not have changed.
    pub if_unmodified_since: Option<String>,
    /// The id of its lease.
    pub lease: Option<String>,
    /// The condition on its tags.
    pub if_tags: Option<String>,
}

impl CopySource {
    /// The URL as others may see it: without its signature.
    #[must_use]
    pub fn shown(&self) -> String {
        let snapshot = self.url.query().into_iter().flat_map(|query| query.split('&'));
        let mut kept = snapshot.filter(|piece| {
            let name = piece.split_once('=').map_or(*piece, |(name, _)| name);
            ["snapshot", "versionid"].iter().any(|known| name.eq_ignore_ascii_case(known))
        });
        let scheme = self.url.scheme_str().unwrap_or("http");
        let authority = self.url.authority().map_or("", http::uri::Authority::as_str);
        let path = self.url.path();
        match kept.next() {
            Some(snapshot) => format!("{scheme}://{authority}{path}?{snapshot}"),
            None => format!("{scheme}://{authority}{path}"),
        }
    }
}

impl fmt::Debug for CopySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopySource")
            .field("url", &self.shown())
            .field("conditions", &self.conditions)
            .field("range", &self.range)
            .finish_non_exhaustive()
    }
}

/// Which tags a copy gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagOption {
    /// Those of the request.
    Replace(Tags),
    /// Those of the source.
    Copy,
}

impl TagOption {
    /// Whether the copy may get tags.
    #[must_use]
    pub fn sets_any(&self) -> bool {
        match self {
            Self::Replace(tags) => !tags.is_empty(),
            Self::Copy => true,
        }
    }
}

/// Put Blob From URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutBlobFromUrl {
    /// The blob.
    pub path: BlobPath,
    /// Its precondition.
    pub precondition: Precondition,
    /// The bytes.
    pub source: CopySource,
    /// System properties; what is not given is the source's, where those are taken over.
    pub properties: BlobProperties,
    /// Whether the source's properties are taken over.
    pub source_properties: bool,
    /// User metadata.
    pub metadata: Metadata,
    /// The tier, when it is given.
    pub tier: Option<AccessTier>,
    /// Which tags it gets.
    pub tags: TagOption,
}

/// Copy Blob, Copy Blob From URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyBlob {
    /// The destination.
    pub path: BlobPath,
    /// Its precondition.
    pub precondition: Precondition,
    /// The bytes.
    pub source: CopySource,
    /// User metadata; empty means that of the source.
    pub metadata: Metadata,
    /// The tier, when it is given.
    pub tier: Option<AccessTier>,
    /// How fast it is rehydrated to that tier, if the source is archived.
    pub priority: RehydratePriority,
    /// Which tags it gets.
    pub tags: TagOption,
    /// Whether an append blob is sealed; none leaves it as its source is.
    pub seal: Option<bool>,
    /// The answer waits for the end, and the source has at most 256 MiB.
    pub sync: bool,
}

/// Incremental Copy Blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyIncrement {
    /// The destination.
    pub path: BlobPath,
    /// Its precondition.
    pub precondition: Precondition,
    /// The snapshot of a page blob.
    pub source: CopySource,
}

/// How a copy stands, as clients see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyState {
    /// Running.
    Pending,
    /// Done.
    Success,
    /// Aborted by a client.
    Aborted,
    /// Given up.
    Failed,
}

impl CopyState {
    /// The word for it, in rows and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Success => "success",
            Self::Aborted => "aborted",
            Self::Failed => "failed",
        }
    }
}

/// Why a copy failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyFailure {
    /// The refusal that ended it.
    Refused(Box<Refusal>),
    /// A line that an earlier release kept, in the words of its dialect.
    Line(String),
}

/// The facts of the last copy into a blob that clients see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyFacts {
    /// The copy.
    pub id: Uuid,
    /// The URL of the source, without its signature.
    pub source: String,
    /// How it stands.
    pub state: CopyState,
    /// Why it failed.
    pub failure: Option<CopyFailure>,
    /// Bytes so far.
    pub copied: u64,
    /// Bytes in all.
    pub total: u64,
    /// When it ended.
    pub completed: Option<Timestamp>,
    /// The result of Incremental Copy Blob; `None` for other copies.
    pub incremental: Option<IncrementalFacts>,
}

/// The facts of an incremental copy that clients see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncrementalFacts {
    /// The snapshot that the last one made.
    pub snapshot: Option<Timestamp>,
}
