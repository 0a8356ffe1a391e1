//! Fair shares of a bounded resource.
//!
//! While at least a quarter of the resource is free, every account may take some. Below that, an
//! account with its share gets no more while other accounts are active, so that the rest is left
//! for accounts below their share. An account that is alone may take everything.

use std::collections::HashMap;
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use crate::types::AccountId;

/// An account is active for this time after its last request.
const ACTIVE: Duration = Duration::from_secs(10);
/// Inactive accounts are forgotten when more than this many are remembered.
const REMEMBERED: usize = 1024;
/// While several accounts are active, 1 / `KEPT` of the resource is kept for those below their
/// share.
const KEPT: u64 = 4;

/// How much of the resource is taken, and by whom.
#[derive(Debug)]
pub(crate) struct Shares<K = AccountId> {
    max: u64,
    state: Mutex<State<K>>,
}

#[derive(Debug)]
struct State<K> {
    taken: u64,
    of: HashMap<K, Use>,
    /// How many may be in `of` before inactive ones are removed.
    room: usize,
}

/// The amount that one account holds, and the monotonic time of its last request.
#[derive(Debug, Default)]
struct Use {
    taken: u64,
    came: Duration,
}

impl Use {
    fn is_active(&self, now: Duration) -> bool {
        self.taken > 0 || now.saturating_sub(self.came) < ACTIVE
    }
}

/// The answer to a demand of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Yes; it must be given back.
    Yes,
    /// Nothing is free, and others are active. The account is below its share: it may have what is
    /// given back next.
    Soon,
    /// Nothing is free, but the account is alone: it may have what it gives back next.
    Alone,
    /// The account has its share, and others are active.
    No,
}

/// How much is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    /// By all accounts.
    pub(crate) all: u64,
    /// By one account.
    pub(crate) own: u64,
}

/// An amount that is counted for another account from now on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer<K> {
    pub(crate) from: K,
    pub(crate) to: K,
    pub(crate) amount: u64,
}

impl<K: Copy + Eq + Hash> Shares<K> {
    /// Nothing is taken of `max`.
    pub(crate) fn new(max: u64) -> Self {
        let state = State { taken: 0, of: HashMap::new(), room: REMEMBERED };
        Self { max, state: Mutex::new(state) }
    }

    /// Takes `amount` for an account, if it may.
    pub(crate) fn take(&self, account: K, amount: u64, now: Duration) -> Taken {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { taken, of, room } = &mut *state;
        let after = taken.saturating_add(amount);
        let own = of.entry(account).or_default();
        own.came = now;
        let (holds_none, own_after) = (own.taken == 0, own.taken.saturating_add(amount));
        let is_short = after > self.max - self.max / KEPT;
        if is_short || of.len() > *room {
            of.retain(|_, other| other.is_active(now));
            *room = (of.len() * 2).max(REMEMBERED);
        }
        if is_short {
            let accounts = u64::try_from(of.len()).unwrap_or(u64::MAX);
            // With many active accounts, a share may be smaller than one answer. An account that
            // holds nothing may have one answer.
            let is_below = holds_none || own_after <= (self.max / accounts).max(1);
            match (after <= self.max, is_below) {
                (true, true) => {}
                (true, false) if accounts == 1 => {}
                (false, _) if accounts == 1 => return Taken::Alone,
                (false, true) => return Taken::Soon,
                (_, false) => return Taken::No,
            }
        }
        *taken = after;
        of.entry(account).or_default().taken = own_after;
        Taken::Yes
    }

    /// An account is active, and asks for something later.
    pub(crate) fn came(&self, account: K, now: Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.of.entry(account).or_default().came = now;
    }

    /// Gives `amount` back.
    pub(crate) fn give(&self, account: K, amount: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.taken = state.taken.saturating_sub(amount);
        if let Some(own) = state.of.get_mut(&account) {
            own.taken = own.taken.saturating_sub(amount);
        }
    }

