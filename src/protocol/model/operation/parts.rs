//! Types of the fields of operations.

use uuid::Uuid;

use crate::protocol::model::Hint;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::types::AccountName;
use crate::types::Audience;
use crate::types::BlobName;
use crate::types::CannedAcl;
use crate::types::ChecksumAlgorithm;
use crate::types::ChecksumValue;
use crate::types::Collation;
use crate::types::Conditions;
use crate::types::ContainerName;
use crate::types::Crc64;
use crate::types::CustomerKey;
use crate::types::LockClaim;
use crate::types::Md5;
use crate::types::Protection;
use crate::types::Revision;
use crate::types::TagCondition;
use crate::types::TagQuery;
use crate::types::Timestamp;

/// The conditions that must be met before an operation is carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Precondition {
    /// Entity tags and dates.
    pub conditions: Conditions,
    /// The id of the lease.
    pub lease: Option<Uuid>,
    /// The condition on the blob's tags.
    pub if_tags: Option<TagCondition>,
    /// The encryption of the content.
    pub encryption: RequestEncryption,
    /// Senders to whom the blob must be open: the sender has no other right to read it.
    pub open_to: Option<Audience>,
    /// Whether a write may replace a blob in the archive tier, or a copy take its content.
    pub over_archived: bool,
    /// How blobs of the container are protected. The request does not say it; it is filled in when
    /// the container is looked up.
    pub protection: Protection,
    /// The protection by object lock that the request sets.
    pub lock: LockClaim,
}

/// The encryption that a request names for the content it writes, or for the blob it is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RequestEncryption {
    /// The operation needs no key: it neither reads nor writes content or metadata.
    #[default]
    Unchecked,
    /// No key and no scope.
    Plain,
    /// A customer-provided key.
    Key(CustomerKey),
    /// An encryption scope.
    Scope(String),
    /// An encryption scope with a key of its own. No request says so: it is filled in from the
    /// account.
    KeyedScope {
        /// Its name.
        name: String,
        /// Its key.
        key: CustomerKey,
    },
}

impl RequestEncryption {
    /// The key of the content: the one that came with the request, or that of the scope.
    #[must_use]
    pub const fn key(&self) -> Option<&CustomerKey> {
        match self {
            Self::Key(key) | Self::KeyedScope { key, .. } => Some(key),
            Self::Unchecked | Self::Plain | Self::Scope(_) => None,
        }
    }
}

/// One of the two means that protect a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockPart {
    /// Its retention.
    Retention,
    /// Its legal hold.
    LegalHold,
}

/// A blob by its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobPath {
    /// The container.
    pub container: ContainerName,
    /// The blob.
    pub blob: BlobName,
    /// Which of its states.
    pub revision: Revision,
}

/// The settings of a new container beside metadata and access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerSettings {
    /// The order of its names.
    pub collation: Collation,
    /// Canonical id of the user that owns it; `None` for the account's root.
    pub owner: Option<String>,
    /// Its region, where the request names one.
    pub region: Option<String>,
    /// The access control list: who may list it without a role in the account.
    pub acl: CannedAcl,
    /// Whether it has object lock. An account may have it for all new containers.
    pub object_lock: bool,
    /// Whether a container that exists, and has this owner, region and list, is the answer.
    pub keeps_own: bool,
}

impl Default for ContainerSettings {
    fn default() -> Self {
        let (owner, region, acl) = (None, None, CannedAcl::Private);
        let (object_lock, keeps_own) = (false, false);
        Self { collation: Collation::Utf16, owner, region, acl, object_lock, keeps_own }
    }
}

/// How the content lies in the body. The dialect reads it in the head and checks the length against
/// the operation's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The body is the content, of a known length.
    Known {
        /// Bytes of content.
        len: u64,
    },
    /// The body is the content. Its length is known when it has ended.
    Open {
        /// Bytes of content at most; more are `RequestBodyTooLarge`.
        len_max: u64,
    },
    /// The body is a message that holds the content in numbered segments with checksums.
    Segmented {
        /// Bytes of content.
        len: u64,
        /// Bytes of the message.
        message_len: u64,
    },
}

impl Framing {
    /// Bytes of content; `None` when the head does not say.
    #[must_use]
    pub const fn content_len(self) -> Option<u64> {
        match self {
            Self::Known { len } | Self::Segmented { len, .. } => Some(len),
            Self::Open { .. } => None,
        }
    }

