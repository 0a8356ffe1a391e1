//! Users of accounts and their access keys. They are kept in the account's row, and known to the
//! front end before the command is answered.

use std::sync::Arc;

use serde::Deserialize;
use serde::Serialize;
use zeroize::Zeroizing;

use crate::admin::keygen::new_secret_key;
use crate::auth::SecretContext;
use crate::frontend::accounts::User;
use crate::index;
use crate::index::AccountChange;
use crate::index::AccountRecord;
use crate::index::UserKey;
use crate::index::UserRecord;
use crate::types::AccessKeyId;
use crate::types::AccountName;
use crate::types::OwnerIds;
use crate::types::RoleAssignment;
use crate::types::Timestamp;
use crate::types::USER_ISSUER;
use crate::types::UserName;

use super::AccountStore;
use super::KeySlot;
use super::StoreError;
use super::Turn;
use super::parse;

/// The most characters of a display name.
const DISPLAY_CHARS_MAX: usize = 128;
/// The lengths of a secret.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 16..=128;

/// A new access key. The node makes the parts that are left out.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    /// Its id.
    #[serde(default)]
    pub access_key_id: Option<String>,
    /// Its secret.
    #[serde(default)]
    pub secret_key: Option<String>,
}

/// A user to be made.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewUser {
    /// The name.
    pub name: String,
    /// The name that lists of owners show; the name where it is left out.
    #[serde(default)]
    pub display_name: Option<String>,
    /// The id of its first access key.
    #[serde(default)]
    pub access_key_id: Option<String>,
    /// The secret of its first access key.
    #[serde(default)]
    pub secret_key: Option<String>,
}

/// A user as shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserView {
    /// The account.
    pub account: String,
    /// The name.
    pub name: String,
    /// The name that lists of owners show.
    pub display_name: String,
    /// The canonical user id.
    pub canonical_id: String,
    /// Its name in S3's form.
    pub arn: String,
    /// `store` or `configuration`.
    pub keys_from: String,
    /// When it was made, as an HTTP date; a user of the configuration has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub created: Option<String>,
    /// Its access keys: one or two.
    pub access_keys: Vec<AccessKeyView>,
}

/// An access key as shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessKeyView {
    /// Its id.
    pub access_key_id: String,
    /// When it was made, as an HTTP date; a key of the configuration has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub created: Option<String>,
    /// Its secret, if it was requested.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub secret_key: Option<String>,
}

/// An account with its row.
struct Owner {
    name: AccountName,
    record: AccountRecord,
}

impl Owner {
    fn user(&self, name: &UserName) -> Option<&UserRecord> {
        self.record.users().iter().find(|user| user.name == *name)
    }
}

