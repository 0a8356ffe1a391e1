//! The address of a container.

use crate::types::AccountId;
use crate::types::ContainerId;

/// A container, named by its ids. A container that is created again under the same name has another
/// id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerKey {
    /// The account.
    pub account: AccountId,
    /// The container, unique within the account.
    pub id: ContainerId,
}

impl ContainerKey {
    /// The container at the beginning of a routing key or of a position between keys. Missing bytes
    /// of a position count as zeros.
    #[must_use]
    pub fn of(position: &[u8]) -> Self {
        let number = |from: usize| {
            let mut bytes = [0; 8];
            let given = position.get(from..).unwrap_or_default();
            bytes.iter_mut().zip(given).for_each(|(byte, given)| *byte = *given);
            u64::from_be_bytes(bytes)
        };
        Self { account: AccountId::new(number(0)), id: ContainerId::new(number(8)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_that_ends_early_counts_as_zeros() {
        let of = |account, id| ContainerKey {
            account: AccountId::new(account),
            id: ContainerId::new(id),
        };
        let key = [0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 1, 2, b'n'];
        assert_eq!(ContainerKey::of(&key), of(7, 0x102));
        assert_eq!(ContainerKey::of(&key[..15]), of(7, 0x100));
        assert_eq!(ContainerKey::of(&key[..8]), of(7, 0));
        assert_eq!(ContainerKey::of(&[]), of(0, 0));
    }
}
