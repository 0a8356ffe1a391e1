//! An encryption scope with a key of its own. It is in the account's row, as users are.

use serde::{Deserialize, Serialize};

use crate::types::Secret;
use crate::types::Timestamp;

/// An encryption scope with a key of its own. It is never removed: content under its key could not
/// be read any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeRecord {
    /// The name.
    pub name: String,
    /// When it was made.
    pub created: Timestamp,
    /// Whether content under it may be read and written.
    pub enabled: bool,
    /// The key of 32 bytes, sealed.
    pub key: Secret,
}