impl AccountStore {
    /// The users of an account, those of the configuration first, without secrets.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn users(&self, account: &str) -> Result<Vec<UserView>, StoreError> {
        let owner = self.owner(account).await?;
        let mut views = self.configured_users(&owner.name);
        for user in owner.record.users() {
            if !views.iter().any(|view| view.name == user.name.as_str()) {
                views.push(self.user_view(&owner, user, false)?);
            }
        }
        Ok(views)
    }

    /// One user, with the secrets of its keys when `keys` is set and the keys are stored.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn user(
        &self,
        account: &str,
        name: &str,
        keys: bool,
    ) -> Result<UserView, StoreError> {
        let (owner, name) = (self.owner(account).await?, user_name(name)?);
        let configured = self.configured_users(&owner.name);
        if let Some(view) = configured.into_iter().find(|view| view.name == name.as_str()) {
            return Ok(view);
        }
        let user = owner.user(&name).ok_or_else(|| no_user(&owner.name, &name))?;
        self.user_view(&owner, user, keys)
    }

    /// Creates a user with the given or a new access key. It can sign requests from now on.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn create_user(&self, account: &str, new: NewUser) -> Result<UserView, StoreError> {
        let name = user_name(&new.name)?;
        let display = new.display_name.unwrap_or_else(|| name.as_str().to_owned());
        let is_shown = |c: char| !c.is_control();
        let length = display.chars().count();
        if !(1..=DISPLAY_CHARS_MAX).contains(&length) || !display.chars().all(is_shown) {
            return Err(StoreError::DisplayName);
        }
        let turn = self.turn().await;
        let owner = self.owner(account).await?;
        self.refuse_configured_user(&owner.name, &name)?;
        if owner.user(&name).is_some() {
            let account = owner.name.as_str().to_owned();
            return Err(StoreError::UserExists(account, name.as_str().to_owned()));
        }
        if owner.record.users().len() >= AccountRecord::USERS_MAX {
            return Err(StoreError::TooManyUsers(owner.name.as_str().to_owned()));
        }
        let key = NewKey { access_key_id: new.access_key_id, secret_key: new.secret_key };
        let key = self.new_user_key(&owner, key)?;
        let is_stale =
            |role: &RoleAssignment| role.issuer == USER_ISSUER && role.principal == name.as_str();
        if owner.record.assignments.iter().any(is_stale) {
            // Roles of a user of that name who was in the configuration before.
            self.change(&turn, &owner.name, AccountChange::RemoveUser(name.clone())).await?;
        }
        // The partition sets the time.
        let (created, keys) = (Timestamp::ZERO, vec![key]);
        let user = UserRecord { name, display, canonical: self.new_canonical(), created, keys };
        self.put_user(&turn, &owner.name, user).await
    }

    /// Replaces one access key by the given or a new one. Requests signed with the old one are
    /// refused from now on.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn rotate_user(
        &self,
        account: &str,
        name: &str,
        slot: KeySlot,
        new: NewKey,
    ) -> Result<UserView, StoreError> {
        let name = user_name(name)?;
        let turn = self.turn().await;
        let owner = self.owner(account).await?;
        self.refuse_configured_user(&owner.name, &name)?;
        let user = owner.user(&name).ok_or_else(|| no_user(&owner.name, &name))?;
        let mut user = user.clone();
        let key = self.new_user_key(&owner, new)?;
        match slot {
            KeySlot::First => match user.keys.first_mut() {
                Some(first) => *first = key,
                None => user.keys.push(key),
            },
            KeySlot::Second => {
                user.keys.truncate(1);
                user.keys.push(key);
            }
        }
        self.put_user(&turn, &owner.name, user).await
    }

    /// Deletes a user and its roles. Requests signed with its keys are refused from now on. Its
    /// buckets stay; the account's root has them.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_user(&self, account: &str, name: &str) -> Result<(), StoreError> {
        let name = user_name(name)?;
        let turn = self.turn().await;
        let owner = self.owner(account).await?;
        self.refuse_configured_user(&owner.name, &name)?;
        owner.user(&name).ok_or_else(|| no_user(&owner.name, &name))?;
        self.change(&turn, &owner.name, AccountChange::RemoveUser(name.clone())).await?;
        tracing::info!(account = owner.name.as_str(), user = name.as_str(), "user deleted");
        Ok(())
    }

    /// Checks that an account has a user, of the configuration or of its row.
    ///
    /// # Errors
    /// [`StoreError::NoUser`].
    pub(super) async fn check_user(
        &self,
        account: &AccountName,
        name: &str,
    ) -> Result<(), StoreError> {
        let (owner, name) = (self.owner(account.as_str()).await?, user_name(name)?);
        let known = self.accounts.get(account);
        let is_known = known.is_some_and(|account| account.users.get(&name).is_some());
        if is_known || owner.user(&name).is_some() {
            return Ok(());
        }
        Err(no_user(&owner.name, &name))
    }

    async fn owner(&self, account: &str) -> Result<Owner, StoreError> {
        let name = parse(account)?;
        let record = self.record(&name).await?;
        Ok(Owner { name, record })
    }

    async fn put_user(
        &self,
        turn: &Turn,
        account: &AccountName,
        user: UserRecord,
    ) -> Result<UserView, StoreError> {
        let name = user.name.clone();
        self.change(turn, account, AccountChange::PutUser(Box::new(user))).await?;
        tracing::info!(account = account.as_str(), user = name.as_str(), "user written");
        self.user(account.as_str(), name.as_str(), true).await
    }

    /// A new canonical user id: random, so that a user that is made again is another one.
    fn new_canonical(&self) -> String {
        let bytes: [u8; 32] = self.accounts.secrets().random();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// A key that no other user of the store has.
    fn new_user_key(&self, owner: &Owner, new: NewKey) -> Result<UserKey, StoreError> {
        let id = match new.access_key_id {
            Some(text) => {
                let id = AccessKeyId::new(&text);
                let id = id.map_err(|_| StoreError::AccessKeyId(text.clone()))?;
                let taken = self.accounts.access_keys().find(id.as_str());
                if taken.map_err(index::Error::from)?.is_some() {
                    return Err(StoreError::AccessKeyTaken(text));
                }
                id
            }
            None => AccessKeyId::of_random(self.accounts.secrets().random()),
        };
        let secret = match new.secret_key {
            Some(secret) => Zeroizing::new(secret),
            None => new_secret_key().map_err(|error| StoreError::Random(error.to_string()))?,
        };
        let is_printable = secret.bytes().all(|byte| byte.is_ascii_graphic());
        if !SECRET_BYTES.contains(&secret.len()) || !is_printable {
            return Err(StoreError::SecretKey);
        }
        let context = SecretContext::user_key(&owner.name, owner.record.id, &id);
        let secret = self.accounts.secrets().seal(&context, secret.as_bytes());
        Ok(UserKey { id, created: Timestamp::ZERO, secret })
    }

    fn refuse_configured_user(
        &self,
        account: &AccountName,
        name: &UserName,
    ) -> Result<(), StoreError> {
        let known = self.accounts.get(account);
        let user = known.as_ref().and_then(|account| account.users.get(name));
        if user.is_some_and(|user| user.configured) {
            let account = account.as_str().to_owned();
            return Err(StoreError::UserConfigured(account, name.as_str().to_owned()));
        }
        Ok(())
    }

    /// The users of an account that the configuration has.
    fn configured_users(&self, account: &AccountName) -> Vec<UserView> {
        let Some(known) = self.accounts.get(account) else { return Vec::new() };
        let view = |(user, ids): (&Arc<User>, Vec<&str>)| {
            let keys = ids.into_iter().map(|id| AccessKeyView {
                access_key_id: id.to_owned(),
                created: None,
                secret_key: None,
            });
            UserView {
                account: account.as_str().to_owned(),
                name: user.name.as_str().to_owned(),
                display_name: user.display.clone(),
                canonical_id: user.canonical.clone(),
                arn: OwnerIds::arn_of_user(account, &user.name),
                keys_from: "configuration".to_owned(),
                created: None,
                access_keys: keys.collect(),
            }
        };
        known.users.configured().map(view).collect()
    }

    fn user_view(
        &self,
        owner: &Owner,
        user: &UserRecord,
        keys: bool,
    ) -> Result<UserView, StoreError> {
        let view = |key: &UserKey| {
            let context = SecretContext::user_key(&owner.name, owner.record.id, &key.id);
            let secret = keys.then(|| self.accounts.secrets().open(&context, &key.secret));
            let sealed = |error| StoreError::Sealed(owner.name.as_str().to_owned(), error);
            let secret = secret.transpose().map_err(sealed)?;
            Ok(AccessKeyView {
                access_key_id: key.id.as_str().to_owned(),
                created: Some(key.created.to_string()),
                secret_key: secret.map(|secret| String::from_utf8_lossy(&secret).into_owned()),
            })
        };
        Ok(UserView {
            account: owner.name.as_str().to_owned(),
            name: user.name.as_str().to_owned(),
            display_name: user.display.clone(),
            canonical_id: user.canonical.clone(),
            arn: OwnerIds::arn_of_user(&owner.name, &user.name),
            keys_from: "store".to_owned(),
            created: Some(user.created.to_string()),
            access_keys: user.keys.iter().map(view).collect::<Result<_, StoreError>>()?,
        })
    }
}

fn user_name(text: &str) -> Result<UserName, StoreError> {
    UserName::new(text).map_err(|_| StoreError::UserName(text.to_owned()))
}

fn no_user(account: &AccountName, name: &UserName) -> StoreError {
    StoreError::NoUser(account.as_str().to_owned(), name.as_str().to_owned())
}
