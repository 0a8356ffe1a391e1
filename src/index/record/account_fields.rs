//! The tagged fields of an account's record.

use crate::index::record::UnknownFields;
use crate::index::record::UserRecord;
use crate::index::record::tagged::Field;
use crate::index::record::tagged::Tag;
use crate::index::record::tagged::Tagged;
use crate::index::record::tagged::TailError;
use crate::index::record::tagged::Writer;

/// A program that does not know users admits none, and keeps them.
const USERS: Tag = Tag::optional(1);

/// The tagged fields of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountFields {
    /// Its users, at most [`super::AccountRecord::USERS_MAX`], in the order they were made.
    pub users: Vec<UserRecord>,
    /// Fields of later releases.
    pub unknown: UnknownFields,
}

impl Tagged for AccountFields {
    fn write(&self, out: &mut Writer) {
        let Self { users, unknown: _ } = self;
        out.list(USERS, users);
    }

    fn read(&mut self, field: &Field<'_>) -> Result<bool, TailError> {
        match field.tag {
            USERS => self.users = field.value()?,
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
