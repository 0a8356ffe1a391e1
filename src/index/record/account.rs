//! An account.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::types::AccountId;
use crate::types::ServiceProperties;
use crate::types::Timestamp;

/// An account. Its `Debug` is for tests: it shows keys, so it is never logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountRecord {
    /// Its number in every key.
    pub id: AccountId,
    /// When it was made.
    pub created: Timestamp,
    /// Its shared keys, first and second; none when they come from the configuration.
    pub keys: Vec<Bytes>,
    /// Whether its containers may be opened to everybody.
    pub anonymous: bool,
    /// What user delegation keys are derived from; empty in rows of older programs until a node starts with them.
    pub delegation_secret: Bytes,
    /// Properties of its Blob service.
    pub properties: ServiceProperties,
}
