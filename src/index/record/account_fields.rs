//! The tagged fields of an account's record.

use crate::index::record::ScopeRecord;
use crate::index::record::UnknownFields;
use crate::index::record::UserRecord;
use crate::index::record::tagged::Field;
use crate::index::record::tagged::Tag;
use crate::index::record::tagged::Tagged;
use crate::index::record::tagged::TailError;
use crate::index::record::tagged::Writer;
use crate::types::AccountType;
use crate::types::Versioning;

/// A program that does not know users admits none, and keeps them.
const USERS: Tag = Tag::optional(1);
const VERSIONING: Tag = Tag::required(2);
const PERMANENT_DELETE: Tag = Tag::optional(3);
const CONTAINER_RETENTION: Tag = Tag::required(4);
const OBJECT_LOCK: Tag = Tag::required(5);
/// A program that does not know types shows the default, and refuses the tiers of others.
const TYPE: Tag = Tag::optional(6);
/// A program that does not know keys of scopes would store content under them plain.
const SCOPES: Tag = Tag::required(8);

/// The tagged fields of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountFields {
    /// Its users, at most [`super::AccountRecord::USERS_MAX`], in the order they were made.
    pub users: Vec<UserRecord>,
    /// Whether its containers keep versions, unless they say so themselves.
    pub versioning: Option<Versioning>,
    /// Whether soft-deleted rows may be removed before they expire.
    pub permanent_delete: bool,
    /// The days for which deleted containers can be restored; `None`: not at all.
    pub container_retention_days: Option<u32>,
    /// Whether new containers have object lock, where versions are kept.
    pub object_lock: bool,
    /// Its kind and SKU; `None` for the default.
    pub account_type: Option<AccountType>,
    /// Its encryption scopes with keys, at most [`super::AccountRecord::SCOPES_MAX`], in the order
    /// they were made.
    pub scopes: Vec<ScopeRecord>,
    /// Fields of later releases.
    pub unknown: UnknownFields,
}

impl Tagged for AccountFields {
    fn write(&self, out: &mut Writer) {
        let Self { users, versioning, permanent_delete, .. } = self;
        let Self { container_retention_days, object_lock, account_type, scopes, .. } = self;
        out.list(USERS, users);
        out.some(VERSIONING, versioning.as_ref());
        out.flag(PERMANENT_DELETE, *permanent_delete);
        out.some(CONTAINER_RETENTION, container_retention_days.as_ref());
        out.flag(OBJECT_LOCK, *object_lock);
        out.some(TYPE, account_type.as_ref());
        out.list(SCOPES, scopes);
    }

    fn read(&mut self, field: &Field<'_>) -> Result<bool, TailError> {
        match field.tag {
            USERS => self.users = field.value()?,
            VERSIONING => self.versioning = field.some()?,
            PERMANENT_DELETE => self.permanent_delete = field.flag()?,
            CONTAINER_RETENTION => self.container_retention_days = field.some()?,
            OBJECT_LOCK => self.object_lock = field.flag()?,
            TYPE => self.account_type = field.some()?,
            SCOPES => self.scopes = field.value()?,
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
