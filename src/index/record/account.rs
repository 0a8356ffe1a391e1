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
    /// Its id in the keys of its rows.
    pub id: AccountId,
    /// When it was created.
    pub created: Timestamp,
    /// Its shared keys, first and second; empty if they come from the configuration.
    pub keys: Vec<Secret>,
    /// Whether its containers may allow anonymous access.
    pub anonymous: bool,
    /// The secret from which user delegation keys are derived; `None` in rows of older releases
    /// until a node starts with them.
    pub delegation_secret: Option<Secret>,
    /// Properties of its Blob service.
    pub properties: ServiceProperties,
    /// The role assignments, beside roles that tokens claim. They are in this row, so that they are
    /// read with the keys, change with the account in one commit and are deleted with it. There are
    /// at most [`Self::ASSIGNMENTS_MAX`].
    pub assignments: Vec<RoleAssignment>,
    /// The tagged fields, if it has any.
    #[serde(with = "tagged::tail")]
    pub fields: Option<Box<AccountFields>>,
}

impl AccountRecord {
    /// The most role assignments of one account. Each takes about 200 bytes, and the row is written
    /// as a whole.
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