    /// The accounts that have more than their share now.
    pub(crate) fn above_share(&self, now: Duration) -> HashSet<K> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let active = state.of.values().filter(|own| own.is_active(now)).count();
        let share = self.max / u64::try_from(active).unwrap_or(u64::MAX).max(1);
        let above = state.of.iter().filter(|(_, own)| own.taken > share);
        above.map(|(account, _)| *account).collect()
    }

    /// Counts for another account what one holds, unless the other would then hold more than
    /// `most`. Returns whether it did.
    pub(crate) fn hand_over(&self, transfer: Transfer<K>, most: u64) -> bool {
        let Transfer { from, to, amount } = transfer;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let other = state.of.entry(to).or_default();
        if other.taken.saturating_add(amount) > most {
            return false;
        }
        other.taken += amount;
        if let Some(own) = state.of.get_mut(&from) {
            own.taken = own.taken.saturating_sub(amount);
        }
        true
    }

    /// How much is taken by all accounts, and by this one.
    pub(crate) fn taken(&self, account: K) -> Usage {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Usage { all: state.taken, own: state.of.get(&account).map_or(0, |own| own.taken) }
    }

    /// The amount that an account holds.
    #[cfg(test)]
    pub(crate) fn of(&self, account: K) -> u64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.of.get(&account).map_or(0, |own| own.taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Rand;
    use crate::env::SeededRand;

    const A: AccountId = AccountId::new(1);
    const B: AccountId = AccountId::new(2);
    const C: AccountId = AccountId::new(3);

    fn take_all(shares: &Shares, account: AccountId, now: Duration) -> u64 {
        (0..).take_while(|_| shares.take(account, 1, now) == Taken::Yes).count() as u64
    }

    #[test]
    fn one_account_alone_takes_everything() {
        let shares = Shares::new(64);
        assert_eq!(take_all(&shares, A, Duration::ZERO), 64);
        assert_eq!(shares.take(A, 1, Duration::ZERO), Taken::Alone);
        shares.give(A, 1);
        assert_eq!(shares.take(A, 1, Duration::ZERO), Taken::Yes);
    }

    #[test]
    fn second_account_gets_what_the_first_gives_back_until_it_has_its_share() {
        let shares = Shares::new(64);
        take_all(&shares, A, Duration::ZERO);
        assert_eq!(shares.take(B, 1, Duration::ZERO), Taken::Soon);
        for had in 0..32 {
            assert_eq!(shares.take(A, 1, Duration::ZERO), Taken::No, "it has more than its share");
            shares.give(A, 1);
            assert_eq!(shares.take(A, 1, Duration::ZERO), Taken::No);
            assert_eq!(shares.take(B, 1, Duration::ZERO), Taken::Yes, "after {had}");
        }
        assert_eq!((shares.of(A), shares.of(B)), (32, 32));
        assert_eq!(shares.take(B, 1, Duration::ZERO), Taken::No);
    }

    #[test]
    fn with_others_about_a_quarter_is_kept_for_those_below_their_share() {
        let shares = Shares::new(64);
        assert_eq!(shares.take(B, 1, Duration::ZERO), Taken::Yes);
        shares.give(B, 1);
        assert_eq!(take_all(&shares, A, Duration::ZERO), 48, "more than its share");
        assert_eq!(take_all(&shares, B, Duration::ZERO), 16);
        assert_eq!(shares.take(B, 1, Duration::ZERO), Taken::Soon);
    }

    #[test]
    fn what_is_handed_over_counts_for_the_other_up_to_a_limit() {
        let shares = Shares::new(64);
        take_all(&shares, A, Duration::ZERO);
        let handed = (0..64)
            .filter(|_| shares.hand_over(Transfer { from: A, to: B, amount: 1 }, 48))
            .count();
        assert_eq!((handed, shares.of(A), shares.of(B)), (48, 16, 48));
        shares.give(B, 48);
        assert_eq!(shares.taken(A), Usage { all: 16, own: 16 });
    }

    #[test]
    fn who_holds_nothing_gets_one_wish_that_fits_however_many_are_about() {
        let shares = Shares::new(128);
        for number in 0..9 {
            let taken = shares.take(AccountId::new(number), 16, Duration::ZERO);
            let wanted = if number < 8 { Taken::Yes } else { Taken::Soon };
            assert_eq!(taken, wanted, "{number}: a share is 14 in the end");
        }
        shares.give(A, 16);
        assert_eq!(shares.take(B, 16, Duration::ZERO), Taken::No, "it has one");
        assert_eq!(shares.take(A, 16, Duration::ZERO), Taken::Yes);
    }

    #[test]
    fn those_that_came_once_are_not_remembered_for_ever() {
        let shares = Shares::new(u64::MAX);
        for number in 0..100_000_u64 {
            let now = ACTIVE / 100 * u32::try_from(number).unwrap();
            assert_eq!(shares.take(number, 1, now), Taken::Yes);
            shares.give(number, 1);
        }
        assert!(shares.state.lock().unwrap().of.len() <= REMEMBERED + 1);
    }

    #[test]
    fn account_that_stays_away_is_forgotten() {
        let shares = Shares::new(64);
        assert_eq!(shares.take(B, 1, Duration::ZERO), Taken::Yes);
        assert_eq!(take_all(&shares, A, ACTIVE), 47, "one that still has something is about");
        shares.give(B, 1);
        assert_eq!(take_all(&shares, A, ACTIVE * 2), 17);
    }

    #[test]
    fn share_is_of_those_who_are_about() {
        let shares = Shares::new(64);
        assert_eq!(take_all(&shares, A, Duration::ZERO), 64);
        assert!(shares.above_share(Duration::ZERO).is_empty(), "it is alone");
        shares.came(B, Duration::ZERO);
        assert!(shares.above_share(Duration::ZERO).contains(&A));
        assert!(shares.above_share(ACTIVE).is_empty(), "the other went away");
    }

    #[test]
    fn no_more_is_taken_than_there_is_and_whoever_is_below_its_share_is_never_refused() {
        let rand = SeededRand::new(5);
        let shares = Shares::new(40);
        let mut has = [0_u64; 3];
        for step in 0..100_000_u64 {
            let now = Duration::from_millis(step);
            let number = usize::try_from(rand.below(3)).unwrap();
            let account = [A, B, C][number];
            if rand.below(5) < 3 {
                match shares.take(account, 1, now) {
                    Taken::Yes => has[number] += 1,
                    Taken::No => assert!(has[number] >= 40 / 3, "refused with {}", has[number]),
                    Taken::Soon | Taken::Alone => assert_eq!(has.iter().sum::<u64>(), 40),
                }
            } else if has[number] > 0 {
                has[number] -= 1;
                shares.give(account, 1);
            }
            assert!(has.iter().sum::<u64>() <= 40);
            assert_eq!(shares.of(account), has[number]);
        }
    }
}
