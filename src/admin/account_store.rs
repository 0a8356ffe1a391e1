//! Accounts created while the node runs: durable in the index, and known to the front end before
//! the command is answered.
//!
//! Accounts of the configuration are listed too. Their keys cannot be changed here.

mod assignments;
mod deletion;
mod error;
mod keys;
mod named_type;
mod scopes;
#[cfg(test)]
mod tests;
mod users;

use std::net::SocketAddr;
use std::sync::Arc;

use serde::Deserialize;
use serde::Serialize;
use tokio::sync::Mutex;
use tokio::sync::OwnedMutexGuard;

use crate::coordinator::IdAllocator;
use crate::env::Tasks;
use crate::frontend::Accounts;
use crate::frontend::accounts::AccountRows;
use crate::index;
use crate::index::AccountChange;
use crate::index::AccountRecord;
use crate::index::Containers;
use crate::index::ReadAccount;
use crate::index::Router;
use crate::index::SetUpAccount;
use crate::index::UpdateAccount;
use crate::index::WriteRequest;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::AccountType;
use crate::types::Versioning;

pub use assignments::AssigneeKind;
pub use assignments::AssignmentView;
pub use error::StoreError;
pub(super) use named_type::NamedType;
pub(super) use named_type::kind;
pub(super) use named_type::sku;
pub(super) use scopes::ScopeView;
pub use users::NewKey;
pub use users::NewUser;
pub(super) use users::UserView;

use super::audit_log::Note;

/// The endpoint of the blob service.
#[derive(Clone, Copy, Debug)]
pub struct Endpoints {
    /// An address that clients on this machine can use.
    pub blob: SocketAddr,
    /// Whether http is served there.
    pub http: bool,
    /// Whether https is served there.
    pub https: bool,
}

/// Which of an account's two keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeySlot {
    /// The first.
    #[serde(rename = "key1")]
    First,
    /// The second.
    #[serde(rename = "key2")]
    Second,
}

/// Settings of an account that a request changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct AccountSettings {
    /// Whether its containers may allow anonymous access.
    pub anonymous: Option<bool>,
    /// Whether its containers keep versions, unless they say so themselves.
    pub versioning: Option<bool>,
    /// Whether its new containers have object lock.
    pub object_lock: Option<bool>,
    /// The days for which deleted containers can be restored; 0: not at all.
    pub container_retention_days: Option<u32>,
    /// Its kind and SKU.
    pub account_type: NamedType,
}

/// The settings of a new account.
#[derive(Debug, Default)]
pub struct NewAccount {
    /// Its keys in Base64; new ones are made where none are given.
    pub keys: [Option<String>; 2],
    /// Whether its containers may allow anonymous access.
    pub anonymous: bool,
    /// Its kind and SKU.
    pub account_type: NamedType,
}

/// An account as shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountView {
    /// The name.
    pub name: String,
    /// When it was created, as an HTTP date.
    pub created: String,
    /// Where its keys come from: `configuration`, `store`, or `none` when it has no keys.
    pub keys_from: String,
    /// Its SKU.
    #[serde(default)]
    pub sku: String,
    /// Its kind.
    #[serde(default)]
    pub kind: String,
    /// Whether its containers may allow anonymous access.
    pub anonymous: bool,
    /// Whether its containers keep versions, unless they say so themselves.
    #[serde(default)]
    pub versioning: bool,
    /// Whether its new containers have object lock.
    #[serde(default)]
    pub object_lock: bool,
    /// The days for which deleted containers can be restored; 0: not at all.
    #[serde(default)]
    pub container_retention_days: u32,
    /// Its endpoints.
    pub endpoints: Vec<String>,
    /// Its stored keys, if they were requested.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub keys: Option<Vec<String>>,
}

/// The accounts of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountsView {
    /// The accounts that could be read.
    pub accounts: Vec<AccountView>,
    /// Ranges with accounts that could not be read; empty when `accounts` is complete.
    pub unread: Vec<UnreadView>,
}

/// A part of the list of accounts that could not be read, because its partition does not serve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadView {
    /// The partition.
    pub partition: u64,
    /// The range of names, such as "accounts from `mmm` on".
    pub range: String,
}

/// Creates, shows, changes and removes accounts; cheap to clone.
#[derive(Clone, Debug)]
pub struct AccountStore {
    accounts: Accounts,
    router: Arc<Router>,
    containers: Containers,
    ids: Arc<IdAllocator>,
    endpoints: Endpoints,
    /// The names of the trusted token issuers.
    issuers: Arc<[String]>,
    /// Held by each command from its first read to its last write.
    changing: Arc<Mutex<()>>,
    tasks: Tasks,
}

/// The parts of the node that changes of accounts use.
#[derive(Debug)]
pub struct AccountStoreParts {
    /// The accounts that the front end serves.
    pub accounts: Accounts,
    /// Changes their containers.
    pub containers: Containers,
    /// Issues ids of new accounts.
    pub ids: Arc<IdAllocator>,
    /// The endpoints that are shown.
    pub endpoints: Endpoints,
    /// Where changes run: a client that disconnects does not stop them half-way.
    pub tasks: Tasks,
}

