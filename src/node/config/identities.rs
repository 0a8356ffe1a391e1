//! The accounts and users of a configuration, from flags, variables and the account file.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::account_file;
use super::accounts::AccountConfig;
use super::accounts::AccountText;
use super::development::DevelopmentAccount;
use super::error::ConfigError;
use super::settings::Settings;
use super::users::UserConfig;
use super::users::UserText;

/// The given settings.
#[derive(Debug, Default)]
pub(super) struct GivenIdentities {
    /// `--account`.
    pub(super) accounts: Option<Vec<AccountText>>,
    /// `AZURITE_ACCOUNTS`: accounts for development.
    pub(super) azurite_accounts: Option<Vec<AccountText>>,
    /// `--user`.
    pub(super) users: Option<Vec<UserText>>,
    /// `--account-file`.
    pub(super) file: Option<PathBuf>,
}

impl GivenIdentities {
    /// Takes them out of the settings.
    pub(super) fn take(s: &mut Settings) -> Self {
        Self {
            accounts: s.account.take(),
            azurite_accounts: s.azurite_accounts.take(),
            users: s.user.take(),
            file: s.account_file.take(),
        }
    }
}

/// The accounts and users of a configuration.
#[derive(Debug)]
pub(super) struct Identities {
    pub(super) accounts: Vec<AccountConfig>,
    pub(super) users: Vec<UserConfig>,
}

impl Identities {
    /// Reads and checks them for listeners at these addresses.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub(super) fn read(
        given: GivenIdentities,
        listen: &[SocketAddr],
        development: Option<DevelopmentAccount>,
    ) -> Result<Self, ConfigError> {
        let file = given.file.as_deref().map(account_file::read).transpose()?;
        let has_file = file.is_some();
        let file = file.unwrap_or_default();
        let users = given.users.unwrap_or_default().into_iter().map(|text| text.parse());
        let mut users = users.collect::<Result<Vec<_>, _>>()?;
        users.extend(file.users);
        UserConfig::check_all(&users)?;
        let mut accounts = Vec::new();
        for text in given.accounts.unwrap_or_default() {
            accounts.push(text.parse()?);
        }
        for text in given.azurite_accounts.unwrap_or_default() {
            accounts.push(text.parse_development().map_err(ConfigError::AzuriteAccounts)?);
        }
        accounts.extend(file.accounts);
        let reach = Reach { listen, development };
        Ok(Self { accounts: reach.check(accounts, has_file)?, users })
    }
}

/// The clients that can reach the accounts.
#[derive(Clone, Copy)]
struct Reach<'a> {
    /// The addresses of the listeners that serve them.
    listen: &'a [SocketAddr],
    development: Option<DevelopmentAccount>,
}

impl Reach<'_> {
    fn check(
        self,
        mut accounts: Vec<AccountConfig>,
        has_file: bool,
    ) -> Result<Vec<AccountConfig>, ConfigError> {
        let is_reachable = |address: &&SocketAddr| !address.ip().to_canonical().is_loopback();
        let reachable = self.listen.iter().find(is_reachable).copied();
        let is_anywhere = self.development == Some(DevelopmentAccount::Anywhere);
        let is_loopback = self.development == Some(DevelopmentAccount::Loopback);
        let reachable = reachable.filter(|_| !is_anywhere);
        if !has_file && accounts.is_empty() && reachable.is_none() {
            // On other addresses the accounts created while a node ran may suffice; the start
            // checks that.
            accounts.push(AccountConfig::development());
        }
        let mut names = BTreeSet::new();
        for account in &accounts {
            let name = account.name().as_str().to_owned();
            // Those of `AZURITE_ACCOUNTS` say that they are for development.
            let is_refused = match account.is_for_development() {
                true => is_loopback,
                false => account.is_public(),
            };
            if let Some(listen) = reachable.filter(|_| is_refused) {
                return Err(ConfigError::PublicAccount { account: name, listen });
            }
            if !names.insert(name.clone()) {
                return Err(ConfigError::AccountTwice(name));
            }
        }
        Ok(accounts)
    }
}
