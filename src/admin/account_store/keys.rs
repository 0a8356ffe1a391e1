//! Keys of accounts: as users send them, as rows store them, as they are shown.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::AccountStore;
use super::AccountView;
use super::Endpoints;
use super::StoreError;
use crate::admin::keygen::new_delegation_secret;
use crate::admin::keygen::new_key;
use crate::auth::AccountKeys;
use crate::auth::DEVELOPMENT_KEY;
use crate::auth::KeyError;
use crate::auth::SecretContext;
use crate::frontend::accounts::stored_keys;
use crate::index::AccountRecord;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::Secret;
use crate::types::Versioning;

/// The given key or a new one, decoded.
pub(super) fn decoded(given: Option<String>) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    let text = Zeroizing::new(match given {
        Some(text) => text.trim().to_owned(),
        None => new_key().map_err(|error| StoreError::Random(error.to_string()))?,
    });
    // Refused although the node may be reachable from loopback only: that can change.
    if *text == DEVELOPMENT_KEY {
        return Err(StoreError::Published);
    }
    AccountKeys::new(std::slice::from_ref(&*text))?;
    let bytes = STANDARD.decode(&*text).map_err(|_| KeyError::NotBase64)?;
    Ok(Zeroizing::new(bytes))
}

impl AccountStore {
    /// A key as the account's row stores it.
    pub(super) fn sealed(&self, name: &AccountName, id: AccountId, key: &[u8]) -> Secret {
        self.accounts.secrets().seal(&SecretContext::account_key(name, id), key)
    }

    /// A new secret for user delegation keys, as the account's row stores it.
    pub(super) fn new_delegation(
        &self,
        name: &AccountName,
        id: AccountId,
    ) -> Result<Secret, StoreError> {
        let secret = new_delegation_secret();
        let secret = secret.map_err(|error| StoreError::Random(error.to_string()))?;
        Ok(self.accounts.secrets().seal(&SecretContext::delegation(name, id), &*secret))
    }

    /// The view of an account, with its stored keys when `keys` is set.
    pub(super) fn view(
        &self,
        name: &AccountName,
        record: &AccountRecord,
        keys: bool,
    ) -> Result<AccountView, StoreError> {
        let known = self.accounts.get(name);
        let keys_from = match known {
            Some(account) if account.configured => "configuration",
            Some(_) => "store",
            None => "none",
        };
        let Endpoints { blob: address, http, https } = self.endpoints;
        let schemes = [("http", http), ("https", https)];
        let schemes = schemes.iter().filter(|(_, served)| *served);
        let shown = if keys {
            let keys = stored_keys(name, record, self.accounts.secrets());
            let keys = keys.map_err(|error| StoreError::Sealed(name.as_str().to_owned(), error))?;
            Some(keys.iter().map(|key| key.to_string()).collect())
        } else {
            None
        };
        Ok(AccountView {
            name: name.as_str().to_owned(),
            created: record.created.to_string(),
            keys_from: keys_from.to_owned(),
            sku: record.account_type().sku().as_str().to_owned(),
            kind: record.account_type().kind().as_str().to_owned(),
            anonymous: record.anonymous,
            versioning: record.versioning() == Some(Versioning::Enabled),
            object_lock: record.locks_objects(),
            container_retention_days: record.container_retention_days().unwrap_or(0),
            endpoints: schemes.map(|(s, _)| format!("{s}://{address}/{}", name.as_str())).collect(),
            keys: shown,
        })
    }
}