/// The right of one command at a time to change accounts, until its last write is answered.
type Turn = Arc<OwnedMutexGuard<()>>;

impl AccountStore {
    /// A store of these parts.
    #[must_use]
    pub fn new(parts: AccountStoreParts) -> Self {
        let AccountStoreParts { accounts, containers, ids, endpoints, tasks } = parts;
        let (issuers, changing) = (Arc::default(), Arc::default());
        let router = Arc::clone(&containers.router);
        Self { accounts, router, containers, ids, endpoints, issuers, changing, tasks }
    }

    /// The same with these token issuers, whose principals can be given roles.
    #[must_use]
    pub fn with_issuers(self, issuers: impl Iterator<Item = String>) -> Self {
        Self { issuers: issuers.collect(), ..self }
    }

    /// All accounts that can be read, in name order, without keys, and the ranges that cannot be
    /// read.
    ///
    /// # Errors
    /// [`StoreError::Index`].
    pub async fn list(&self) -> Result<AccountsView, StoreError> {
        let found = AccountRows::read(&self.router, &[AccountRows::table()]).await?;
        let rows = found.rows.iter();
        let accounts = rows.map(|(name, record)| self.view(name, record, false));
        let unread = found.unread.iter().map(|unread| UnreadView {
            partition: unread.partition.get(),
            range: unread.to_string(),
        });
        Ok(AccountsView { accounts: accounts.collect::<Result<_, _>>()?, unread: unread.collect() })
    }

