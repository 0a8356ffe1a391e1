//! The accounts that this front end serves: a cache of their rows. Code that changes an account
//! also renews the cache. `rows.rs` lists the rows, `users.rs` has the users of accounts,
//! `scopes.rs` their encryption scopes, `unknown.rs` the parts that could not be read.

mod rows;
mod scopes;
mod unknown;
mod users;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::RwLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::sync::Mutex;
use tokio::sync::Notify;
use tokio::sync::OwnedMutexGuard;
use zeroize::Zeroizing;

use crate::auth::AccountKeys;
use crate::auth::DelegationSecret;
use crate::auth::SecretContext;
use crate::auth::UnsealError;
use crate::frontend::metrics::accounts::AccountMetrics;
use crate::frontend::metrics::accounts::Traffic;
use crate::frontend::metrics::users::UserMetrics;
use crate::frontend::secrets::Secrets;
use crate::index::AccountRecord;
use crate::index::Error;
use crate::index::ReadAccount;
use crate::index::Refused;
use crate::index::Router;
use crate::telemetry::Registry;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::AccountType;
use crate::types::KeyRange;
use crate::types::OwnerIds;
use crate::types::PartitionId;
use crate::types::Protection;
use crate::types::RoleAssignment;
use crate::types::RoutingKey;
use crate::types::ServiceProperties;
use crate::types::Versioning;
use std::time::Duration;

use unknown::Unknown;

pub use rows::AccountRows;
pub use rows::part_of_one;
pub(crate) use scopes::Scope;
pub use scopes::Scopes;
pub use unknown::Unread;
pub use users::AccessKeys;
pub use users::ConfiguredUser;
pub use users::User;
pub use users::UserKey;
pub use users::Users;

/// One account.
#[derive(Clone, Debug)]
pub struct Account {
    /// The name.
    pub name: AccountName,
    /// Its id in keys.
    pub id: AccountId,
    /// Its number in names of S3.
    pub number: String,
    /// Its signing keys.
    pub keys: AccountKeys,
    /// The secret from which its user delegation keys are derived.
    pub delegation: Option<DelegationSecret>,
    /// Its kind and SKU.
    pub account_type: AccountType,
    /// Whether its containers may have public access.
    pub anonymous: bool,
    /// Whether its containers keep versions, unless they say so themselves.
    pub versioning: Option<Versioning>,
    /// Whether soft-deleted rows may be removed before they expire.
    pub permanent_delete: bool,
    /// The days for which deleted containers can be restored; `None`: not at all.
    pub container_retention_days: Option<u32>,
    /// Whether its new containers have object lock.
    pub locks_objects: bool,
    /// Properties of its Blob service.
    pub properties: ServiceProperties,
    /// Its role assignments.
    pub assignments: Vec<RoleAssignment>,
    /// Its users.
    pub users: Users,
    /// Its encryption scopes with keys.
    pub scopes: Scopes,
    /// Whether its keys come from the configuration instead of its row.
    pub configured: bool,
    /// Its counters.
    pub(crate) traffic: Arc<Traffic>,
}

impl Account {
    /// The period for which a deleted container can be restored. `day` is the length of a day of
    /// retention.
    #[must_use]
    pub fn container_restorable_for(&self, day: Duration) -> Option<Duration> {
        self.container_retention_days.map(|days| day.saturating_mul(days))
    }

    /// How blobs of its containers are protected, unless these say so themselves. `day` is the
    /// length of a day of retention.
    #[must_use]
    pub fn protection(&self, day: Duration) -> Protection {
        let days = self.properties.delete_retention_days;
        let restorable_for = days.map(|days| day.saturating_mul(days));
        Protection { versioning: self.versioning, restorable_for, lock: None }
    }

