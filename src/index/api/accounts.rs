//! Changes of accounts.

use crate::types::ServicePropertiesChange;

/// A change of an account's row.
#[derive(Clone, Debug)]
pub enum AccountChange {
    /// Set Blob Service Properties.
    Properties(Box<ServicePropertiesChange>),
    /// Whether its containers may be opened to everybody.
    Anonymous(bool),
}
