//! The accounts that a node serves: those of the configuration, and those of rows.
//!
//! 1. [`AccountList::read`] reads them at the start, except those in partitions that do not serve.
//! 2. [`AccountList::complete`] reads the rest when these partitions are open.
//! 3. In a cluster, [`AccountList::follow`] reads those again that other front ends change.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use serde_json::json;

use crate::admin::new_delegation_secret;
use crate::audit_log::AuditLog;
use crate::audit_log::Change;
use crate::audit_log::Entry;
use crate::audit_log::Principal;
use crate::audit_log::Thing;
use crate::auth::SecretContext;
use crate::coordinator::IdAllocator;
use crate::coordinator::hosts::HostClaim;
use crate::env::Clock;
use crate::env::Env;
use crate::frontend::Accounts;
use crate::frontend::Secrets;
use crate::frontend::Unread;
use crate::frontend::accounts::Account;
use crate::frontend::accounts::AccountRows;
use crate::frontend::accounts::part_of_one;
use crate::index;
use crate::index::AccountChange;
use crate::index::AccountRecord;
use crate::index::CreateAccount;
use crate::index::ReadAccount;
use crate::index::Router;
use crate::index::UpdateAccount;
use crate::index::remote::ChangedAccounts;
use crate::index::remote::ChangesTo;
use crate::index::remote::ClusterIndex;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::KeyRange;
use crate::types::NodeId;
use crate::types::RoutingKey;

use super::config::AccountConfig;
use super::config::UserConfig;
use super::error::NodeError;

/// How often the accounts that could not be read are read again.
const AGAIN: Duration = Duration::from_secs(1);
/// The accounts of a process that does not say for so long which of them it has changed are in
/// doubt.
const SILENT: Duration = Duration::from_secs(25);
/// The pause before it is asked again which accounts have changed.
const CHANGES_PAUSE: Duration = Duration::from_millis(100);

/// The sources of a node's accounts.
#[derive(Debug)]
pub struct AccountList {
    /// The accounts of the configuration, with their keys.
    pub configured: Vec<AccountConfig>,
    /// The users of the configuration.
    pub users: Vec<UserConfig>,
    /// The setting for public access to the configured accounts.
    pub public_access: Option<bool>,
    /// The router to the rows.
    pub router: Arc<Router>,
    /// Unseals secrets in the rows.
    pub secrets: Secrets,
    /// Issues ids of new accounts.
    pub ids: Arc<IdAllocator>,
    /// Gets a line for each change that the configuration makes.
    pub audit_log: AuditLog,
}

impl AccountList {
    /// Creates the configured accounts that are new, and reads all others. Accounts in a partition
    /// that does not serve are recorded as unread.
    ///
    /// # Errors
    /// [`NodeError`].
    pub async fn read(&self) -> Result<Accounts, NodeError> {
        let users = self.users.iter().map(UserConfig::configured).collect();
        let accounts = Accounts::new(Vec::new(), self.secrets.clone()).with_users(users);
        let unread = self.read_ranges(&[AccountRows::table()], &accounts).await?;
        if unread.is_empty() && accounts.is_empty() {
            tracing::warn!(
                "there is no account, so no request can be permitted: `blockyard account create \
                 NAME` makes one and prints its keys"
            );
        }
        for unread in &unread {
            tracing::warn!(
                partition = %unread.partition,
                "accounts were not read at the start: {unread}"
            );
        }
        accounts.set_unread(unread);
        for user in
            self.users.iter().filter(|user| matches!(accounts.find(user.account()), Ok(None)))
        {
            tracing::warn!(%user, "there is no such account: the user cannot sign requests");
        }
        Ok(accounts)
    }

    /// Starts to read the accounts that are unread, and those that get in doubt, until the node
    /// stops.
    pub fn complete(self: Arc<Self>, accounts: &Accounts, env: &Env) {
        let (stop, accounts, clock) =
            (env.tasks.stopping(), accounts.clone(), Arc::clone(&env.clock));
        let stopping = stop.clone();
        let completing = move || {
            let (list, accounts, clock, stop) =
                (Arc::clone(&self), accounts.clone(), Arc::clone(&clock), stop.clone());
            async move {
                let reading = async {
                    loop {
                        if accounts.unread().is_empty() && accounts.in_doubt().is_empty() {
                            accounts.doubted().await;
                        }
                        clock.sleep(AGAIN).await;
                        list.read_more(&accounts).await;
                    }
                };
                tokio::select! {
                    biased;
                    () = stop.cancelled() => {}
                    () = reading => {}
                }
            }
        };
        drop(env.supervise("account list", stopping, completing));
    }

