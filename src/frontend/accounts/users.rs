//! Users of accounts, ready to verify signatures, and the accounts of all access keys.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::RwLock;

use crate::auth::S3Secrets;
use crate::auth::SecretContext;
use crate::frontend::accounts::Unread;
use crate::frontend::secrets::Secrets;
use crate::index::AccountRecord;
use crate::types::AccessKeyId;
use crate::types::AccountName;
use crate::types::UserName;

/// A user of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: UserName,
    /// The name that lists of owners show.
    pub display: String,
    /// The canonical user id.
    pub canonical: String,
    /// Whether it comes from the configuration instead of the account's row.
    pub configured: bool,
}

/// An access key of a user.
#[derive(Clone, Debug)]
pub struct UserKey {
    /// Whose it is.
    pub user: Arc<User>,
    /// Its secret.
    pub secrets: S3Secrets,
}

/// A user of the configuration.
#[derive(Clone, Debug)]
pub struct ConfiguredUser {
    /// The account.
    pub account: AccountName,
    /// The user.
    pub user: Arc<User>,
    /// Its access keys.
    pub keys: Vec<(AccessKeyId, S3Secrets)>,
}

/// The users of an account, and their access keys by id.
#[derive(Clone, Debug, Default)]
pub struct Users {
    users: Vec<Arc<User>>,
    keys: HashMap<String, UserKey>,
}

impl Users {
    /// The users of an account's row. A secret that cannot be opened is left out: the other keys
    /// are served.
    pub(super) fn stored(name: &AccountName, record: &AccountRecord, secrets: &Secrets) -> Self {
        let mut made = Self::default();
        for stored in record.users() {
            let user = Arc::new(User {
                name: stored.name.clone(),
                display: stored.display.clone(),
                canonical: stored.canonical.clone(),
                configured: false,
            });
            for key in &stored.keys {
                let context = SecretContext::user_key(name, record.id, &key.id);
                match secrets.open(&context, &key.secret) {
                    Ok(secret) => {
                        let secrets = S3Secrets::new(&[String::from_utf8_lossy(&secret)]);
                        let key_of = UserKey { user: Arc::clone(&user), secrets };
                        made.keys.insert(key.id.as_str().to_owned(), key_of);
                    }
                    Err(error) => tracing::error!(
                        account = %name, user = %stored.name, access_key_id = %key.id, %error,
                        "an access key is not served"
                    ),
                }
            }
            made.users.push(user);
        }
        made
    }

    /// Adds a user of the configuration. It takes the place of one of the row of the same name.
    pub(super) fn add(&mut self, configured: &ConfiguredUser) {
        let user = &configured.user;
        self.users.retain(|kept| kept.name != user.name);
        self.keys.retain(|_, key| key.user.name != user.name);
        self.users.push(Arc::clone(user));
        for (id, secrets) in &configured.keys {
            let key = UserKey { user: Arc::clone(user), secrets: secrets.clone() };
            self.keys.insert(id.as_str().to_owned(), key);
        }
    }

    /// The access key of that id.
    #[must_use]
    pub fn key(&self, id: &str) -> Option<&UserKey> {
        self.keys.get(id)
    }

    /// The user of that name.
    #[must_use]
    pub fn get(&self, name: &UserName) -> Option<&Arc<User>> {
        self.users.iter().find(|user| user.name == *name)
    }

    /// Whether there is a user of that name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.users.iter().any(|user| user.name.as_str() == name)
    }

    /// Those of the configuration, with the ids of their access keys.
    pub fn configured(&self) -> impl Iterator<Item = (&Arc<User>, Vec<&str>)> {
        self.users.iter().filter(|user| user.configured).map(|user| {
            let own = self.keys.iter().filter(|(_, key)| key.user.name == user.name);
            let mut ids: Vec<&str> = own.map(|(id, _)| id.as_str()).collect();
            ids.sort_unstable();
            (user, ids)
        })
    }
}

/// Which account has an access key, by its id; clones share it.
#[derive(Clone, Default)]
pub struct AccessKeys {
    owners: Arc<RwLock<HashMap<String, AccountName>>>,
    unread: Arc<RwLock<Vec<Unread>>>,
}

impl AccessKeys {
    /// None yet. `unread` are the parts of the list of accounts that are not read.
    pub(super) fn new(unread: Arc<RwLock<Vec<Unread>>>) -> Self {
        Self { owners: Arc::default(), unread }
    }

    /// The account that has a key; `None` when there is no such key.
    ///
    /// # Errors
    /// [`Unread`] when it is not known, and may be in a part of the list of accounts that could not
    /// be read.
    pub fn find(&self, id: &str) -> Result<Option<AccountName>, Unread> {
        // Locked first: keys are known before their range counts as read.
        let unread = self.unread.read().unwrap_or_else(PoisonError::into_inner).first().cloned();
        let owners = self.owners.read().unwrap_or_else(PoisonError::into_inner);
        match (owners.get(id).cloned(), unread) {
            (None, Some(unread)) => Err(unread),
            (known, _) => Ok(known),
        }
    }

    /// Replaces the keys of an account.
    pub(super) fn replace(&self, account: &AccountName, users: &Users) {
        let mut owners = self.owners.write().unwrap_or_else(PoisonError::into_inner);
        owners.retain(|_, owner| owner != account);
        for id in users.keys.keys() {
            if let Some(owner) = owners.get(id) {
                tracing::error!(
                    access_key_id = id, %account, %owner,
                    "two accounts have the same access key id; the key of the first is served"
                );
                continue;
            }
            owners.insert(id.clone(), account.clone());
        }
    }
}

impl fmt::Debug for AccessKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessKeys").finish_non_exhaustive()
    }
}

impl PartialEq for AccessKeys {
    /// Clones are equal.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.owners, &other.owners)
    }
}

impl Eq for AccessKeys {}