    /// Bytes that the content has at most.
    #[must_use]
    pub const fn len_max(self) -> u64 {
        match self {
            Self::Known { len } | Self::Segmented { len, .. } => len,
            Self::Open { len_max } => len_max,
        }
    }
}

/// A body to be streamed, and the client's claims about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upload {
    /// How its content lies in it.
    pub framing: Framing,
    /// MD5 of the body: a mismatch is `Md5Mismatch`.
    pub md5: Option<Md5>,
    /// CRC-64 of the body: a mismatch is `Crc64Mismatch`.
    pub crc64: Option<Crc64>,
    /// Another checksum of the content.
    pub checksums: ClaimedChecksums,
}

/// The claim of a request about a checksum that is kept with the content. Source: S3, "Checking
/// object integrity".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClaimedChecksums {
    /// The algorithm that the request names; `None` if it names none.
    pub wanted: Option<ChecksumAlgorithm>,
    /// Where the value is with which the computed one is compared.
    pub claim: ChecksumClaim,
}

/// Where the value of a checksum is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChecksumClaim {
    /// Nowhere: the checksum is computed and kept.
    #[default]
    None,
    /// In the head.
    Value(ChecksumValue),
    /// In a trailer of the body.
    Trailer,
}

/// A stored access policy of a container, as clients see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessPolicy {
    /// The id by which signatures name it; 1 to 64 characters.
    pub id: String,
    /// From when on.
    pub start: Option<Timestamp>,
    /// Until when.
    pub expiry: Option<Timestamp>,
    /// Letters of permissions.
    pub permissions: Option<String>,
}

impl AccessPolicy {
    /// Whether it says nothing, so that all is left to the signatures that name it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.start.is_none() && self.expiry.is_none() && self.permissions.is_none()
    }
}

/// The user for whom a user delegation key is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The object id.
    pub object: String,
    /// The tenant.
    pub tenant: String,
    /// The entitlement from which the key is derived.
    pub entitlement: String,
}

/// Which checksum of the returned range a Get Blob asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeChecksum {
    /// MD5.
    Md5,
    /// CRC-64.
    Crc64,
}

impl RangeChecksum {
    /// The longest range whose checksum may be requested, bytes.
    pub const BYTES_MAX: u64 = 4 * 1024 * 1024;

    /// The refusal of a longer range.
    #[must_use]
    pub fn too_long(self) -> Refusal {
        Refusal::new(Reason::OutOfRangeInput).hint(match self {
            Self::Md5 => Hint::LongForMd5,
            Self::Crc64 => Hint::LongForCrc64,
        })
    }
}

/// Which lists Get Block List returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockListKind {
    /// The committed list (the default).
    Committed,
    /// Staged blocks.
    Uncommitted,
    /// Both.
    All,
}

/// List Containers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListContainers {
    /// Only names that start so.
    pub prefix: Option<String>,
    /// Where the page before ended, as sent.
    pub marker: Option<String>,
    /// As sent, cut to 5,000; `None` means 5,000.
    pub max_results: Option<u32>,
    /// Whether metadata is shown.
    pub metadata: bool,
    /// Whether containers that were softly deleted are shown.
    pub deleted: bool,
    /// Only containers that the user of this canonical id owns.
    pub owner: Option<String>,
    /// Whether a page names the next one only if more containers follow, or may follow where the
    /// limit of scanned rows ended the page.
    pub exact: bool,
}

/// Where a list of blobs begins, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListAfter {
    /// After this name.
    Name(String),
    /// After this name, and after the folded prefix that the name is or begins with.
    NameOrPrefix(String),
    /// After this version of this name, among versions that are listed newest first, and after the
    /// folded prefix of the name.
    Version(String, VersionAfter),
    /// The same inside the folded prefix: the page before did not show it.
    PassedVersion(String, VersionAfter),
}

/// The version of a name after which a list goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionAfter {
    /// The version of this time, whether or not it exists.
    Time(Timestamp),
    /// The null version; all versions of the name if it has none.
    Null,
}

/// The last name or version that a page has passed without showing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The last name.
    pub name: String,
    /// Only the versions of the name down to this time, where a list has versions newest first.
    pub version: Option<Timestamp>,
}

