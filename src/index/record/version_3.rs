//! The layout of accounts in version 3, whose secrets were plain. It stays readable.

use bytes::Bytes;
use serde::Deserialize;

use crate::index::record::AccountRecord;
use crate::types::AccountId;
use crate::types::RoleAssignment;
use crate::types::Secret;
use crate::types::ServiceProperties;
use crate::types::Timestamp;

#[derive(Deserialize)]
pub(super) struct Account3 {
    id: AccountId,
    created: Timestamp,
    keys: Vec<Bytes>,
    anonymous: bool,
    delegation_secret: Bytes,
    properties: ServiceProperties,
    assignments: Vec<RoleAssignment>,
}

impl From<Account3> for AccountRecord {
    fn from(old: Account3) -> Self {
        Self {
            keys: old.keys.into_iter().map(Secret::Plain).collect(),
            delegation_secret: Secret::plain(old.delegation_secret),
            properties: old.properties,
            assignments: old.assignments,
            ..Self::new(old.id, old.created, old.anonymous)
        }
    }
}
