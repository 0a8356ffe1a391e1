//! The accounts this front end serves: a cache of their rows, renewed by whoever changes one.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::RwLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::sync::Mutex;

use crate::auth::AccountKeys;
use crate::auth::DelegationSecret;
use crate::frontend::metrics::AccountMetrics;
use crate::frontend::metrics::Traffic;
use crate::frontend::route::Router;
use crate::index::AccountRecord;
use crate::index::Error;
use crate::index::Read;
use crate::index::ReadReply;
use crate::telemetry::Registry;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::RoleAssignment;
use crate::types::RoutingKey;
use crate::types::ServiceProperties;

/// One account.
#[derive(Clone, Debug)]
pub struct Account {
    /// The name.
    pub name: AccountName,
    /// Its number in keys.
    pub id: AccountId,
    /// Its signing keys.
    pub keys: AccountKeys,
    /// What its user delegation keys are derived from.
    pub delegation: Option<DelegationSecret>,
    /// Whether its containers may be opened to everybody.
    pub anonymous: bool,
    /// Properties of its Blob service.
    pub properties: ServiceProperties,
    /// Who has a role in it.
    pub assignments: Vec<RoleAssignment>,
    /// Whether its keys come from the configuration, whatever the row holds.
    pub configured: bool,
    /// What is counted of it.
    pub(crate) traffic: Arc<Traffic>,
}

impl Account {
    /// The account of a row, signed for with the configuration's `keys`.
    #[must_use]
    pub fn new(name: AccountName, keys: AccountKeys, record: AccountRecord) -> Self {
        let AccountRecord { id, anonymous, delegation_secret, properties, assignments, .. } =
            record;
        let delegation = DelegationSecret::stored(&delegation_secret);
        let (configured, traffic) = (true, Arc::default());
        Self { name, id, keys, delegation, properties, assignments, anonymous, configured, traffic }
    }

    /// The account of a row, signed for with the row's own keys; `None` when it has none that can be used.
    #[must_use]
    pub fn stored(name: AccountName, record: AccountRecord) -> Option<Self> {
        let keys: Vec<String> = record.keys.iter().map(|key| STANDARD.encode(key)).collect();
        let keys = AccountKeys::new(&keys).ok()?;
        Some(Self { configured: false, ..Self::new(name, keys, record) })
    }
}

/// All accounts by name; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    known: Arc<RwLock<HashMap<String, Arc<Account>>>>,
    /// Held from reading a row until it is known here, so that an older reading never replaces a newer one.
    refreshing: Arc<Mutex<()>>,
    metrics: AccountMetrics,
}

impl Accounts {
    /// Collects accounts.
    #[must_use]
    pub fn new(accounts: Vec<Account>) -> Self {
        let made = Self::default();
        accounts.into_iter().for_each(|account| made.put(account));
        made
    }

    /// Shows requests and bytes of each account in `registry`.
    pub fn register(&self, registry: &mut Registry) {
        self.metrics.register(registry);
    }

    /// The account of that name.
    #[must_use]
    pub fn get(&self, name: &AccountName) -> Option<Arc<Account>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(name.as_str()).cloned()
    }

    /// The name of the account that has this number in keys.
    #[must_use]
    pub fn name_of(&self, id: AccountId) -> Option<AccountName> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.values().find(|account| account.id == id).map(|account| account.name.clone())
    }

    /// Reads an account's row again; requests that are admitted later see it. An account that is gone, or has lost its
    /// keys, is forgotten.
    ///
    /// # Errors
    /// The index's.
    pub async fn refresh(&self, router: &Router, name: &AccountName) -> Result<(), Error> {
        let _one_at_a_time = self.refreshing.lock().await;
        let key = RoutingKey::account(name);
        let reply = match router.read(key.as_bytes(), Read::Account(name.clone())).await {
            Err(Error::AccountNotFound) => {
                self.forget(name);
                return Err(Error::AccountNotFound);
            }
            reply => reply?,
        };
        let ReadReply::Account(record) = reply else { return Err(Error::AccountNotFound) };
        let configured = self.get(name).filter(|old| old.configured);
        let account = match configured {
            Some(old) => Some(Account::new(name.clone(), old.keys.clone(), record)),
            None => Account::stored(name.clone(), record),
        };
        match account {
            Some(account) => self.put(account),
            None => self.forget(name),
        }
        Ok(())
    }

    /// Serves an account no longer.
    pub fn forget(&self, name: &AccountName) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.remove(name.as_str());
        self.metrics.forget(name);
    }

    fn put(&self, account: Account) {
        let name = account.name.as_str().to_owned();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let traffic = self.metrics.of(&account.name);
        known.insert(name, Arc::new(Account { traffic, ..account }));
    }
}
