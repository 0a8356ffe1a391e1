//! Accounts as version 2 wrote them, read for ever.

use bytes::Bytes;
use serde::Deserialize;

use crate::index::record::AccountRecord;
use crate::types::AccountId;
use crate::types::Secret;
use crate::types::ServiceProperties;
use crate::types::Timestamp;

#[derive(Debug, Deserialize)]
pub(in crate::index) struct Account2 {
    id: AccountId,
    created: Timestamp,
    keys: Vec<Bytes>,
    anonymous: bool,
    delegation_secret: Bytes,
    properties: ServiceProperties,
}

impl From<Account2> for AccountRecord {
    fn from(old: Account2) -> Self {
        Self {
            id: old.id,
            created: old.created,
            keys: old.keys.into_iter().map(Secret::Plain).collect(),
            anonymous: old.anonymous,
            delegation_secret: Secret::plain(old.delegation_secret),
            properties: old.properties,
            assignments: Vec::new(),
        }
    }
}
