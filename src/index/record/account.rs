//! An account.

use serde::{Deserialize, Serialize};

use crate::index::record::AccountFields;
use crate::index::record::tagged;
use crate::types::AccountId;
use crate::types::RoleAssignment;
use crate::types::Secret;
use crate::types::ServiceProperties;
use crate::types::Timestamp;

/// An account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountRecord {
    /// Its number in every key.
    pub id: AccountId,
    /// When it was made.
    pub created: Timestamp,
    /// Its shared keys, first and second; none when they come from the configuration.
    pub keys: Vec<Secret>,
    /// Whether its containers may be opened to everybody.
    pub anonymous: bool,
    /// What user delegation keys are derived from; none in rows of older programs until a node
    /// starts with them.
    pub delegation_secret: Option<Secret>,
    /// Properties of its Blob service.
    pub properties: ServiceProperties,
    /// Who has a role in it, beside those whose tokens claim one. In this row, so that they are
    /// read with the keys, change with the account in one commit and go with it;
    /// [`Self::ASSIGNMENTS_MAX`] bounds it.
    pub assignments: Vec<RoleAssignment>,
    /// What few accounts have.
    #[serde(with = "tagged::tail")]
    pub fields: Option<Box<AccountFields>>,
}

impl AccountRecord {
    /// Role assignments of one account: each one fits about 200 bytes, and the row is written as a
    /// whole.
    pub const ASSIGNMENTS_MAX: usize = 1000;

    /// An account without keys and roles.
    #[must_use]
    pub fn new(id: AccountId, created: Timestamp, anonymous: bool) -> Self {
        Self {
            id,
            created,
            keys: Vec::new(),
            anonymous,
            delegation_secret: None,
            properties: ServiceProperties::default(),
            assignments: Vec::new(),
            fields: None,
        }
    }
}
