//! Accounts of the configuration.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use thiserror::Error;

use crate::auth::AccountKeys;
use crate::auth::KeyError;
use crate::types::AccountName;

pub use crate::auth::DEVELOPMENT_KEY;

/// The well-known development account of Azure's tools.
pub const DEVELOPMENT_NAME: &str = "devstoreaccount1";

/// Why an account is refused. Never shows a key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AccountError {
    /// No colon.
    #[error("an account is written NAME:BASE64KEY or NAME:BASE64KEY:BASE64KEY; the key is missing")]
    Shape,
    /// The name breaks the rule.
    #[error("`{0}` is not an account name: 3 to 24 lower-case letters and digits")]
    Name(String),
    /// A key is refused.
    #[error("account {name}: {error}; `blockyard keygen` prints a good one")]
    Key {
        /// The account.
        name: String,
        /// Why.
        error: KeyError,
    },
}

/// An unparsed account. Parsers of flags and files show values that they refuse, and this has keys,
/// so it is parsed later.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct AccountText(String);

impl AccountText {
    /// Parses it.
    ///
    /// # Errors
    /// [`AccountError`].
    pub fn parse(&self) -> Result<AccountConfig, AccountError> {
        self.0.parse()
    }

    /// Parses an account for development, whose keys may be short.
    ///
    /// # Errors
    /// [`AccountError`].
    pub fn parse_development(&self) -> Result<AccountConfig, AccountError> {
        AccountConfig::read(&self.0, true)
    }

    /// The accounts of the variable `AZURITE_ACCOUNTS`, written `NAME:KEY:KEY2;NAME:KEY`; `None` if
    /// it has none.
    #[must_use]
    pub fn all_of_azurite(variable: Option<OsString>) -> Option<Vec<Self>> {
        let text = variable?.to_string_lossy().into_owned();
        let accounts = text.split(';').map(str::trim).filter(|account| !account.is_empty());
        let accounts: Vec<Self> = accounts.map(|account| Self(account.to_owned())).collect();
        (!accounts.is_empty()).then_some(accounts)
    }

    /// Parses it. The name alone suffices for the development account, whose key is public.
    ///
    /// # Errors
    /// [`AccountError`].
    pub fn parse_public(&self) -> Result<AccountConfig, AccountError> {
        if self.0 == DEVELOPMENT_NAME {
            return Ok(AccountConfig::development());
        }
        self.parse()
    }
}

impl FromStr for AccountText {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for AccountText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountText(..)")
    }
}

/// A configured account: its name and one or two keys. Its `Debug` shows no key.
#[derive(Clone, PartialEq, Eq)]
pub struct AccountConfig {
    name: AccountName,
    keys: Vec<String>,
    for_development: bool,
}

impl AccountConfig {
    /// The well-known development account.
    ///
    /// # Panics
    /// Never: name and key are constants that a test checks.
    #[must_use]
    pub fn development() -> Self {
        let name = AccountName::new(DEVELOPMENT_NAME).expect("a valid name");
        Self { name, keys: vec![DEVELOPMENT_KEY.to_owned()], for_development: false }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &AccountName {
        &self.name
    }

    /// Whether one of its keys is the published one.
    #[must_use]
    pub fn is_public(&self) -> bool {
        self.keys.iter().any(|key| key == DEVELOPMENT_KEY)
    }

    /// Whether it was given as an account for development: its keys may be short, and it is served
    /// on every address and under every host name.
    #[must_use]
    pub const fn is_for_development(&self) -> bool {
        self.for_development
    }

    /// The text of its first key, which is the secret of its S3 access key; empty if it has none.
    #[must_use]
    pub fn first_key(&self) -> &str {
        self.keys.first().map_or("", String::as_str)
    }

    /// The keys, prepared to verify signatures.
    ///
    /// # Errors
    /// [`AccountError::Key`].
    pub fn keys(&self) -> Result<AccountKeys, AccountError> {
        let keys = if self.for_development { AccountKeys::of_any_length } else { AccountKeys::new };
        keys(&self.keys)
            .map_err(|error| AccountError::Key { name: self.name.as_str().to_owned(), error })
    }
}

impl FromStr for AccountConfig {
    type Err = AccountError;

    fn from_str(text: &str) -> Result<Self, AccountError> {
        Self::read(text, false)
    }
}

impl AccountConfig {
    fn read(text: &str, for_development: bool) -> Result<Self, AccountError> {
        let (name, keys) = text.split_once(':').ok_or(AccountError::Shape)?;
        // The part before the colon is a name or a typing error, never a key: base64 has no colon.
        let name = AccountName::new(name).map_err(|_| AccountError::Name(name.to_owned()))?;
        let keys = keys.split(':').map(|key| key.trim().to_owned()).collect();
        let account = Self { name, keys, for_development };
        account.keys()?;
        Ok(account)
    }
}

impl fmt::Debug for AccountConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccountConfig({}, {} keys)", self.name.as_str(), self.keys.len())
    }
}
