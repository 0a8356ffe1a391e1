//! Values that all layers use: ids, names, keys, locations, checksums, conditions. No I/O, no
//! async.
//!
//! A constructed value is valid: constructors check, and fields with rules are private. Docs name
//! units.

mod account_type;
mod acl;
mod block;
mod checksum;
mod chunks;
mod cipher;
mod cluster;
mod condition;
mod container_key;
mod content_checksum;
mod content_etag;
mod content_hasher;
mod content_md5;
mod encryption;
mod etag;
mod group;
mod ids;
mod iso;
mod key;
mod kind;
mod lease;
mod location;
mod md5_batch;
mod metadata;
mod name;
mod node_roles;
mod object_properties;
mod owner;
mod peer;
mod properties;
mod protection;
mod range;
pub mod request;
mod retention;
mod role;
mod scope;
mod secret;
mod service;
mod setting;
mod spelling;
mod storage_class;
mod stripe;
mod tag_filter;
mod tags;
mod tier;
mod timestamp;
mod trace_parent;
mod upload;
mod user;
mod versioning;

pub use account_type::{AccountKind, AccountType, NoSuchType, Sku, TierFamily};
pub use acl::{Audience, CannedAcl};
pub use block::{
    APPENDS_MAX, BLOCKS_COMMITTED_MAX, BLOCKS_UNCOMMITTED_MAX, BlockId, BlockListEntry, BlockSource,
};
pub use checksum::{Crc32c, Crc32cHasher, Crc64, Crc64Combiner, Crc64Hasher, Md5, Md5Hasher};
pub use chunks::{
    AUTHENTICATED_CHUNK_BYTES, CHUNK_BYTES, CHUNK_TAG_BYTES, ChunkCipher, ChunkFormat, ChunkWriter,
    authenticated_len, authenticated_range, content_len, step_end,
};
pub use cipher::{ContentCipher, CustomerKey, KeySha256, KeyedNonce};
pub use cluster::ClusterNumber;
pub use condition::{Conditions, EtagMatch, Outcome, Pairing, Validators};
pub use container_key::ContainerKey;
pub use content_checksum::{
    ChecksumAlgorithm, ChecksumKind, ChecksumValue, ContentChecksum, ContentTag,
};
pub use content_etag::ContentEtag;
pub use content_hasher::ContentHasher;
pub use content_md5::{ContentMd5, EncryptedMd5};
pub use encryption::{Encryption, EncryptionScope};
pub use etag::Etag;
pub use group::{GROUP_EXTENTS, GroupId};
pub use ids::{
    AccountId, ContainerId, Epoch, ExtentId, Generation, HostId, Incarnation, NodeId, PartitionId,
    Sequence,
};
pub use key::{BlobKey, Collation, KeyRange, RoutingKey, TAG_INDEX, TagEntryKey};
pub use kind::{BlobKind, NewKind, PAGE_BLOB_BYTES_MAX, PAGE_BYTES, PAGE_WINDOW_BYTES};
pub use lease::{Lease, LeaseAction, LeaseState};
pub use location::{ByteLen, ExtentOffset, Location, locations_len};
pub use md5_batch::{MD5_BATCH_MAX, Md5Batch, Md5Stream};
pub use metadata::{Metadata, MetadataError};
pub use name::{AccountName, BlobName, ContainerName, NameError};
pub use node_roles::NodeRoles;
pub use object_properties::ObjectProperties;
pub use owner::OwnerIds;
pub use peer::{Peer, Protocols};
pub use properties::{BlobProperties, PublicAccess};
pub use protection::Protection;
pub use range::ByteRange;
pub use retention::{
    DefaultRetention, LockClaim, ObjectLock, Retention, RetentionMode, RetentionPeriod, SoftDelete,
};
pub use role::{PrincipalKind, Role, RoleAssignment};
pub use scope::DeleteScope;
pub use secret::Secret;
pub use service::{
    CorsRule, Logging, ServiceMetrics, ServiceProperties, ServicePropertiesChange, Website,
};
pub use setting::{ContainerTags, CrossOriginRule, Setting, SettingKind};
pub use spelling::{nearest, resembles};
pub use storage_class::StorageClass;
pub use stripe::{PartitionKeys, Stripe};
pub use tag_filter::{Comparison, TagClause, TagCondition, TagFault, TagFilterError, TagQuery};
pub use tags::{Tags, TagsError};
pub use tier::{AccessTier, RehydratePriority, Rehydration, TierState};
pub use timestamp::Timestamp;
pub use trace_parent::TraceParent;
pub use upload::{
    Coverage, PART_BYTES_MAX, PART_BYTES_MIN, PartNumber, UPLOAD_PARTS_MAX, UploadChecksum,
    UploadId, part_tag, tag_of_parts,
};
pub use user::{AccessKeyId, USER_ISSUER, UserName, spelled_id};
pub use versioning::{Revision, VersionId, Versioning};