    /// The account of a row, with the `keys` of the configuration.
    ///
    /// # Errors
    /// [`UnsealError`].
    pub fn new(
        name: AccountName,
        keys: AccountKeys,
        record: AccountRecord,
        secrets: &Secrets,
    ) -> Result<Self, UnsealError> {
        let users = Users::stored(&name, &record, secrets);
        let scopes = Scopes::stored(&name, &record, secrets);
        let (versioning, permanent_delete) = (record.versioning(), record.permanent_delete());
        let container_retention_days = record.container_retention_days();
        let (locks_objects, account_type) = (record.locks_objects(), record.account_type());
        let AccountRecord { id, anonymous, delegation_secret, properties, assignments, .. } =
            record;
        let context = SecretContext::delegation(&name, id);
        let secret = delegation_secret.map(|secret| secrets.open(&context, &secret)).transpose()?;
        let delegation = secret.and_then(|secret| DelegationSecret::stored(&secret));
        let (configured, traffic) = (true, Arc::default());
        Ok(Self {
            number: OwnerIds::of(&name).number,
            name,
            id,
            keys,
            delegation,
            properties,
            assignments,
            users,
            scopes,
            account_type,
            anonymous,
            versioning,
            permanent_delete,
            container_retention_days,
            locks_objects,
            configured,
            traffic,
        })
    }

    /// The account of a row, with the keys of the row; `None` when it has no usable keys.
    ///
    /// # Errors
    /// [`UnsealError`].
    pub fn stored(
        name: AccountName,
        record: AccountRecord,
        secrets: &Secrets,
    ) -> Result<Option<Self>, UnsealError> {
        let Ok(keys) = AccountKeys::new(&stored_keys(&name, &record, secrets)?) else {
            return Ok(None);
        };
        Self::new(name, keys, record, secrets)
            .map(|account| Some(Self { configured: false, ..account }))
    }
}

/// The keys in an account's row, in Base64.
///
/// # Errors
/// [`UnsealError`].
pub fn stored_keys(
    name: &AccountName,
    record: &AccountRecord,
    secrets: &Secrets,
) -> Result<Vec<Zeroizing<String>>, UnsealError> {
    let context = SecretContext::account_key(name, record.id);
    let open = |key| secrets.open(&context, key).map(|key| Zeroizing::new(STANDARD.encode(&*key)));
    record.keys.iter().map(open).collect()
}

/// All accounts by name; clones share them.
#[derive(Clone, Debug)]
pub struct Accounts {
    secrets: Secrets,
    known: Arc<RwLock<HashMap<String, Arc<Account>>>>,
    unknown: Arc<RwLock<Unknown>>,
    /// Notified when an account gets in doubt.
    doubted: Arc<Notify>,
    /// Held from the read of a row until its account is cached, so that an older row never replaces
    /// a newer one.
    refreshing: Arc<Mutex<()>>,
    /// Users of the configuration.
    configured_users: Arc<[ConfiguredUser]>,
    access_keys: AccessKeys,
    metrics: AccountMetrics,
    user_metrics: UserMetrics,
}

impl Accounts {
    /// A cache of these accounts.
    #[must_use]
    pub fn new(accounts: Vec<Account>, secrets: Secrets) -> Self {
        let (known, unknown) = (Arc::default(), Arc::<RwLock<Unknown>>::default());
        let (refreshing, doubted) = (Arc::default(), Arc::default());
        let metrics = AccountMetrics::default();
        let user_metrics = UserMetrics::default();
        let (configured_users, access_keys) =
            (Arc::default(), AccessKeys::new(Arc::clone(&unknown)));
        let made = Self {
            secrets,
            known,
            unknown,
            doubted,
            refreshing,
            configured_users,
            access_keys,
            metrics,
            user_metrics,
        };
        accounts.into_iter().for_each(|account| made.put(account));
        made
    }

    /// The same with these users of the configuration, before any account is added.
    #[must_use]
    pub fn with_users(self, users: Vec<ConfiguredUser>) -> Self {
        Self { configured_users: users.into(), ..self }
    }

    /// The accounts of access keys of users.
    #[must_use]
    pub fn access_keys(&self) -> AccessKeys {
        self.access_keys.clone()
    }

    /// Shows requests and bytes of each account, and requests of each user, in `registry`.
    pub fn register(&self, registry: &mut Registry) {
        self.metrics.register(registry);
        self.user_metrics.register(registry);
    }

