//! Where to split the range of a prefix before a job fills it.

use serde::Deserialize;

use crate::types::Collation;
use crate::types::ContainerKey;
use crate::types::KeyRange;
use crate::types::RoutingKey;

use super::error::PartitionError;

/// The characters that names are expected to continue with, if the request has none.
pub(super) const CHARACTERS: &str = "0123456789abcdefghijklmnopqrstuvwxyz";

/// Body of `POST /admin/partitions/prepare`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prepare {
    /// `ACCOUNT/CONTAINER`.
    pub(super) container: String,
    /// The prefix of the names; empty for all names.
    #[serde(default)]
    pub(super) prefix: String,
    /// The number of partitions.
    pub(super) ways: usize,
    /// A prefix with existing names, which are distributed like the expected ones.
    #[serde(default)]
    pub(super) like: Option<String>,
    /// The characters that names continue with after the prefix, all equally often.
    #[serde(default)]
    pub(super) characters: Option<String>,
    /// Whether to distribute the partitions over all hosts.
    #[serde(default)]
    pub(super) spread: bool,
}

/// All names of a container that start with a prefix.
#[derive(Clone, Debug)]
pub(super) struct Prefix<'a> {
    pub(super) container: ContainerKey,
    pub(super) collation: Collation,
    pub(super) text: &'a str,
}

impl Prefix<'_> {
    /// The position before all of these names.
    pub(super) fn low(&self) -> RoutingKey {
        let Self { container: ContainerKey { account, id }, collation, text } = *self;
        RoutingKey::from_bytes(RoutingKey::prefix(account, id, text, collation))
    }

    /// Their keys.
    pub(super) fn range(&self) -> KeyRange {
        let low = self.low();
        let high = RoutingKey::after_prefix(low.as_bytes()).map(RoutingKey::from_bytes);
        KeyRange::new(low, high)
    }

    /// A key below another prefix, moved below this one.
    pub(super) fn like(&self, model: &Self, key: &RoutingKey) -> Option<RoutingKey> {
        let rest = key.as_bytes().strip_prefix(model.low().as_bytes().as_ref())?;
        Some(RoutingKey::from_bytes([self.low().as_bytes().as_ref(), rest].concat().into()))
    }

    /// The keys that split this range into `parts` of equal load, if the next characters of the
    /// names are distributed evenly.
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
    use crate::types::AccountId;
    use crate::types::ContainerId;

    fn prefix(text: &str) -> Prefix<'_> {
        let container = ContainerKey { account: AccountId::new(1), id: ContainerId::new(5) };
        Prefix { container, collation: Collation::Utf16, text }
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
    fn keys_of_a_model_move_to_the_prefix() {
        let (new, old) = (prefix("step-0900/"), prefix("step-0800/"));
        let key = prefix("step-0800/rank-17").low();
        assert_eq!(new.like(&old, &key), Some(prefix("step-0900/rank-17").low()));
        assert_eq!(new.like(&old, &prefix("step-0700/x").low()), None);
        assert!(new.range().contains(prefix("step-0900/rank-17").low().as_bytes()));
        assert!(!new.range().contains(prefix("step-09000").low().as_bytes()));
    }
}
