//! A user of an account. It is in the account's row, as role assignments are: read with the
//! account, changed in one commit with it, deleted with it.

use serde::{Deserialize, Serialize};

use crate::types::AccessKeyId;
use crate::types::Secret;
use crate::types::Timestamp;
use crate::types::UserName;

/// A user of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserRecord {
    /// The name.
    pub name: UserName,
    /// The name that lists of owners show.
    pub display: String,
    /// The canonical user id: 64 hexadecimal digits, random. A user that is made again under a name
    /// has another one.
    pub canonical: String,
    /// When it was made.
    pub created: Timestamp,
    /// Its access keys, one or two.
    pub keys: Vec<UserKey>,
}

/// An access key of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserKey {
    /// Its id, the only one of this text in the store.
    pub id: AccessKeyId,
    /// When it was made.
    pub created: Timestamp,
    /// The secret as text, sealed.
    pub secret: Secret,
}

impl UserRecord {
    /// The most access keys of a user.
    pub const KEYS_MAX: usize = 2;

    /// The same with `now` in the place of times that are zero.
    pub(in crate::index) fn made_at(&self, now: Timestamp) -> Self {
        let mut made = self.clone();
        let times = made.keys.iter_mut().map(|key| &mut key.created).chain([&mut made.created]);
        times.filter(|time| **time == Timestamp::ZERO).for_each(|time| *time = now);
        made
    }
}
