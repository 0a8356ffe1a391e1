//! What few blobs have: the tagged fields of a blob's record. Only their bytes have a meaning yet:
//! no request sets one.

use bytes::Bytes;

use crate::index::record::UnknownFields;
use crate::index::record::tagged::Field;
use crate::index::record::tagged::Tag;
use crate::index::record::tagged::Tagged;
use crate::index::record::tagged::TailError;
use crate::index::record::tagged::Writer;
use crate::types::CannedAcl;
use crate::types::ContentChecksum;
use crate::types::ContentTag;
use crate::types::Retention;
use crate::types::SoftDelete;
use crate::types::Timestamp;
use crate::types::VersionId;

const CONTENT_TAG: Tag = Tag::optional(1);
const CHECKSUMS: Tag = Tag::optional(2);
const OWNER: Tag = Tag::optional(3);
const ACL: Tag = Tag::required(4);
const VERSION: Tag = Tag::required(5);
const DELETE_MARKER: Tag = Tag::required(6);
const DELETED: Tag = Tag::required(7);
const RETENTION: Tag = Tag::required(8);
const LEGAL_HOLD: Tag = Tag::required(9);
const EXPIRES: Tag = Tag::optional(10);
const REDIRECT: Tag = Tag::optional(11);
const STORAGE_CLASS: Tag = Tag::optional(12);
const RESTORED_UNTIL: Tag = Tag::optional(13);
const SCOPE_KEY: Tag = Tag::required(14);
const INCREMENTAL_COPY: Tag = Tag::required(15);

/// The tagged fields of a blob, a snapshot or a version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobFields {
    /// What S3's `ETag` is made of; Blob's is the record's.
    pub content_tag: Option<ContentTag>,
    /// Of the whole content, by algorithm.
    pub checksums: Vec<ContentChecksum>,
    /// Canonical id of the user that owns it; the account's root where there is none.
    pub owner: Option<String>,
    /// S3's access control list.
    pub acl: Option<CannedAcl>,
    /// Which version it is; none of one that was written while versioning was never on.
    pub version: Option<VersionId>,
    /// There is no blob: the version stands for its deletion.
    pub delete_marker: bool,
    /// It was deleted and can be restored.
    pub deleted: Option<SoftDelete>,
    /// Until when it stays.
    pub retention: Option<Retention>,
    /// It stays until the hold is taken back.
    pub legal_hold: bool,
    /// `Expires`.
    pub expires: Option<String>,
    /// `x-amz-website-redirect-location`.
    pub redirect: Option<String>,
    /// The storage class that S3 shows, where the tier does not tell it.
    pub storage_class: Option<String>,
    /// Until when a copy can be read of what is in the archive.
    pub restored_until: Option<Timestamp>,
    /// SHA-256 of the key of its encryption scope.
    pub scope_key: Option<[u8; 32]>,
    /// It was made by Incremental Copy Blob.
    pub incremental_copy: Option<IncrementalCopy>,
    /// Of later releases.
    pub unknown: UnknownFields,
}

/// What Incremental Copy Blob made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct IncrementalCopy {
    /// The snapshot of the blob that the last successful copy made.
    pub snapshot: Option<Timestamp>,
}

impl BlobFields {
    /// Bytes of its texts and digests, which are of any length.
    #[must_use]
    pub fn weight(&self) -> usize {
        let Self { checksums, owner, expires, redirect, storage_class, unknown, .. } = self;
        let texts = [owner, expires, redirect, storage_class];
        texts.into_iter().flatten().map(String::len).sum::<usize>()
            + checksums.iter().map(|checksum| Bytes::len(&checksum.digest)).sum::<usize>()
            + unknown.weight()
    }
}

impl Tagged for BlobFields {
    fn write(&self, out: &mut Writer) {
        let Self { content_tag, checksums, owner, acl, version, delete_marker, .. } = self;
        out.some(CONTENT_TAG, content_tag.as_ref());
        out.list(CHECKSUMS, checksums);
        out.some(OWNER, owner.as_ref());
        out.some(ACL, acl.as_ref());
        out.some(VERSION, version.as_ref());
        out.flag(DELETE_MARKER, *delete_marker);
        let Self { deleted, retention, legal_hold, expires, redirect, storage_class, .. } = self;
        out.some(DELETED, deleted.as_ref());
        out.some(RETENTION, retention.as_ref());
        out.flag(LEGAL_HOLD, *legal_hold);
        out.some(EXPIRES, expires.as_ref());
        out.some(REDIRECT, redirect.as_ref());
        out.some(STORAGE_CLASS, storage_class.as_ref());
        out.some(RESTORED_UNTIL, self.restored_until.as_ref());
        out.some(SCOPE_KEY, self.scope_key.as_ref());
        out.some(INCREMENTAL_COPY, self.incremental_copy.as_ref());
    }

    fn read(&mut self, field: &Field<'_>) -> Result<bool, TailError> {
        match field.tag {
            CONTENT_TAG => self.content_tag = field.some()?,
            CHECKSUMS => self.checksums = field.value()?,
            OWNER => self.owner = field.some()?,
            ACL => self.acl = field.some()?,
            VERSION => self.version = field.some()?,
            DELETE_MARKER => self.delete_marker = field.flag()?,
            DELETED => self.deleted = field.some()?,
            RETENTION => self.retention = field.some()?,
            LEGAL_HOLD => self.legal_hold = field.flag()?,
            EXPIRES => self.expires = field.some()?,
            REDIRECT => self.redirect = field.some()?,
            STORAGE_CLASS => self.storage_class = field.some()?,
            RESTORED_UNTIL => self.restored_until = field.some()?,
            SCOPE_KEY => self.scope_key = field.some()?,
            INCREMENTAL_COPY => self.incremental_copy = field.some()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn unknown(&self) -> &UnknownFields {
        &self.unknown
    }

    fn unknown_mut(&mut self) -> &mut UnknownFields {
        &mut self.unknown
    }
}
