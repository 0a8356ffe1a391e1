//! The tagged fields of a container's record. Few containers have any. Requests set the owner, the
//! region, the access control list and that it is closed; rows keep the others.

use crate::index::record::UnknownFields;
use crate::index::record::tagged::Field;
use crate::index::record::tagged::Tag;
use crate::index::record::tagged::Tagged;
use crate::index::record::tagged::TailError;
use crate::index::record::tagged::Writer;
use crate::types::CannedAcl;
use crate::types::ObjectLock;
use crate::types::SoftDelete;
use crate::types::Timestamp;
use crate::types::Versioning;

const OWNER: Tag = Tag::optional(1);
const REGION: Tag = Tag::optional(2);
const VERSIONING: Tag = Tag::required(3);
const OBJECT_LOCK: Tag = Tag::required(4);
const CLOSING: Tag = Tag::required(5);
const DELETED: Tag = Tag::required(6);
const ACL: Tag = Tag::required(7);

/// The tagged fields of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerFields {
    /// Canonical id of the user that owns it; the account's root where there is none.
    pub owner: Option<String>,
    /// S3's `LocationConstraint`; the region of the server where there is none.
    pub region: Option<String>,
    /// Whether versions are kept.
    pub versioning: Option<Versioning>,
    /// Whether blobs may have a retention.
    pub object_lock: Option<ObjectLock>,
    /// Since when it is closed: it is checked whether it is empty and can be deleted (ADR 0033).
    pub closing: Option<Timestamp>,
    /// When it was deleted, and until when it can be restored.
    pub deleted: Option<SoftDelete>,
    /// S3's access control list.
    pub acl: Option<CannedAcl>,
    /// Fields of later releases.
    pub unknown: UnknownFields,
}

impl ContainerFields {
    /// Bytes of its texts, which are of any length.
    #[must_use]
    pub fn weight(&self) -> usize {
        let texts = [&self.owner, &self.region];
        texts.into_iter().flatten().map(String::len).sum::<usize>() + self.unknown.weight()
    }
}

impl Tagged for ContainerFields {
    fn write(&self, out: &mut Writer) {
        let Self { owner, region, versioning, object_lock, closing, deleted, acl, unknown: _ } =
            self;
        out.some(OWNER, owner.as_ref());
        out.some(REGION, region.as_ref());
        out.some(VERSIONING, versioning.as_ref());
        out.some(OBJECT_LOCK, object_lock.as_ref());
        out.some(CLOSING, closing.as_ref());
        out.some(DELETED, deleted.as_ref());
        out.some(ACL, acl.as_ref());
    }

    fn read(&mut self, field: &Field<'_>) -> Result<bool, TailError> {
        match field.tag {
            OWNER => self.owner = field.some()?,
            REGION => self.region = field.some()?,
            VERSIONING => self.versioning = field.some()?,
            OBJECT_LOCK => self.object_lock = field.some()?,
            CLOSING => self.closing = field.some()?,
            DELETED => self.deleted = field.some()?,
            ACL => self.acl = field.some()?,
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
