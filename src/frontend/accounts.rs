//! The accounts this front end serves: names, ids, keys.

use std::collections::HashMap;
use std::sync::Arc;

use crate::auth::AccountKeys;
use crate::types::AccountId;
use crate::types::AccountName;

/// One account.
#[derive(Debug)]
pub struct Account {
    /// The name.
    pub name: AccountName,
    /// Its number in keys.
    pub id: AccountId,
    /// Its signing keys.
    pub keys: AccountKeys,
}

/// All accounts by name; fixed while the server runs.
#[derive(Clone, Debug, Default)]
pub struct Accounts(Arc<HashMap<String, Arc<Account>>>);

impl Accounts {
    /// Collects accounts.
    #[must_use]
    pub fn new(accounts: Vec<Account>) -> Self {
        Self(Arc::new(
            accounts.into_iter().map(|a| (a.name.as_str().to_owned(), Arc::new(a))).collect(),
        ))
    }

    /// The account of that name.
    #[must_use]
    pub fn get(&self, name: &AccountName) -> Option<Arc<Account>> {
        self.0.get(name.as_str()).cloned()
    }
}