/// List Blobs, flat or by hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListBlobs {
    /// The container.
    pub container: ContainerName,
    /// Only names that start so.
    pub prefix: Option<String>,
    /// Folds names.
    pub delimiter: Option<String>,
    /// Where the page before ended, as sent.
    pub marker: Option<String>,
    /// Only names at or after this one.
    pub start_from: Option<String>,
    /// Only names before this one.
    pub end_before: Option<String>,
    /// Only names after this one, where there is no marker.
    pub after: Option<ListAfter>,
    /// Whether a page names the next one only if more entries follow, or may follow where the limit
    /// of scanned rows ended the page. Such a page ends behind a name that the answer can contain.
    pub exact: bool,
    /// As sent, cut to 5,000; `None` means 5,000. Zero is an empty page.
    pub max_results: Option<u32>,
    /// Whether metadata is shown.
    pub metadata: bool,
    /// Whether blobs that have only staged blocks are shown.
    pub uncommitted: bool,
    /// Whether snapshots are shown.
    pub snapshots: bool,
    /// Whether versions are shown that are not current, and in which order.
    pub versions: Option<VersionOrder>,
    /// Whether soft-deleted blobs are shown, and soft-deleted snapshots and versions if these are
    /// shown.
    pub deleted: bool,
    /// Whether blobs are shown of which nothing is left but versions.
    pub versions_only: bool,
    /// Whether tags are shown.
    pub tags: bool,
    /// Whether the last copy is shown.
    pub copy: bool,
    /// Whether retentions are shown.
    pub retention: bool,
    /// Whether legal holds are shown.
    pub legal_hold: bool,
    /// Whether the tag of the content is shown. If not, the facts may have another one.
    pub content_etag: bool,
    /// Whether the page may be answered in columns.
    pub columns: bool,
}

/// Find Blobs by Tags, in one container or all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindBlobs {
    /// The container in the URL.
    pub container: Option<ContainerName>,
    /// `where` as sent.
    pub text: String,
    /// The parsed search.
    pub query: TagQuery,
    /// Where the page before ended, as sent.
    pub marker: Option<String>,
    /// As sent, cut to 5,000; `None` means 5,000.
    pub max_results: Option<u32>,
}

/// Blob Batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The account in the URL.
    pub account: AccountName,
    /// The container in the URL: then all parts are about its blobs.
    pub container: Option<ContainerName>,
    /// Whether the URL has the account in its path.
    pub path_style: bool,
    /// Between the parts.
    pub boundary: String,
    /// The requests; in the body.
    pub parts: Vec<BatchPart>,
    /// Why none of them can be carried out. A part of the answer says it.
    pub fault: Option<Box<Refusal>>,
}

/// One request of a batch.
#[derive(Clone, Debug)]
pub struct BatchPart {
    /// Its id, repeated by the answer.
    pub id: Option<String>,
    /// The request, unchanged: the dialect of the batch verifies its signature over these bytes
    /// before it parses them.
    pub request: http::Request<()>,
}

impl PartialEq for BatchPart {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&self.request, &other.request);
        (&self.id, a.method(), a.uri(), a.headers())
            == (&other.id, b.method(), b.uri(), b.headers())
    }
}

impl Eq for BatchPart {}

/// The parameters of a request for a user delegation key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    /// The start of its validity; `None` for immediately.
    pub start: Option<Timestamp>,
    /// Until when.
    pub expiry: Timestamp,
    /// The tenant of the users it is delegated to, or empty.
    pub delegated_tenant: String,
}

impl Default for KeyInfo {
    /// A key that has expired.
    fn default() -> Self {
        Self { start: None, expiry: Timestamp::ZERO, delegated_tenant: String::new() }
    }
}

/// The kind of a write of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageWrite {
    /// Writes the body.
    Update,
    /// Makes the pages zeros again.
    Clear,
}

/// A page of the parts in which a blob was uploaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WantedParts {
    /// Only parts with higher numbers.
    pub after: u32,
    /// Parts at most.
    pub limit: u32,
}

/// A condition on a sequence number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceBounds {
    /// At most this.
    pub at_most: Option<u64>,
    /// Less than this.
    pub below: Option<u64>,
    /// Equal to this.
    pub equal: Option<u64>,
}

/// A change of a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceChange {
    /// The higher of the two.
    Max(u64),
    /// This one.
    Update(u64),
    /// One more.
    Increment,
}

/// The order of the versions of a blob in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionOrder {
    /// The current blob is last. Delete markers are not shown.
    OldestFirst,
    /// The current blob is first. Delete markers are shown.
    NewestFirst,
}
