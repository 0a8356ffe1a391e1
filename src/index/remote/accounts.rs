//! Which accounts were changed lately. A front end has accounts in memory, and reads those again
//! that another one has changed.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;
use tokio::sync::watch;

use crate::env::Clock;
use crate::index::api::Write;
use crate::rpc::NodeIdentity;
use crate::types::AccountName;

/// How long a question waits for a change of an account.
const NO_CHANGE: Duration = Duration::from_secs(1);
/// Changes that are remembered. Whoever has missed more reads all accounts again.
const CHANGES_MAX: usize = 4096;

/// The changes of accounts that the index of this process has made.
#[derive(Debug)]
pub struct AccountChanges {
    /// This process.
    of: NodeIdentity,
    latest: Mutex<Latest>,
    number: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Latest {
    /// How many changes there were.
    number: u64,
    /// The accounts of the last of them.
    accounts: VecDeque<AccountName>,
}

/// A change of an account, and all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangesTo {
    /// The process whose index made them. Another one counts anew.
    pub of: NodeIdentity,
    /// How many they are.
    pub number: u64,
}

/// The accounts that were changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedAccounts {
    /// Up to where. It is the question of the next call.
    pub to: ChangesTo,
    /// The accounts; `None` if it is not known which: any may have changed.
    pub accounts: Option<Vec<AccountName>>,
}

impl AccountChanges {
    pub(super) fn new(of: NodeIdentity) -> Self {
        Self { of, latest: Mutex::default(), number: watch::Sender::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a change of an account has ended, whatever its outcome.
    pub(super) fn note(&self, account: AccountName) {
        let mut latest = self.lock();
        latest.number += 1;
        latest.accounts.push_back(account);
        if latest.accounts.len() > CHANGES_MAX {
            latest.accounts.pop_front();
        }
        let _before = self.number.send_replace(latest.number);
    }

    /// Waits for a change after these, and returns all since. If these are none of this process, it
    /// returns at once.
    ///
    /// Cancel safe.
    pub async fn after(&self, seen: Option<ChangesTo>) -> ChangedAccounts {
        let mut changed = self.number.subscribe();
        loop {
            let number = *changed.borrow_and_update();
            if seen != Some(ChangesTo { of: self.of, number }) {
                return self.since(seen);
            }
            // The sender lives as long as this does.
            if changed.changed().await.is_err() {
                return self.since(None);
            }
        }
    }

    /// As [`Self::after`]. Without a change for a second, the answer says that this process serves.
    pub(super) async fn after_or_soon(
        &self,
        clock: &dyn Clock,
        seen: Option<ChangesTo>,
    ) -> ChangedAccounts {
        tokio::select! {
            biased;
            changed = self.after(seen) => changed,
            () = clock.sleep(NO_CHANGE) => match seen {
                Some(to) => ChangedAccounts { to, accounts: Some(Vec::new()) },
                None => self.since(None),
            }
        }
    }

    fn since(&self, seen: Option<ChangesTo>) -> ChangedAccounts {
        let latest = self.lock();
        let number = seen.filter(|seen| seen.of == self.of).map(|seen| seen.number);
        let missed = number.and_then(|number| latest.number.checked_sub(number));
        let missed = missed.and_then(|missed| usize::try_from(missed).ok());
        let first = missed.and_then(|missed| latest.accounts.len().checked_sub(missed));
        let accounts = first.map(|first| latest.accounts.range(first..).cloned().collect());
        ChangedAccounts { to: ChangesTo { of: self.of, number: latest.number }, accounts }
    }
}

/// The account whose row a write changes.
pub(super) fn account_of(write: &Write) -> Option<&AccountName> {
    if let Write::CreateAccount { name, .. }
    | Write::UpdateAccount { name, .. }
    | Write::DeleteAccount { name, .. } = write
    {
        return Some(name);
    }
    if let Write::SetUpAccount(setup) = write { Some(&setup.name) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Incarnation;
    use crate::types::NodeId;

    const US: NodeIdentity =
        NodeIdentity { node: NodeId::new(1), incarnation: Incarnation::new(2) };

    fn name(text: &str) -> AccountName {
        AccountName::new(text).unwrap()
    }

    fn to(number: u64) -> ChangesTo {
        ChangesTo { of: US, number }
    }

    #[tokio::test(start_paused = true)]
    async fn changes_are_named_to_whoever_has_not_heard_of_them() {
        let changes = AccountChanges::new(US);
        let first = changes.after(None).await;
        let unknown = ChangedAccounts { to: to(0), accounts: None };
        assert_eq!(first, unknown, "any may have changed");
        let next = changes.after(Some(first.to));
        tokio::pin!(next);
        let is_early = futures_util::poll!(&mut next).is_ready();
        assert!(!is_early, "there is none yet");
        changes.note(name("one"));
        let named = vec![name("one")];
        assert_eq!(next.await, ChangedAccounts { to: to(1), accounts: Some(named) });
        changes.note(name("two"));
        changes.note(name("one"));
        let named = vec![name("two"), name("one")];
        let both = ChangedAccounts { to: to(3), accounts: Some(named) };
        assert_eq!(changes.after(Some(to(1))).await, both);
    }

    #[tokio::test]
    async fn who_has_missed_too_many_or_heard_another_process_is_told_that_any_may_have_changed() {
        let changes = AccountChanges::new(US);
        for _ in 0..=CHANGES_MAX {
            changes.note(name("one"));
        }
        let number = CHANGES_MAX as u64 + 1;
        let unknown = ChangedAccounts { to: to(number), accounts: None };
        assert_eq!(changes.after(Some(to(0))).await, unknown);
        let all = changes.after(Some(to(1))).await.accounts.unwrap();
        assert_eq!(all.len(), CHANGES_MAX);
        let other = NodeIdentity { incarnation: Incarnation::new(3), ..US };
        for number in [0, 5, number] {
            let seen = ChangesTo { of: other, number };
            assert_eq!(changes.after(Some(seen)).await, unknown);
        }
    }
}
