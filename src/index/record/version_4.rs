//! The layout of accounts in version 4, with which version 5 begins. It stays readable.

use serde::Deserialize;

use crate::index::record::AccountRecord;
use crate::types::AccountId;
use crate::types::RoleAssignment;
use crate::types::Secret;
use crate::types::ServiceProperties;
use crate::types::Timestamp;

#[derive(Deserialize)]
pub(super) struct Account4 {
    id: AccountId,
    created: Timestamp,
    keys: Vec<Secret>,
    anonymous: bool,
    delegation_secret: Option<Secret>,
    properties: ServiceProperties,
    assignments: Vec<RoleAssignment>,
}

impl From<Account4> for AccountRecord {
    fn from(old: Account4) -> Self {
        Self {
            keys: old.keys,
            delegation_secret: old.delegation_secret,
            properties: old.properties,
            assignments: old.assignments,
            ..Self::new(old.id, old.created, old.anonymous)
        }
    }
}