    /// Starts to read accounts again that other front ends change, until the node stops.
    pub fn follow(self: Arc<Self>, index: Arc<ClusterIndex>, accounts: &Accounts, env: &Env) {
        let (stop, accounts, clock) =
            (env.tasks.stopping(), accounts.clone(), Arc::clone(&env.clock));
        let stopping = stop.clone();
        let following = move || {
            let (list, index, accounts) = (Arc::clone(&self), Arc::clone(&index), accounts.clone());
            let (clock, stop) = (Arc::clone(&clock), stop.clone());
            async move {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => {}
                    () = list.keep_up(&index, &accounts, &*clock) => {}
                }
            }
        };
        drop(env.supervise("changed accounts", stopping, following));
    }

    /// Asks each process that serves partitions which accounts it has changed, and reads those
    /// again. What a process did that has ended is not known: then all are read again. Accounts of
    /// a process that does not answer for long are in doubt.
    async fn keep_up(&self, index: &ClusterIndex, accounts: &Accounts, clock: &dyn Clock) {
        let ask = async |host: HostClaim, seen: Option<ChangesTo>| {
            if seen.is_none() {
                clock.sleep(CHANGES_PAUSE).await;
            }
            match index.accounts_after(host, seen).await {
                Ok(changed) => (host, Ok(self.read_changed(changed, accounts).await)),
                Err(error) => (host, Err(error)),
            }
        };
        // Since when a node does not answer.
        let mut silent: BTreeMap<NodeId, Duration> = BTreeMap::new();
        let (mut asked, mut answers) = (Vec::new(), FuturesUnordered::new());
        let mut reading = FuturesUnordered::new();
        let mut is_one_gone = false;
        loop {
            let hosts = index.hosts();
            for host in &hosts {
                if !asked.contains(host) {
                    asked.push(*host);
                    answers.push(ask(*host, None));
                }
            }
            if is_one_gone && reading.is_empty() {
                is_one_gone = false;
                reading.push(self.read_all_when_served(accounts, clock));
            }
            let (host, answer) = tokio::select! {
                biased;
                Some(answer) = answers.next(), if !answers.is_empty() => answer,
                Some(is_read) = reading.next(), if !reading.is_empty() => {
                    is_one_gone |= !is_read;
                    continue;
                }
                () = index.hosts_changed_from(&hosts) => continue,
            };
            let (node, now) = (host.holder.node, clock.monotonic());
            if !index.hosts().contains(&host) {
                asked.retain(|other| *other != host);
                silent.remove(&node);
                is_one_gone = true;
                continue;
            }
            let seen = match answer {
                Ok(seen) => {
                    silent.remove(&node);
                    seen
                }
                Err(error) => {
                    tracing::debug!(%error, "changes of accounts are asked for again");
                    if now >= *silent.entry(node).or_insert(now) + SILENT {
                        silent.insert(node, now);
                        self.doubt_all(node, accounts);
                    }
                    None
                }
            };
            answers.push(ask(host, seen));
        }
    }

    /// Puts all accounts in doubt, since a node does not say which it has changed. It may have
    /// given the partitions of those away meanwhile. Whatever can be read is served again soon.
    fn doubt_all(&self, node: NodeId, accounts: &Accounts) {
        let all = accounts.all();
        tracing::warn!(%node, accounts = all.len(), "it does not say which accounts it changed");
        all.iter().for_each(|account| accounts.doubt(&self.router, &account.name));
    }

    /// Reads all accounts again once all their partitions are served. Returns whether it could.
    async fn read_all_when_served(&self, accounts: &Accounts, clock: &dyn Clock) -> bool {
        // Without this, changes of accounts would have to wait until they are.
        let found = AccountRows::read(&self.router, &[AccountRows::table()]).await;
        let are_served = found.is_ok_and(|found| found.unread.is_empty());
        if are_served && self.read_all_again(accounts).await {
            return true;
        }
        clock.sleep(CHANGES_PAUSE).await;
        false
    }

    /// Reads accounts again. Returns what was seen by that; `None` if they could not be read.
    async fn read_changed(
        &self,
        changed: ChangedAccounts,
        accounts: &Accounts,
    ) -> Option<ChangesTo> {
        let ChangedAccounts { to, accounts: named } = changed;
        let Some(mut named) = named else {
            return self.read_all_again(accounts).await.then_some(to);
        };
        named.sort_unstable();
        named.dedup();
        for name in named {
            // One that cannot be read is in doubt, and is read again.
            if let Err(error) = accounts.refresh(&self.router, &name).await {
                tracing::debug!(account = %name, %error, "a changed account is not served");
            }
        }
        Some(to)
    }

    /// Reads all accounts again. Returns whether it could.
    async fn read_all_again(&self, accounts: &Accounts) -> bool {
        // Rows that are read here are older than those of concurrent changes.
        let no_refresh = accounts.keep_refreshes_out().await;
        let mut gone: BTreeSet<AccountName> =
            accounts.all().into_iter().map(|account| account.name.clone()).collect();
        let rows = match AccountRows::read(&self.router, &[AccountRows::table()]).await {
            Ok(AccountRows { rows, unread }) if unread.is_empty() => rows,
            Ok(_) => return false,
            Err(error) => {
                tracing::debug!(%error, "the accounts are read again later");
                return false;
            }
        };
        let mut configured = Vec::new();
        for (name, record) in rows {
            gone.remove(&name);
            if self.configured.iter().any(|config| *config.name() == name) {
                configured.push(name);
            } else if let Err(error) = self.put_stored(name, record, accounts).await {
                tracing::debug!(%error, "the accounts are read again later");
                return false;
            }
        }
        gone.iter().for_each(|name| accounts.forget(name));
        drop(no_refresh);
        for name in configured {
            if let Err(error) = accounts.refresh(&self.router, &name).await {
                tracing::debug!(account = %name, %error, "an account is not served");
            }
        }
        true
    }

    /// Tries once to read the unread accounts and those in doubt.
    async fn read_more(&self, accounts: &Accounts) {
        for name in accounts.in_doubt() {
            match self.decide(&name, accounts).await {
                Ok(()) => tracing::info!(account = %name, "the account is served again"),
                Err(error) => tracing::debug!(account = %name, %error, "it stays in doubt"),
            }
        }
        if accounts.unread().is_empty() {
            return;
        }
        // Rows that are read here are older than those of concurrent changes.
        let _no_refresh = accounts.keep_refreshes_out().await;
        let ranges: Vec<KeyRange> = accounts.unread().into_iter().map(|one| one.keys).collect();
        match self.read_ranges(&ranges, accounts).await {
            Ok(unread) => {
                if unread.is_empty() {
                    tracing::info!("the list of accounts is complete");
                }
                accounts.set_unread(unread);
            }
            Err(error) => tracing::warn!(%error, "the list of accounts stays incomplete"),
        }
    }

    /// Ends the doubt about an account. A change of nothing that is answered comes after all that
    /// were not.
    async fn decide(&self, name: &AccountName, accounts: &Accounts) -> Result<(), NodeError> {
        let nothing = AccountChange::Reseal(Vec::new());
        let answer = self.router.tell(UpdateAccount { name: name.clone(), change: nothing }).await;
        let not_found = index::Error::Refused(index::Refused::AccountNotFound);
        if let Err(error) = answer
            && error != not_found
        {
            return Err(error.into());
        }
        let _no_refresh = accounts.keep_refreshes_out().await;
        if let Some(config) = self.configured.iter().find(|config| config.name() == name) {
            accounts.put(self.configure(config).await?);
        } else {
            match self.router.ask(ReadAccount(name.clone())).await {
                Ok(record) => self.put_stored(name.clone(), record, accounts).await?,
                Err(error) if error == not_found => accounts.forget(name),
                Err(error) => return Err(error.into()),
            }
        }
        accounts.decided(name);
        Ok(())
    }

    /// Adds the account of a row, if it can be served.
    async fn put_stored(
        &self,
        name: AccountName,
        record: AccountRecord,
        accounts: &Accounts,
    ) -> Result<(), NodeError> {
        let record = self.with_delegation_secret(&name, record).await?;
        match Account::stored(name.clone(), record, &self.secrets) {
            Ok(account) => account.into_iter().for_each(|account| accounts.put(account)),
            Err(error) => tracing::error!(account = %name, %error, "the account is not served"),
        }
        Ok(())
    }

    /// Adds the accounts of some ranges to `accounts`, and returns the ranges that could not be
    /// read.
    async fn read_ranges(
        &self,
        ranges: &[KeyRange],
        accounts: &Accounts,
    ) -> Result<Vec<Unread>, NodeError> {
        let AccountRows { rows, mut unread } = AccountRows::read(&self.router, ranges).await?;
        for config in &self.configured {
            let key = RoutingKey::account(config.name());
            let is_in = |range: &KeyRange| range.contains(key.as_bytes());
            if !ranges.iter().any(is_in) || unread.iter().any(|one| is_in(&one.keys)) {
                continue;
            }
            match self.configure(config).await {
                Ok(account) => accounts.put(account),
                Err(error @ NodeError::Index(index::Error::Refused(_))) => return Err(error),
                Err(NodeError::Index(error)) => {
                    tracing::warn!(account = %config.name(), %error, "the account is not served");
                    let high = RoutingKey::after_prefix(key.as_bytes());
                    let keys = KeyRange::new(key, high.map(RoutingKey::from_bytes));
                    unread.push(part_of_one(&self.router, &keys, &error)?);
                }
                Err(error) => return Err(error),
            }
        }
        for (name, record) in rows {
            if self.configured.iter().any(|config| *config.name() == name) {
                continue;
            }
            self.put_stored(name, record, accounts).await?;
        }
        Ok(unread)
    }

    /// A configured account. Creates its row if it is new, and changes it as configured.
    async fn configure(&self, config: &AccountConfig) -> Result<Account, NodeError> {
        // If the account exists, the id is not used.
        let id = AccountId::new(self.ids.next().await?);
        let name = config.name().clone();
        // Everyone knows the published key, so public access reveals nothing more; clients expect
        // it.
        let anonymous = config.is_public() || config.is_for_development();
        let create = CreateAccount { name: name.clone(), id, anonymous };
        let record = self.router.tell(create).await?;
        if record.id == id {
            let detail = json!({ "anonymous": anonymous });
            self.log_change("CreateAccount", &name, detail).await;
        }
        let record = self.switched(&name, record).await?;
        let record = self.with_delegation_secret(&name, record).await?;
        let (of, keys) = (format!("account {name}"), config.keys()?);
        let account = Account::new(name, keys, record, &self.secrets);
        account.map_err(|error| NodeError::Secret { of, error })
    }

    /// The account's row with a secret for user delegation keys. The secret is created now if an
    /// older program wrote the row.
    async fn with_delegation_secret(
        &self,
        name: &AccountName,
        record: AccountRecord,
    ) -> Result<AccountRecord, NodeError> {
        if record.delegation_secret.is_some() {
            return Ok(record);
        }
        let secret = new_delegation_secret().map_err(|error| NodeError::System {
            what: "randomness for user delegation keys",
            reason: error.to_string(),
        })?;
        let sealed = self.secrets.seal(&SecretContext::delegation(name, record.id), &*secret);
        let change = AccountChange::DelegationSecret(sealed.clone());
        match self.router.tell(UpdateAccount { name: name.clone(), change }).await {
            Ok(_) => Ok(AccountRecord { delegation_secret: Some(sealed), ..record }),
            Err(error @ index::Error::Refused(_)) => Err(error.into()),
            Err(error) => {
                let until = "it issues no user delegation keys until the next start";
                tracing::warn!(account = %name, %error, "{until}");
                Ok(record)
            }
        }
    }

    /// Sets the account's public access as configured.
    async fn switched(
        &self,
        name: &AccountName,
        record: AccountRecord,
    ) -> Result<AccountRecord, NodeError> {
        let Some(open) = self.public_access.filter(|open| *open != record.anonymous) else {
            return Ok(record);
        };
        let change = AccountChange::Anonymous(open);
        self.router.tell(UpdateAccount { name: name.clone(), change }).await?;
        self.log_change("SetAnonymousAccess", name, json!({ "anonymous": open })).await;
        Ok(AccountRecord { anonymous: open, ..record })
    }

    /// Writes a line of the audit log about a change that the configuration made.
    async fn log_change(&self, operation: &'static str, account: &AccountName, detail: Value) {
        let entry = Entry {
            account: Some(account.as_str().to_owned()),
            principal: Principal::Node { task: "configuration" },
            operation: operation.into(),
            ..Entry::default()
        };
        self.audit_log.change(&entry, &Change { of: Thing::Account, detail }).await;
    }
}

#[cfg(test)]
pub(in crate::node) mod tests;