    /// Counts a request of a user.
    pub(crate) fn count_user(&self, account: &AccountName, user: &User) {
        self.user_metrics.count(account, &user.name);
    }

    /// Seals and opens secrets in rows.
    #[must_use]
    pub const fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// The account of that name.
    #[must_use]
    pub fn get(&self, name: &AccountName) -> Option<Arc<Account>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(name.as_str()).cloned()
    }

    /// The account of that name; `None` if it does not exist.
    ///
    /// # Errors
    /// [`Unread`] when it is in doubt, or is not known and may be in a part of the list that could
    /// not be read.
    pub fn find(&self, name: &AccountName) -> Result<Option<Arc<Account>>, Unread> {
        // Locked until the end: accounts are cached before their part counts as read.
        let unknown = self.unknown.read().unwrap_or_else(PoisonError::into_inner);
        match (self.get(name), unknown.of(name)) {
            (None, Some(unread)) => Err(unread),
            (known, _) => Ok(known),
        }
    }

    /// The account of that number (`OwnerIds::number`).
    ///
    /// # Errors
    /// [`Unread`], as [`Self::find`].
    pub fn find_number(&self, number: &str) -> Result<Option<Arc<Account>>, Unread> {
        let unknown = self.unknown.read().unwrap_or_else(PoisonError::into_inner);
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        // If two accounts have the same number, the first by name.
        let found = known.values().filter(|account| account.number == number);
        match (found.min_by_key(|account| &account.name).cloned(), unknown.any()) {
            (None, Some(unread)) => Err(unread),
            (found, _) => Ok(found),
        }
    }

    /// Whether no account is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// The parts of the list of accounts that could not be read yet.
    #[must_use]
    pub fn unread(&self) -> Vec<Unread> {
        self.unknown.read().unwrap_or_else(PoisonError::into_inner).parts.clone()
    }

    /// The accounts in doubt.
    #[must_use]
    pub fn in_doubt(&self) -> Vec<AccountName> {
        let unknown = self.unknown.read().unwrap_or_else(PoisonError::into_inner);
        unknown.in_doubt.keys().cloned().collect()
    }

    /// Sets the parts of the list of accounts that are not read. All accounts of other parts are
    /// cached.
    pub fn set_unread(&self, unread: Vec<Unread>) {
        self.unknown.write().unwrap_or_else(PoisonError::into_inner).parts = unread;
    }

    /// Waits until an account gets in doubt.
    pub async fn doubted(&self) {
        self.doubted.notified().await;
    }

    /// Delays [`Self::refresh`] while the guard lives, so that accounts read under it never replace
    /// newer ones.
    pub async fn keep_refreshes_out(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.refreshing).lock_owned().await
    }

    /// All accounts, in no order.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Account>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The name of the account with this id.
    #[must_use]
    pub fn name_of(&self, id: AccountId) -> Option<AccountName> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.values().find(|account| account.id == id).map(|account| account.name.clone())
    }

    /// Renews the cache after a change of an account's row that ended with `answer`, and returns
    /// that. Without an answer the account is in doubt: a partition that stops still answers reads,
    /// and when it opens again the change may have happened.
    ///
    /// # Errors
    /// That of the change, or else of [`Self::refresh`].
    pub async fn refresh_after<T>(
        &self,
        router: &Router,
        name: &AccountName,
        answer: Result<T, Error>,
    ) -> Result<T, Error> {
        match answer {
            Err(error @ (Error::Refused(_) | Error::Overloaded | Error::Full(_))) => Err(error),
            Ok(answer) => self.refresh(router, name).await.map(|()| answer),
            Err(
                error @ (Error::WrongPartition
                | Error::Corrupt(_)
                | Error::Unavailable(_)
                | Error::NoAnswer(_)),
            ) => {
                let _one_at_a_time = self.refreshing.lock().await;
                self.doubt(router, name);
                Err(error)
            }
        }
    }

    /// Reads an account's row again; later requests see it. An account that was deleted, or has no
    /// usable keys any more, is removed. One whose row cannot be read is in doubt.
    ///
    /// # Errors
    /// The index's. [`Error::Unavailable`] for an account in doubt.
    pub async fn refresh(&self, router: &Router, name: &AccountName) -> Result<(), Error> {
        let _one_at_a_time = self.refreshing.lock().await;
        // The code that ends the doubt knows whether the keys come from the configuration.
        if let Err(unread) = self.find(name)
            && unread.in_doubt
        {
            return Err(unread.into());
        }
        let record = match router.ask(ReadAccount(name.clone())).await {
            Err(Error::Refused(Refused::AccountNotFound)) => {
                self.forget(name);
                return Err(Refused::AccountNotFound.into());
            }
            Err(error) => {
                self.doubt(router, name);
                return Err(error);
            }
            Ok(record) => record,
        };
        let configured = self.get(name).filter(|old| old.configured);
        let account = match configured {
            Some(old) => {
                Account::new(name.clone(), old.keys.clone(), record, &self.secrets).map(Some)
            }
            None => Account::stored(name.clone(), record, &self.secrets),
        };
        match account {
            Ok(Some(account)) => self.put(account),
            Ok(None) => self.forget(name),
            Err(error) => {
                self.forget(name);
                return Err(Error::damaged_rows(format!("a secret of account {name}: {error}")));
            }
        }
        Ok(())
    }

    /// Stops serving an account until [`Self::decided`]: its keys and roles may have been revoked.
    pub fn doubt(&self, router: &Router, name: &AccountName) {
        let key = RoutingKey::account(name);
        // A map has an owner for every key.
        let partition = router.map().owner(key.as_bytes()).map_or(PartitionId::new(0), |it| it.id);
        let high = RoutingKey::after_prefix(key.as_bytes()).map(RoutingKey::from_bytes);
        let unread = Unread { keys: KeyRange::new(key, high), partition, in_doubt: true };
        let mut unknown = self.unknown.write().unwrap_or_else(PoisonError::into_inner);
        unknown.in_doubt.insert(name.clone(), unread);
        drop(unknown);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.remove(name.as_str());
        self.access_keys.replace(name, &Users::default());
        self.doubted.notify_one();
        tracing::warn!(account = %name, "the account is not served while a change has no answer");
    }

    /// Puts an account in doubt when it is dropped, unless the change has ended.
    #[must_use]
    pub fn doubt_unless_ended<'a>(
        &'a self,
        router: &'a Router,
        name: &'a AccountName,
    ) -> UnlessEnded<'a> {
        UnlessEnded { accounts: self, router, name, ended: false }
    }

    /// Ends the doubt about an account, after it was put here or forgotten.
    pub fn decided(&self, name: &AccountName) {
        let mut unknown = self.unknown.write().unwrap_or_else(PoisonError::into_inner);
        unknown.in_doubt.remove(name);
    }

    /// Removes an account.
    pub fn forget(&self, name: &AccountName) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.remove(name.as_str());
        self.access_keys.replace(name, &Users::default());
        self.metrics.forget(name);
        self.user_metrics.keep(name, |_| false);
    }

    /// Adds an account, or replaces the one of the same name.
    pub fn put(&self, mut account: Account) {
        let configured = self.configured_users.iter();
        let configured = configured.filter(|user| user.account == account.name);
        configured.for_each(|user| account.users.add(user));
        let name = account.name.as_str().to_owned();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let traffic = self.metrics.of(&account.name);
        self.access_keys.replace(&account.name, &account.users);
        self.user_metrics.keep(&account.name, |user| account.users.has(user));
        known.insert(name, Arc::new(Account { traffic, ..account }));
    }
}

/// A change of an account. The account is in doubt if this is dropped before the change has ended.
#[derive(Debug)]
pub struct UnlessEnded<'a> {
    accounts: &'a Accounts,
    router: &'a Router,
    name: &'a AccountName,
    ended: bool,
}

impl UnlessEnded<'_> {
    /// The change has ended, and the cache is renewed.
    pub fn ended(mut self) {
        self.ended = true;
    }
}

impl Drop for UnlessEnded<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.accounts.doubt(self.router, self.name);
        }
    }
}

#[cfg(test)]
mod tests;
