//! Looks up accounts and containers by number and by name.

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
use crate::index::PartitionControl;
use crate::index::ReadContainer;
use crate::index::Router;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::ContainerKey;
use crate::types::ContainerName;
use crate::types::NodeId;
use crate::types::RoutingKey;

use super::contents::CONTAINERS_MAX;
use super::contents::Contents;
use super::error::PartitionError;
use super::names;
use super::names::Known;
use super::names::KnownContainer;
use super::prepare::Prefix;

/// The longest listing of one account's containers.
const LISTED_MAX: usize = 10_000;
/// Containers of one page of the listing.
const PAGE: usize = 1_000;
/// Containers remembered. When there are more, all are forgotten.
const KNOWN_MAX: usize = 100_000;
/// How long a number that was not found is not searched again.
const LIST_PAUSE: Duration = Duration::from_secs(60);
/// How long the containers of the store are not listed again.
const CONTENTS_PAUSE: Duration = Duration::from_secs(10);
/// How long a view waits for names. It shows the load where a part of the index does not answer.
const NAMES_PATIENCE: Duration = Duration::from_secs(2);

/// Finds names of accounts and containers, and remembers them.
#[derive(Debug)]
pub(super) struct Directory {
    /// Knows the names of nodes.
    partitions: Arc<dyn PartitionControl>,
    accounts: Accounts,
    router: Arc<Router>,
    clock: Arc<dyn Clock>,
    seen: Mutex<Seen>,
    /// The containers of the store, and when they were listed, by the monotonic clock.
    contents: Mutex<Option<(Duration, Arc<Contents>)>>,
    /// Held by the request that lists them.
    listing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Seen {
    /// A name is kept when its container is deleted: no number is used again.
    containers: HashMap<ContainerKey, KnownContainer>,
    /// Containers that were not found, and when they were searched, by the monotonic clock.
    missing: BTreeMap<ContainerKey, Duration>,
}

/// A container that a text names.
struct Found {
    id: ContainerId,
    collation: Collation,
}

impl Directory {
    pub(super) fn new(
        partitions: Arc<dyn PartitionControl>,
        (accounts, router): (Accounts, Arc<Router>),
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (seen, contents, listing) =
            (Mutex::default(), Mutex::default(), tokio::sync::Mutex::default());
        Self { partitions, accounts, router, clock, seen, contents, listing }
    }

    /// The containers of the store as they were at most ten seconds ago. Where the index does not
    /// answer soon, or another request lists them, those that were found before.
    pub(super) async fn contents(&self) -> Arc<Contents> {
        let last = self.contents.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let listed = self.clock.monotonic();
        let is_fresh = |at: Duration| listed.saturating_sub(at) < CONTENTS_PAUSE;
        let one_at_a_time = self.listing.try_lock();
        match &last {
            Some((at, contents)) if is_fresh(*at) || one_at_a_time.is_err() => {
                return Arc::clone(contents);
            }
            None if one_at_a_time.is_err() => return Arc::default(),
            Some(_) | None => {}
        }
        let mut found = Contents { complete: true, ..Contents::default() };
        let is_whole = tokio::select! {
            biased;
            () = self.add_all(&mut found) => true,
            () = self.clock.sleep(NAMES_PATIENCE) => false,
        };
        if !is_whole && let Some((_, before)) = &last {
            let mut kept = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
            *kept = Some((listed, Arc::clone(before)));
            return Arc::clone(before);
        }
        found.complete &= is_whole;
        let now = self.clock.now().since_unix().as_micros();
        let now = u64::try_from(now).unwrap_or(u64::MAX);
        let mut kept = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        let before = kept.as_ref().map(|(_, contents)| contents.as_ref());
        let contents = Arc::new(found.numbered(before, now));
        *kept = Some((listed, Arc::clone(&contents)));
        contents
    }

    async fn add_all(&self, found: &mut Contents) {
        for account in self.accounts.all() {
            let (id, name) = (account.id, account.name.as_str());
            if let Err(error) = self.add_containers(found, id, name).await {
                tracing::debug!(account = name, %error, "the containers cannot be listed");
                found.complete = false;
            }
        }
    }

    async fn add_containers(
        &self,
        found: &mut Contents,
        account: AccountId,
        name: &str,
    ) -> Result<(), index::Error> {
        let (prefix, mut from) = (String::new(), None);
        loop {
            let room = CONTAINERS_MAX.saturating_sub(found.containers.len());
            if room == 0 {
                found.complete = false;
                return Ok(());
            }
            let limit = room.min(PAGE);
            let list =
                ListContainers { account, prefix: prefix.clone(), from, limit, deleted: false };
            let page = self.router.ask(list).await?;
            for entry in &page.entries {
                found.add(ContainerKey { account, id: entry.record.id }, name, entry.name.as_str());
            }
            from = page.next;
            if from.is_none() {
                return Ok(());
            }
        }
    }

