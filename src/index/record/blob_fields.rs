//! The tagged fields of a blob's record. Most blobs have none, or only the tag of content.

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
use crate::types::ObjectProperties;
use crate::types::Retention;
use crate::types::RoutingKey;
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
const LEGAL_HOLD_ENDED: Tag = Tag::optional(16);
const INCREMENTAL_SOURCE: Tag = Tag::required(17);

/// The tagged fields of a blob, a snapshot or a version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobFields {
    /// The source of S3's `ETag`. Azure's ETag is in the record.
    pub content_tag: Option<ContentTag>,
    /// Checksums of the whole content, by algorithm.
    pub checksums: Vec<ContentChecksum>,
    /// The canonical id of its owner; `None` means the account's root user.
    pub owner: Option<String>,
    /// S3's access control list.
    pub acl: Option<CannedAcl>,
    /// Its version; `None` if versioning was never on when it was written.
    pub version: Option<VersionId>,
    /// Whether it is a delete marker: a version without content.
    pub delete_marker: bool,
    /// When it was deleted, and until when it can be restored.
    pub deleted: Option<SoftDelete>,
    /// Until when it cannot be deleted.
    pub retention: Option<Retention>,
    /// Whether a legal hold protects it; `None` if none ever did.
    pub legal_hold: Option<bool>,
    /// `Expires`.
    pub expires: Option<String>,
    /// `x-amz-website-redirect-location`.
    pub redirect: Option<String>,
    /// The storage class that S3 shows, if the tier does not determine it.
    pub storage_class: Option<String>,
    /// Until when a restored copy of an archived blob can be read.
    pub restored_until: Option<Timestamp>,
    /// SHA-256 of the key of its encryption scope.
    pub scope_key: Option<[u8; 32]>,
    /// Set if Incremental Copy Blob made it, the blob or a snapshot of it.
    pub incremental_copy: Option<IncrementalCopy>,
    /// The source of an incremental copy. Its snapshots are like those of other blobs and do not
    /// have it.
    pub incremental_source: Option<IncrementalSource>,
    /// Fields of later releases.
    pub unknown: UnknownFields,
}

/// The state of an incremental copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct IncrementalCopy {
    /// The snapshot that the last successful copy made.
    pub snapshot: Option<Timestamp>,
}

/// The source of an incremental copy.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct IncrementalSource {
    /// The blob.
    pub blob: RoutingKey,
    /// Its snapshot that the last successful copy took.
    pub snapshot: Timestamp,
}

impl BlobFields {
    /// [`Self::usual`] as rows have it.
    pub(super) const USUAL: &'static [u8] = &[2, 1, 0];

    /// The fields of a blob that was uploaded in one piece and has no others.
    pub(super) fn usual() -> Self {
        Self { content_tag: Some(ContentTag::PropertyMd5), ..Self::default() }
    }

    /// The properties of an S3 object that Azure's blobs do not have; `None` if it has none.
    #[must_use]
    pub fn object(&self) -> Option<Box<ObjectProperties>> {
        let Self { expires, redirect, storage_class, owner, acl, .. } = self;
        let texts = [expires, redirect, storage_class, owner];
        if acl.is_none() && texts.into_iter().all(Option::is_none) {
            return None;
        }
        Some(Box::new(ObjectProperties {
            expires: expires.clone(),
            redirect: redirect.clone(),
            storage_class: storage_class.clone(),
            owner: owner.clone(),
            acl: *acl,
        }))
    }

    /// Bytes of its texts and digests, which have any length.
    #[must_use]
    pub fn weight(&self) -> usize {
        let Self { checksums, owner, expires, redirect, storage_class, unknown, .. } = self;
        let source = self.incremental_source.as_ref();
        let texts = [owner, expires, redirect, storage_class];
        texts.into_iter().flatten().map(String::len).sum::<usize>()
            + checksums.iter().map(|checksum| Bytes::len(&checksum.digest)).sum::<usize>()
            + source.map_or(0, |source| source.blob.as_bytes().len())
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
        out.flag(LEGAL_HOLD, *legal_hold == Some(true));
        out.flag(LEGAL_HOLD_ENDED, *legal_hold == Some(false));
        out.some(EXPIRES, expires.as_ref());
        out.some(REDIRECT, redirect.as_ref());
        out.some(STORAGE_CLASS, storage_class.as_ref());
        out.some(RESTORED_UNTIL, self.restored_until.as_ref());
        out.some(SCOPE_KEY, self.scope_key.as_ref());
        out.some(INCREMENTAL_COPY, self.incremental_copy.as_ref());
        out.some(INCREMENTAL_SOURCE, self.incremental_source.as_ref());
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
            LEGAL_HOLD => self.legal_hold = Some(field.flag()?),
            LEGAL_HOLD_ENDED => self.legal_hold = Some(!field.flag()?),
            EXPIRES => self.expires = field.some()?,
            REDIRECT => self.redirect = field.some()?,
            STORAGE_CLASS => self.storage_class = field.some()?,
            RESTORED_UNTIL => self.restored_until = field.some()?,
            SCOPE_KEY => self.scope_key = field.some()?,
            INCREMENTAL_COPY => self.incremental_copy = field.some()?,
            INCREMENTAL_SOURCE => self.incremental_source = field.some()?,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::record::tagged;

    #[test]
    fn usual_fields_have_these_bytes() {
        assert_eq!(tagged::encode(&BlobFields::usual()), BlobFields::USUAL);
        assert_eq!(tagged::decode(BlobFields::USUAL), Ok(Some(Box::new(BlobFields::usual()))));
    }
}
