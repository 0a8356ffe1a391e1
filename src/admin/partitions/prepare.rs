//! Where to cut the range of a prefix before a job fills it.

use serde::Deserialize;

use crate::types::AccountId;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::KeyRange;
use crate::types::RoutingKey;

use super::error::PartitionError;

/// What names are taken to go on with when nothing is said.
pub(super) const CHARACTERS: &str = "0123456789abcdefghijklmnopqrstuvwxyz";

/// Body of `POST /admin/partitions/prepare`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prepare {
    /// `ACCOUNT/CONTAINER`.
    pub(super) container: String,
    /// Which of its names; all when empty.
    #[serde(default)]
    pub(super) prefix: String,
    /// Into how many partitions.
    pub(super) ways: usize,
    /// A prefix whose names are spread as those to come.
    #[serde(default)]
    pub(super) like: Option<String>,
    /// What names go on with after the prefix, all alike often.
    #[serde(default)]
    pub(super) characters: Option<String>,
    /// Whether to deal the partitions out to all hosts.
    #[serde(default)]
    pub(super) spread: bool,
}

/// All names of a container that start alike.
#[derive(Clone, Debug)]
pub(super) struct Prefix<'a> {
    pub(super) account: AccountId,
    pub(super) container: ContainerId,
    pub(super) collation: Collation,
    pub(super) text: &'a str,
}

impl Prefix<'_> {
    /// The position before all of them.
    pub(super) fn low(&self) -> RoutingKey {
        let Self { account, container, collation, text } = *self;
        RoutingKey::from_bytes(RoutingKey::prefix(account, container, text, collation))
    }

    /// Their keys.
    pub(super) fn range(&self) -> KeyRange {
        let low = self.low();
        let high = RoutingKey::after_prefix(low.as_bytes()).map(RoutingKey::from_bytes);
        KeyRange::new(low, high)
    }

    /// A key below a sibling of this prefix, as it would be below this one.
    pub(super) fn like(&self, sibling: &Self, key: &RoutingKey) -> Option<RoutingKey> {
        let rest = key.as_bytes().strip_prefix(sibling.low().as_bytes().as_ref())?;
        Some(RoutingKey::from_bytes([self.low().as_bytes().as_ref(), rest].concat().into()))
    }

    /// The keys that cut this range into `parts`, if the next characters of the names are spread
    /// evenly.
    ///
    /// # Errors
    /// [`PartitionError::Characters`].
    pub(super) fn evenly(
        &self,
        characters: &str,
        parts: usize,
    ) -> Result<Vec<RoutingKey>, PartitionError> {
        let mut digits: Vec<char> = characters.chars().collect();
        digits.sort_unstable();
        digits.dedup();
        if digits.len() < 2 || digits.len() != characters.chars().count() || digits.contains(&'\0')
        {
            return Err(PartitionError::Characters);
        }
        let base = digits.len();
        let (mut places, mut numbers) = (1, base);
        while numbers < parts {
            places += 1;
            numbers = numbers.saturating_mul(base);
        }
        let name = |part: usize| {
            let mut number = part * numbers / parts;
            let mut name: Vec<char> = Vec::new();
            for _ in 0..places {
                name.extend(digits.get(number % base));
                number /= base;
            }
            name.iter().rev().collect::<String>()
        };
        let key = |part: usize| {
            let text = format!("{}{}", self.text, name(part));
            Prefix { text: &text, ..*self }.low()
        };
        let mut keys: Vec<RoutingKey> = (1..parts).map(key).collect();
        keys.sort_unstable();
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix<'_> {
        let (account, container) = (AccountId::new(1), ContainerId::new(5));
        Prefix { account, container, collation: Collation::Utf16, text }
    }

    #[test]
    fn ranges_are_cut_at_even_characters() {
        let cut = |characters, parts| {
            prefix("a/").evenly(characters, parts).map(|keys| {
                let shown = keys.iter().map(|key| {
                    let name = key.as_bytes().slice(16..);
                    String::from_utf8(name.to_vec()).unwrap()
                });
                shown.collect::<Vec<_>>()
            })
        };
        assert_eq!(cut(CHARACTERS, 4).unwrap(), ["a/9", "a/i", "a/r"]);
        assert_eq!(cut("0123456789", 2).unwrap(), ["a/5"]);
        assert_eq!(cut("9876543210", 5).unwrap(), ["a/2", "a/4", "a/6", "a/8"]);
        assert_eq!(cut("01", 4).unwrap(), ["a/01", "a/10", "a/11"]);
        let many = cut(CHARACTERS, 100).unwrap();
        assert_eq!(many.len(), 99);
        assert!(many.is_sorted_by(|a, b| a < b) && many[0] == "a/0c", "{many:?}");
        for bad in ["", "a", "aa", "a\0"] {
            assert!(matches!(cut(bad, 2), Err(PartitionError::Characters)), "{bad:?}");
        }
    }

    #[test]
    fn keys_of_a_sibling_move_to_the_prefix() {
        let (new, old) = (prefix("step-0900/"), prefix("step-0800/"));
        let key = prefix("step-0800/rank-17").low();
        assert_eq!(new.like(&old, &key), Some(prefix("step-0900/rank-17").low()));
        assert_eq!(new.like(&old, &prefix("step-0700/x").low()), None);
        assert!(new.range().contains(prefix("step-0900/rank-17").low().as_bytes()));
        assert!(!new.range().contains(prefix("step-09000").low().as_bytes()));
    }
}