    /// Looks up and remembers names. A container that is not found soon is shown as a number.
    pub(super) async fn look_up(&self, owners: BTreeSet<ContainerKey>) {
        tokio::select! {
            biased;
            () = self.search(owners) => {}
            () = self.clock.sleep(NAMES_PATIENCE) => {}
        }
    }

    async fn search(&self, mut owners: BTreeSet<ContainerKey>) {
        let now = self.clock.monotonic();
        let unknown: BTreeSet<AccountId> = {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if seen.containers.len() > KNOWN_MAX {
                seen.containers.clear();
            }
            seen.missing.retain(|_, at| now.saturating_sub(*at) < LIST_PAUSE);
            owners.retain(|owner| {
                let (account, container) = (owner.account.get(), owner.id.get());
                let named = account != 0 && !matches!(container, 0 | u64::MAX);
                named && !seen.containers.contains_key(owner) && !seen.missing.contains_key(owner)
            });
            seen.missing.extend(owners.iter().map(|owner| (*owner, now)));
            owners.into_iter().map(|owner| owner.account).collect()
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
        let mut list = ListContainers {
            account,
            prefix: String::new(),
            from: None,
            limit: PAGE,
            deleted: true,
        };
        for _ in 0..LISTED_MAX / PAGE {
            let page = self.router.ask(list.clone()).await?;
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            for entry in page.entries {
                let owner = ContainerKey { account, id: entry.record.id };
                seen.missing.remove(&owner);
                let collation = entry.record.collation;
                let name = entry.name.into_string();
                seen.containers.insert(owner, KnownContainer { name, collation });
            }
            drop(seen);
            list.from = page.next;
            if list.from.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// The position that a text names.
    pub(super) async fn key(&self, text: &str) -> Result<RoutingKey, PartitionError> {
        let (account, rest) = text.split_once('/').unwrap_or((text, ""));
        if account == names::ACCOUNTS {
            let (account, table) = (AccountId::new(0), ContainerId::new(0));
            let key = RoutingKey::prefix(account, table, rest, Collation::Utf8);
            return Ok(RoutingKey::from_bytes(key));
        }
        let account = self.account(account)?;
        if rest.is_empty() {
            let key = RoutingKey::prefix(account, ContainerId::new(0), "", Collation::Utf8);
            return Ok(RoutingKey::from_bytes(key));
        }
        let (container, name) = rest.split_once('/').unwrap_or((rest, ""));
        let Found { id, collation } = self.container(account, container).await?;
        Ok(RoutingKey::from_bytes(RoutingKey::prefix(account, id, name, collation)))
    }

    /// All names of the container `ACCOUNT/CONTAINER` that start with a prefix.
    pub(super) async fn prefix<'a>(
        &self,
        container: &str,
        prefix: &'a str,
    ) -> Result<Prefix<'a>, PartitionError> {
        let text = container;
        let text = text.strip_suffix('/').unwrap_or(text);
        let Some((account, container)) = text.split_once('/') else {
            return Err(PartitionError::NotAContainer(text.to_owned()));
        };
        let account = self.account(account)?;
        let Found { id, collation } = self.container(account, container).await?;
        Ok(Prefix { container: ContainerKey { account, id }, collation, text: prefix })
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

    async fn container(&self, account: AccountId, text: &str) -> Result<Found, PartitionError> {
        if text == names::CONTAINERS || text == names::TAGS {
            return Err(PartitionError::NoBorder(text.to_owned()));
        }
        if let Some(number) = names::number(text).filter(|number| !matches!(number, 0 | &u64::MAX))
        {
            let id = ContainerId::new(number);
            let known = self.known(ContainerKey { account, id });
            let collation = known.map_or(Collation::Utf16, |known| known.collation);
            return Ok(Found { id, collation });
        }
        let missing = || PartitionError::NoSuchContainer(text.to_owned());
        let name = ContainerName::new(text).map_err(|_| missing())?;
        match self.router.ask(ReadContainer(account, name)).await {
            Ok(record) => {
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                let (id, collation) = (record.id, record.collation);
                let known = KnownContainer { name: text.to_owned(), collation };
                seen.containers.insert(ContainerKey { account, id }, known);
                Ok(Found { id, collation })
            }
            Err(index::Error::Refused(index::Refused::ContainerNotFound)) => Err(missing()),
            Err(error) => Err(error.into()),
        }
    }

    fn known(&self, container: ContainerKey) -> Option<KnownContainer> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.containers.get(&container).cloned()
    }
}

impl Known for Directory {
    fn account(&self, id: AccountId) -> Option<String> {
        self.accounts.name_of(id).map(|name| name.as_str().to_owned())
    }

    fn container(&self, container: ContainerKey) -> Option<KnownContainer> {
        self.known(container)
    }

    fn node(&self, node: NodeId) -> Option<String> {
        self.partitions.node_name(node)
    }
}
