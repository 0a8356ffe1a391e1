//! The accounts this front end serves: a cache of their rows, renewed by whoever changes one.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::RwLock;

use tokio::sync::Mutex;

use crate::auth::AccountKeys;
use crate::frontend::route::Router;
use crate::index::AccountRecord;
use crate::index::Error;
use crate::index::Read;
use crate::index::ReadReply;
use crate::types::AccountId;
use crate::types::AccountName;
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
    /// Whether its containers may be opened to everybody.
    pub anonymous: bool,
    /// Properties of its Blob service.
    pub properties: ServiceProperties,
}

impl Account {
    /// The account of a row, signed for with `keys`.
    #[must_use]
    pub fn new(name: AccountName, keys: AccountKeys, record: AccountRecord) -> Self {
        let AccountRecord { id, anonymous, properties, .. } = record;
        Self { name, id, keys, anonymous, properties }
    }
}

/// All accounts by name; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    known: Arc<RwLock<HashMap<String, Arc<Account>>>>,
    /// Held from reading a row until it is known here, so that an older reading never replaces a newer one.
    refreshing: Arc<Mutex<()>>,
}

impl Accounts {
    /// Collects accounts.
    #[must_use]
    pub fn new(accounts: Vec<Account>) -> Self {
        let made = Self::default();
        accounts.into_iter().for_each(|account| made.put(account));
        made
    }

    /// The account of that name.
    #[must_use]
    pub fn get(&self, name: &AccountName) -> Option<Arc<Account>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(name.as_str()).cloned()
    }

    /// Reads the row of a known account again; requests that are admitted later see it.
    ///
    /// # Errors
    /// The index's.
    pub async fn refresh(&self, router: &Router, name: &AccountName) -> Result<(), Error> {
        let _one_at_a_time = self.refreshing.lock().await;
        let key = RoutingKey::account(name);
        let reply = router.read(key.as_bytes(), Read::Account(name.clone())).await?;
        let (ReadReply::Account(record), Some(old)) = (reply, self.get(name)) else {
            return Err(Error::AccountNotFound);
        };
        self.put(Account::new(name.clone(), old.keys.clone(), record));
        Ok(())
    }

    fn put(&self, account: Account) {
        let name = account.name.as_str().to_owned();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(name, Arc::new(account));
    }
}
