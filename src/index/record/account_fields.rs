//! The tagged fields of an account's record. This release has none; it keeps those of later
//! releases.

use crate::index::record::UnknownFields;
use crate::index::record::tagged::Field;
use crate::index::record::tagged::Tagged;
use crate::index::record::tagged::TailError;
use crate::index::record::tagged::Writer;

/// The tagged fields of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountFields {
    /// Fields of later releases.
    pub unknown: UnknownFields,
}

impl Tagged for AccountFields {
    fn write(&self, _out: &mut Writer) {}

    fn read(&mut self, _field: &Field<'_>) -> Result<bool, TailError> {
        Ok(false)
    }

    fn unknown(&self) -> &UnknownFields {
        &self.unknown
    }

    fn unknown_mut(&mut self) -> &mut UnknownFields {
        &mut self.unknown
    }
}