    /// One account, with its stored keys when `keys` is set.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn show(&self, name: &str, keys: bool) -> Result<AccountView, StoreError> {
        let name = parse(name)?;
        let record = self.record(&name).await?;
        self.view(&name, &record, keys)
    }

    /// Creates an account with the given or new keys. An account whose row has no keys, because
    /// they came from a configuration that no longer names it, gets these keys and keeps its data.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn create(&self, name: &str, new: NewAccount) -> Result<AccountView, StoreError> {
        let name = parse(name)?;
        let NewAccount { keys, anonymous, account_type } = new;
        let keys = keys.into_iter().map(keys::decoded).collect::<Result<Vec<_>, _>>()?;
        let turn = self.turn().await;
        if self.accounts.find(&name).map_err(index::Error::from)?.is_some() {
            return Err(StoreError::Exists(name.as_str().to_owned()));
        }
        let (id, account_type) = match self.record(&name).await {
            Ok(record) => (record.id, self.checked_type(&name, &record, account_type).await?),
            Err(StoreError::NotFound(_)) => {
                let account_type = account_type.after(AccountType::default())?;
                (AccountId::new(self.ids.next().await?), account_type)
            }
            Err(error) => return Err(error),
        };
        let keys = keys.iter().map(|key| self.sealed(&name, id, key)).collect();
        let delegation_secret = self.new_delegation(&name, id)?;
        let of = name.clone();
        let made = SetUpAccount { name: of, id, keys, delegation_secret, anonymous, account_type };
        // One commit: a crash leaves the whole account or none.
        self.write(&turn, &name, made).await?;
        tracing::info!(account = name.as_str(), "account created");
        let record = self.record(&name).await?;
        self.view(&name, &record, true)
    }

    /// Replaces one key by the given or a new one. Requests signed with the old key are refused
    /// from now on.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn rotate(
        &self,
        name: &str,
        slot: KeySlot,
        value: Option<String>,
    ) -> Result<AccountView, StoreError> {
        let name = parse(name)?;
        let new = keys::decoded(value)?;
        let turn = self.turn().await;
        self.refuse_configured(&name)?;
        let record = self.record(&name).await?;
        let new = self.sealed(&name, record.id, &new);
        let mut keys = record.keys;
        match slot {
            KeySlot::First => match keys.first_mut() {
                Some(first) => *first = new,
                None => keys.push(new),
            },
            KeySlot::Second => {
                if keys.is_empty() {
                    return Err(StoreError::NotFound(name.as_str().to_owned()));
                }
                keys.truncate(1);
                keys.push(new);
            }
        }
        self.change(&turn, &name, AccountChange::Keys(keys)).await?;
        tracing::info!(account = name.as_str(), ?slot, "key rotated");
        let record = self.record(&name).await?;
        self.view(&name, &record, true)
    }

    /// Revokes all user delegation keys, and the signatures made with them. The account's keys stay
    /// valid.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn revoke_delegation(&self, name: &str) -> Result<AccountView, StoreError> {
        let name = parse(name)?;
        let turn = self.turn().await;
        let secret = self.new_delegation(&name, self.record(&name).await?.id)?;
        self.change(&turn, &name, AccountChange::DelegationSecret(secret)).await?;
        tracing::info!(account = name.as_str(), "user delegation keys revoked");
        let record = self.record(&name).await?;
        self.view(&name, &record, false)
    }

    /// Changes settings. Object lock needs versions, which may be switched on by the same call;
    /// without them it is off.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn set(
        &self,
        name: &str,
        settings: AccountSettings,
    ) -> Result<AccountView, StoreError> {
        let AccountSettings { anonymous, versioning, object_lock, .. } = settings;
        let AccountSettings { container_retention_days, account_type, .. } = settings;
        let name = parse(name)?;
        let turn = self.turn().await;
        let record = self.record(&name).await?;
        let keeps = versioning.unwrap_or(record.versioning() == Some(Versioning::Enabled));
        if object_lock == Some(true) && !keeps {
            return Err(StoreError::NotVersioned(name.as_str().to_owned()));
        }
        if account_type.is_any() {
            let new = self.checked_type(&name, &record, account_type).await?;
            self.set_type(&turn, &name, new).await?;
        }
        if let Some(open) = anonymous {
            self.change(&turn, &name, AccountChange::Anonymous(open)).await?;
            tracing::info!(account = name.as_str(), open, "anonymous access set");
        }
        if let Some(on) = versioning {
            self.change(&turn, &name, AccountChange::Versioning(on)).await?;
            tracing::info!(account = name.as_str(), on, "versions of blobs set");
        }
        if let Some(on) = object_lock {
            self.change(&turn, &name, AccountChange::ObjectLock(on)).await?;
            tracing::info!(account = name.as_str(), on, "object lock of new containers set");
        }
        if let Some(days) = container_retention_days {
            let days_if_any = Some(days).filter(|days| *days > 0);
            self.change(&turn, &name, AccountChange::ContainerRetention(days_if_any)).await?;
            tracing::info!(account = name.as_str(), days, "retention of containers set");
        }
        let record = self.record(&name).await?;
        self.view(&name, &record, false)
    }

    /// Removes an account. With `force`, deletes all of its containers first, each with an audit
    /// log line of its own. Requests are refused as soon as this begins.
    ///
    /// # Errors
    /// [`StoreError`]: the account is served again.
    pub(super) async fn remove(
        &self,
        name: &str,
        force: bool,
        note: &Note,
    ) -> Result<(), StoreError> {
        let name = parse(name)?;
        let _turn = self.turn().await;
        self.refuse_configured(&name)?;
        let record = self.record(&name).await?;
        self.accounts.forget(&name);
        // The account must not stay unserved if this request is given up.
        let unless_ended = self.accounts.doubt_unless_ended(&self.router, &name);
        let account = deletion::StoredAccount { name: &name, id: record.id };
        match self.empty_and_remove(account, force, note).await {
            Ok(()) => {
                let _no_refresh = self.accounts.keep_refreshes_out().await;
                // A request that was admitted before may have cached the row again.
                self.accounts.forget(&name);
                unless_ended.ended();
                tracing::info!(account = name.as_str(), force, "account deleted");
                Ok(())
            }
            Err(error) => {
                if error.is_answered() && self.accounts.refresh(&self.router, &name).await.is_ok() {
                    unless_ended.ended();
                }
                Err(error)
            }
        }
    }

    /// Waits until no other command changes accounts.
    async fn turn(&self) -> Turn {
        Arc::new(Arc::clone(&self.changing).lock_owned().await)
    }

    /// Changes the row, then the front end's cache. Refused while it is unknown whether the account
    /// exists: a concurrent read of the row would overwrite this change in the cache.
    /// Both run in a task of their own, so that a request that is given up does not leave the row
    /// changed and the old keys served.
    async fn change(
        &self,
        turn: &Turn,
        name: &AccountName,
        change: AccountChange,
    ) -> Result<(), StoreError> {
        self.write(turn, name, UpdateAccount { name: name.clone(), change }).await
    }

    /// As [`Self::change`], for any write of the row.
    async fn write<W: WriteRequest + 'static>(
        &self,
        turn: &Turn,
        name: &AccountName,
        write: W,
    ) -> Result<(), StoreError> {
        self.accounts.find(name).map_err(index::Error::from)?;
        let (accounts, router) = (self.accounts.clone(), Arc::clone(&self.router));
        let (name, turn) = (name.clone(), Arc::clone(turn));
        let task = self.tasks.spawn_part("account change", async move {
            let changed = router.tell(write).await;
            let changed = accounts.refresh_after(&router, &name, changed).await;
            drop(turn);
            changed.map(drop)
        });
        let ended = task.await.unwrap_or_else(|error| Err(unavailable(&error)));
        Ok(ended?)
    }

    async fn record(&self, name: &AccountName) -> Result<AccountRecord, StoreError> {
        match self.router.ask(ReadAccount(name.clone())).await {
            Ok(record) => Ok(record),
            Err(index::Error::Refused(index::Refused::AccountNotFound)) => {
                Err(StoreError::NotFound(name.as_str().to_owned()))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn refuse_configured(&self, name: &AccountName) -> Result<(), StoreError> {
        let known = self.accounts.find(name).map_err(index::Error::from)?;
        if known.is_some_and(|account| account.configured) {
            return Err(StoreError::Configured(name.as_str().to_owned()));
        }
        Ok(())
    }
}

fn parse(name: &str) -> Result<AccountName, StoreError> {
    AccountName::new(name).map_err(|_| StoreError::Name(name.to_owned()))
}

fn unavailable(error: &tokio::task::JoinError) -> index::Error {
    index::Error::Unavailable(error.to_string())
}
