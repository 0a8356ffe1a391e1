//! Users of accounts in the configuration.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::Deserialize;
use thiserror::Error;

use crate::auth::S3Secrets;
use crate::frontend::accounts::ConfiguredUser;
use crate::frontend::accounts::User;
use crate::types::AccessKeyId;
use crate::types::AccountName;
use crate::types::OwnerIds;
use crate::types::UserName;

/// The lengths of a secret.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 16..=128;

/// Why a user is refused. Never shows a secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UserError {
    /// Not of the form.
    #[error(
        "a user is written ACCOUNT/NAME:KEYID:SECRET or ACCOUNT/NAME:KEYID:SECRET:KEYID2:SECRET2"
    )]
    Shape,
    /// The account's name breaks the rule.
    #[error("`{0}` is not an account name: 3 to 24 lower-case letters and digits")]
    Account(String),
    /// The user's name breaks the rule.
    #[error("`{0}` is not a user name: 1 to 64 letters, digits and +=,.@_-")]
    Name(String),
    /// An id breaks the rule.
    #[error(
        "user {0}: an access key id has 3 to 128 letters, digits and ._- and is not an account name"
    )]
    AccessKeyId(String),
    /// A secret breaks the rule.
    #[error("user {0}: a secret key has 16 to 128 printable characters of ASCII")]
    SecretKey(String),
    /// Two users have the same name.
    #[error("user {0} is configured twice; a second key goes behind the first")]
    Twice(String),
    /// Two keys have the same id.
    #[error("the access key id {0} is configured twice")]
    AccessKeyTwice(String),
}

/// An unparsed user, as [`super::accounts::AccountText`].
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct UserText(String);

impl UserText {
    /// Parses it.
    ///
    /// # Errors
    /// [`UserError`].
    pub fn parse(&self) -> Result<UserConfig, UserError> {
        self.0.parse()
    }
}

impl FromStr for UserText {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for UserText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserText(..)")
    }
}

/// A configured user and its one or two access keys. Its `Debug` shows no secret.
#[derive(Clone, PartialEq, Eq)]
pub struct UserConfig {
    account: AccountName,
    name: UserName,
    keys: Vec<Key>,
}

#[derive(Clone, PartialEq, Eq)]
struct Key {
    id: AccessKeyId,
    secret: String,
}

impl UserConfig {
    /// The account.
    #[must_use]
    pub const fn account(&self) -> &AccountName {
        &self.account
    }

    /// Checks that no two users have the same name, and no two keys the same id.
    ///
    /// # Errors
    /// [`UserError::Twice`], [`UserError::AccessKeyTwice`].
    pub(super) fn check_all(users: &[Self]) -> Result<(), UserError> {
        let (mut names, mut ids) = (BTreeSet::new(), BTreeSet::new());
        for user in users {
            if !names.insert(user.to_string()) {
                return Err(UserError::Twice(user.to_string()));
            }
            if let Some(key) = user.keys.iter().find(|key| !ids.insert(&key.id)) {
                return Err(UserError::AccessKeyTwice(key.id.as_str().to_owned()));
            }
        }
        Ok(())
    }

    /// The user, as the front end serves it.
    #[must_use]
    pub fn configured(&self) -> ConfiguredUser {
        let user = User {
            name: self.name.clone(),
            display: self.name.as_str().to_owned(),
            canonical: OwnerIds::of_configured_user(&self.account, &self.name),
            configured: true,
        };
        let keys = self.keys.iter();
        let keys = keys.map(|key| (key.id.clone(), S3Secrets::new(&[&key.secret])));
        let (account, user) = (self.account.clone(), Arc::new(user));
        ConfiguredUser { account, user, keys: keys.collect() }
    }
}

impl fmt::Display for UserConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.account, self.name)
    }
}

impl fmt::Debug for UserConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UserConfig({self}, {} keys)", self.keys.len())
    }
}

impl FromStr for UserConfig {
    type Err = UserError;

    fn from_str(text: &str) -> Result<Self, UserError> {
        let (place, keys) = text.split_once(':').ok_or(UserError::Shape)?;
        let (account, name) = place.split_once('/').ok_or(UserError::Shape)?;
        let account = AccountName::new(account).map_err(|_| UserError::Account(account.into()))?;
        let name = UserName::new(name).map_err(|_| UserError::Name(name.into()))?;
        let parts: Vec<&str> = keys.split(':').collect();
        let key = |id: &str, secret: &str| {
            let id = AccessKeyId::new(id).map_err(|_| UserError::AccessKeyId(place.into()))?;
            let is_printable = secret.bytes().all(|byte| byte.is_ascii_graphic());
            if !SECRET_BYTES.contains(&secret.len()) || !is_printable {
                return Err(UserError::SecretKey(place.into()));
            }
            Ok(Key { id, secret: secret.to_owned() })
        };
        let keys = match parts.as_slice() {
            [id, secret] => vec![key(id, secret)?],
            [id, secret, id2, secret2] => vec![key(id, secret)?, key(id2, secret2)?],
            _ => return Err(UserError::Shape),
        };
        Ok(Self { account, name, keys })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "a/secret+of=enough";

    #[test]
    fn a_user_is_written_with_one_or_two_keys() {
        let user: UserConfig = format!("acct/u@x:KEY:{SECRET}:KEY2:{SECRET}").parse().unwrap();
        assert_eq!(format!("{user:?}"), "UserConfig(acct/u@x, 2 keys)");
        let made = user.configured();
        assert_eq!(
            made.keys.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(),
            ["KEY", "KEY2"]
        );
        assert!(made.user.configured && made.user.canonical.len() == 64);
        assert!(!format!("{made:?}").contains("secret"), "{made:?}");
        for bad in [
            "acct".to_owned(),
            format!("acct:KEY:{SECRET}"),
            format!("A/u:KEY:{SECRET}"),
            format!("acct/u v:KEY:{SECRET}"),
            "acct/u:KEY".to_owned(),
            "acct/u:KEY:short".to_owned(),
            format!("acct/u:account:{SECRET}"),
            format!("acct/u:KEY:{SECRET}:KEY2"),
            format!("acct/u:KEY:{SECRET}:KEY2:{SECRET}:KEY3:{SECRET}"),
        ] {
            let error = bad.parse::<UserConfig>().unwrap_err();
            assert!(!error.to_string().contains("a/secret"), "{error}");
        }
    }

    #[test]
    fn names_and_ids_are_there_once() {
        let user = |text: &str| format!("{text}:{SECRET}").parse::<UserConfig>().unwrap();
        let check = |a, b| UserConfig::check_all(&[user(a), user(b)]);
        assert_eq!(check("acct/a:KEY1", "acct/b:KEY2"), Ok(()));
        assert_eq!(check("acct/a:KEY1", "other/a:KEY2"), Ok(()));
        let twice = UserError::Twice("acct/a".to_owned());
        assert_eq!(check("acct/a:KEY1", "acct/a:KEY2"), Err(twice));
        let twice = UserError::AccessKeyTwice("KEY1".to_owned());
        assert_eq!(check("acct/a:KEY1", "other/b:KEY1"), Err(twice));
    }
}
