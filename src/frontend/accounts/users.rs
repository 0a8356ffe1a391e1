//! Users of accounts, ready to verify signatures, and the accounts of all access keys.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::RwLock;

use crate::auth::S3Secrets;
use crate::auth::SecretContext;
use crate::frontend::accounts::Unread;
use crate::frontend::accounts::unknown::Unknown;
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
    /// The user that has it.
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

    /// Adds a user of the configuration. It replaces a user of the row with the same name.
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
    unknown: Arc<RwLock<Unknown>>,
}

impl AccessKeys {
    /// Without keys yet. `unknown` has the parts of the list of accounts that could not be read.
    pub(super) fn new(unknown: Arc<RwLock<Unknown>>) -> Self {
        Self { owners: Arc::default(), unknown }
    }

    /// The account that has a key; `None` if no account has it.
    ///
    /// # Errors
    /// [`Unread`] when the key is unknown, and may be in a part of the list of accounts that could
    /// not be read.
    pub fn find(&self, id: &str) -> Result<Option<AccountName>, Unread> {
        // Locked until the end: keys are known before their part counts as read.
        let unknown = self.unknown.read().unwrap_or_else(PoisonError::into_inner);
        let owners = self.owners.read().unwrap_or_else(PoisonError::into_inner);
        match (owners.get(id).cloned(), unknown.any()) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::KeyRange;
    use crate::types::PartitionId;

    fn account(name: &str) -> AccountName {
        AccountName::new(name).unwrap()
    }

    fn configured(of: &str, name: &str, ids: &[&str]) -> ConfiguredUser {
        let user = User {
            name: UserName::new(name).unwrap(),
            display: name.to_owned(),
            canonical: format!("of {name}"),
            configured: true,
        };
        let key = |id: &&str| (AccessKeyId::new(id).unwrap(), S3Secrets::new(&["a secret"]));
        let keys = ids.iter().map(key).collect();
        ConfiguredUser { account: account(of), user: Arc::new(user), keys }
    }

    fn users(of: &[ConfiguredUser]) -> Users {
        let mut users = Users::default();
        of.iter().for_each(|user| users.add(user));
        users
    }

    #[test]
    fn the_last_user_of_a_name_counts_with_its_keys_alone() {
        let made = [
            configured("acct", "a", &["KEY1", "KEY2"]),
            configured("acct", "b", &["KEY3"]),
            configured("acct", "a", &["KEY4"]),
        ];
        let users = users(&made);
        assert!(users.key("KEY1").is_none() && users.key("KEY2").is_none());
        assert_eq!(users.key("KEY4").unwrap().user.name.as_str(), "a");
        let shown: Vec<_> =
            users.configured().map(|(user, ids)| (user.name.as_str(), ids)).collect();
        assert_eq!(shown, [("b", vec!["KEY3"]), ("a", vec!["KEY4"])]);
        assert!(users.has("a") && !users.has("c"));
    }

    #[test]
    fn a_key_leads_to_its_account_until_it_is_replaced() {
        let keys = AccessKeys::new(Arc::default());
        let owner = |id: &str| keys.find(id).unwrap().map(|name| name.as_str().to_owned());
        keys.replace(&account("one"), &users(&[configured("one", "a", &["KEY1", "KEY2"])]));
        keys.replace(&account("two"), &users(&[configured("two", "a", &["KEY2", "KEY3"])]));
        assert_eq!(owner("KEY1").as_deref(), Some("one"));
        assert_eq!(owner("KEY2").as_deref(), Some("one"), "the first keeps it");
        assert_eq!(owner("KEY3").as_deref(), Some("two"));
        assert_eq!(owner("KEY4"), None);
        keys.replace(&account("one"), &users(&[configured("one", "a", &["KEY4"])]));
        assert_eq!((owner("KEY1"), owner("KEY2")), (None, None));
        assert_eq!(owner("KEY4").as_deref(), Some("one"));
        keys.replace(&account("one"), &Users::default());
        assert_eq!(owner("KEY4"), None);
    }

    #[test]
    fn while_accounts_are_not_read_an_unknown_key_may_be_one_of_theirs() {
        let partition = PartitionId::new(1);
        let unread = Unread { keys: KeyRange::all(), partition, in_doubt: false };
        let unknown = Unknown { parts: vec![unread.clone()], ..Unknown::default() };
        let unknown = Arc::new(RwLock::new(unknown));
        let keys = AccessKeys::new(Arc::clone(&unknown));
        keys.replace(&account("one"), &users(&[configured("one", "a", &["KEY1"])]));
        assert_eq!(keys.find("KEY2"), Err(unread));
        assert_eq!(keys.find("KEY1"), Ok(Some(account("one"))));
        unknown.write().unwrap().parts.clear();
        assert_eq!(keys.find("KEY2"), Ok(None));
    }
}
