//! The places of running copies. Accounts share them, so that slow copies of one account do not
//! stop those of another.

use std::collections::HashMap;

use crate::types::AccountId;

/// Copies that run at a time.
const RUNNING_MAX: usize = 64;
/// Copies of one account that run at a time.
const OF_ACCOUNT_MAX: usize = 8;
/// Places reserved for accounts that have no running copy.
const KEPT: usize = RUNNING_MAX / 4;

/// The places and the accounts that hold them.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Places by account; accounts without a place are absent.
    of_account: HashMap<AccountId, usize>,
    taken: usize,
}

impl Turns {
    /// Whether all places are taken.
    pub(super) const fn is_full(&self) -> bool {
        self.taken >= RUNNING_MAX
    }

    /// Takes a place for an account. Returns false when the account has its share.
    pub(super) fn take(&mut self, account: AccountId) -> bool {
        let own = self.of_account.get(&account).copied().unwrap_or(0);
        let limit = if own == 0 { RUNNING_MAX } else { RUNNING_MAX - KEPT };
        if own >= OF_ACCOUNT_MAX || self.taken >= limit {
            return false;
        }
        self.of_account.insert(account, own + 1);
        self.taken += 1;
        true
    }

    /// Returns a place of an account.
    pub(super) fn give_back(&mut self, account: AccountId) {
        let Some(own) = self.of_account.get_mut(&account) else { return };
        self.taken -= 1;
        *own -= 1;
        if *own == 0 {
            self.of_account.remove(&account);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(number: usize) -> AccountId {
        AccountId::new(u64::try_from(number).unwrap())
    }

    /// The places that each of `accounts` gets when all take one in turn until none is free.
    fn shares(accounts: usize) -> Vec<usize> {
        let (mut turns, mut got) = (Turns::default(), vec![0; accounts]);
        loop {
            let before: usize = got.iter().sum();
            for (number, own) in got.iter_mut().enumerate() {
                *own += usize::from(turns.take(account(number)));
            }
            if before == got.iter().sum::<usize>() {
                return got;
            }
        }
    }

    #[test]
    fn places_are_shared_evenly() {
        assert_eq!(shares(1), [8]);
        assert_eq!(shares(6), [8; 6]);
        assert_eq!(shares(16), [3; 16]);
        assert_eq!(shares(64), [1; 64]);
        assert_eq!(shares(100).iter().sum::<usize>(), 64);
    }

    #[test]
    fn whoever_has_none_finds_a_place_however_many_copies_others_have() {
        let mut turns = Turns::default();
        for number in 0..12 {
            while turns.take(account(number)) {}
        }
        assert!(turns.take(account(99)));
        assert!(!turns.take(account(99)), "the rest is kept for others that have none");
        turns.give_back(account(99));
        assert!(turns.take(account(98)));
    }

    #[test]
    fn places_come_back() {
        let mut turns = Turns::default();
        for _ in 0..1000 {
            for number in 0..64 {
                assert!(turns.take(account(number)));
            }
            assert!(turns.is_full());
            for number in 0..64 {
                turns.give_back(account(number));
                // Given back twice is given back once.
                turns.give_back(account(number));
            }
        }
        assert!(turns.of_account.is_empty());
    }
}
