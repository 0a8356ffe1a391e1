//! Accounts and containers by number and by name.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use crate::env::Clock;
use crate::frontend::Accounts;
use crate::index;
use crate::index::ListContainers;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::Router;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::ContainerName;
use crate::types::RoutingKey;

use super::error::PartitionError;
use super::names;
use super::names::Known;

/// Containers of one account looked through for a number.
const LISTED_MAX: usize = 10_000;
/// Containers asked for at a time.
const PAGE: usize = 1_000;
/// Containers remembered; then they are looked up anew.
const KNOWN_MAX: usize = 100_000;
/// An account's containers are listed again for a number that was not among them at most this
/// often.
const LIST_PAUSE: Duration = Duration::from_secs(60);

/// Where names are found.
#[derive(Debug)]
pub(super) struct Directory {
    accounts: Accounts,
    router: Arc<Router>,
    clock: Arc<dyn Clock>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Names stay when their container goes: a number is never used again.
    containers: HashMap<(AccountId, ContainerId), (String, Collation)>,
    /// Numbers that were looked for in vain, and when.
    missing: BTreeMap<(AccountId, ContainerId), Duration>,
}

impl Directory {
    pub(super) fn new((accounts, router): (Accounts, Arc<Router>), clock: Arc<dyn Clock>) -> Self {
        Self { accounts, router, clock, seen: Mutex::default() }
    }

    /// Looks up names for later; one that cannot be found out stays a number.
    pub(super) async fn look_up(&self, mut owners: BTreeSet<(AccountId, ContainerId)>) {
        let now = self.clock.monotonic();
        let unknown: BTreeSet<AccountId> = {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if seen.containers.len() > KNOWN_MAX {
                seen.containers.clear();
            }
            seen.missing.retain(|_, at| now.saturating_sub(*at) < LIST_PAUSE);
            owners.retain(|owner| {
                let (account, container) = (owner.0.get(), owner.1.get());
                let named = account != 0 && !matches!(container, 0 | u64::MAX);
                named && !seen.containers.contains_key(owner) && !seen.missing.contains_key(owner)
            });
            seen.missing.extend(owners.iter().map(|owner| (*owner, now)));
            owners.into_iter().map(|(account, _)| account).collect()
        };
        for account in unknown.into_iter().filter(|id| self.accounts.name_of(*id).is_some()) {
            if let Err(error) = self.list(account).await {
                tracing::debug!(
                    %account, %error,
                    "the containers of an account cannot be listed; they are shown as numbers"
                );
            }
        }
    }

    async fn list(&self, account: AccountId) -> Result<(), index::Error> {
        let mut list = ListContainers { account, prefix: String::new(), from: None, limit: PAGE };
        for _ in 0..LISTED_MAX / PAGE {
            let reply = self.router.read(&list.position(), Read::Containers(list.clone())).await?;
            let ReadReply::Containers(page) = reply else { break };
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            for entry in page.entries {
                let owner = (account, entry.record.id);
                seen.missing.remove(&owner);
                seen.containers.insert(owner, (entry.name, entry.record.collation));
            }
            drop(seen);
            list.from = page.next;
            if list.from.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// The position a text names.
    pub(super) async fn key(&self, text: &str) -> Result<RoutingKey, PartitionError> {
        let (account, rest) = text.split_once('/').unwrap_or((text, ""));
        if account == names::ACCOUNTS {
            let table = (AccountId::new(0), ContainerId::new(0));
            let key = RoutingKey::prefix(table.0, table.1, rest, Collation::Utf8);
            return Ok(RoutingKey::from_bytes(key));
        }
        let account = self.account(account)?;
        if rest.is_empty() {
            let key = RoutingKey::prefix(account, ContainerId::new(0), "", Collation::Utf8);
            return Ok(RoutingKey::from_bytes(key));
        }
        let (container, name) = rest.split_once('/').unwrap_or((rest, ""));
        let (container, collation) = self.container(account, container).await?;
        Ok(RoutingKey::from_bytes(RoutingKey::prefix(account, container, name, collation)))
    }

    /// The container that `ACCOUNT/CONTAINER` names.
    pub(super) async fn container_of(
        &self,
        text: &str,
    ) -> Result<(AccountId, ContainerId, Collation), PartitionError> {
        let text = text.strip_suffix('/').unwrap_or(text);
        let Some((account, container)) = text.split_once('/') else {
            return Err(PartitionError::NotAContainer(text.to_owned()));
        };
        let account = self.account(account)?;
        let (container, collation) = self.container(account, container).await?;
        Ok((account, container, collation))
    }

    fn account(&self, text: &str) -> Result<AccountId, PartitionError> {
        if let Some(number) = names::number(text).filter(|number| *number != 0) {
            return Ok(AccountId::new(number));
        }
        let known = AccountName::new(text).ok().map(|name| self.accounts.find(&name));
        let known = known.transpose().map_err(index::Error::from)?;
        known
            .flatten()
            .map(|account| account.id)
            .ok_or_else(|| PartitionError::NoSuchAccount(text.to_owned()))
    }

    async fn container(
        &self,
        account: AccountId,
        text: &str,
    ) -> Result<(ContainerId, Collation), PartitionError> {
        if text == names::CONTAINERS || text == names::TAGS {
            return Err(PartitionError::NoBorder(text.to_owned()));
        }
        if let Some(number) = names::number(text).filter(|number| !matches!(number, 0 | &u64::MAX))
        {
            let id = ContainerId::new(number);
            let collation = self.known(account, id).map_or(Collation::Utf16, |(_, order)| order);
            return Ok((id, collation));
        }
        let missing = || PartitionError::NoSuchContainer(text.to_owned());
        let name = ContainerName::new(text).map_err(|_| missing())?;
        let key = RoutingKey::container(account, &name);
        match self.router.read(key.as_bytes(), Read::Container(account, name)).await {
            Ok(ReadReply::Container(record)) => {
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                let found = (text.to_owned(), record.collation);
                seen.containers.insert((account, record.id), found);
                Ok((record.id, record.collation))
            }
            Ok(_) | Err(index::Error::ContainerNotFound) => Err(missing()),
            Err(error) => Err(error.into()),
        }
    }

    fn known(&self, account: AccountId, id: ContainerId) -> Option<(String, Collation)> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.containers.get(&(account, id)).cloned()
    }
}

impl Known for Directory {
    fn account(&self, id: AccountId) -> Option<String> {
        self.accounts.name_of(id).map(|name| name.as_str().to_owned())
    }

    fn container(&self, account: AccountId, id: ContainerId) -> Option<(String, Collation)> {
        self.known(account, id)
    }
}
