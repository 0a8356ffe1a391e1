//! The parts of the list of accounts that could not be read.

use std::collections::BTreeMap;
use std::fmt;

use crate::index::Damage;
use crate::index::Error;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::ContainerId;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::RoutingKey;

/// A part of the list of accounts that could not be read, because its partition does not serve, or
/// an account in doubt. Its text names the range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The keys of the rows.
    pub keys: KeyRange,
    /// The partition that owns them.
    pub partition: PartitionId,
    /// Whether it is one account for which the outcome of a change is unknown.
    pub in_doubt: bool,
}

/// The parts of the list of accounts that could not be read.
#[derive(Debug, Default)]
pub(super) struct Unknown {
    /// The parts that are not read yet.
    pub(super) parts: Vec<Unread>,
    /// The accounts in doubt.
    pub(super) in_doubt: BTreeMap<AccountName, Unread>,
}

impl Unknown {
    /// The part that an account may be in.
    pub(super) fn of(&self, name: &AccountName) -> Option<Unread> {
        let key = RoutingKey::account(name);
        let part = || self.parts.iter().find(|part| part.keys.contains(key.as_bytes()));
        self.in_doubt.get(name).or_else(part).cloned()
    }

    /// Any part.
    pub(super) fn any(&self) -> Option<Unread> {
        self.parts.first().or_else(|| self.in_doubt.values().next()).cloned()
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = RoutingKey::container_range(AccountId::new(0), ContainerId::new(0));
        // A bound may be a part of a key.
        let name = |key: &RoutingKey| {
            let name = key.as_bytes().get(16..).unwrap_or_default();
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(name).into_owned()
        };
        let low = Some(self.keys.low()).filter(|low| table.low() < *low).map(name);
        let high = self.keys.high().filter(|high| table.contains(high.as_bytes())).map(name);
        match (low, high) {
            (None, None) => f.write_str("all accounts"),
            (None, Some(high)) => write!(f, "accounts before `{high}`"),
            (Some(low), None) => write!(f, "accounts from `{low}` on"),
            (Some(low), Some(high)) if low == high => write!(f, "account `{low}`"),
            (Some(low), Some(high)) => write!(f, "accounts from `{low}` to before `{high}`"),
        }
    }
}

impl From<Unread> for Error {
    fn from(unread: Unread) -> Self {
        if unread.in_doubt {
            return Self::Unavailable(format!("{unread}: a change has no answer yet; try again"));
        }
        Damage::Quarantined(unread.partition).into()
    }
}
