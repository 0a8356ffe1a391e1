//! Encryption scopes with keys of their own. They are kept in the account's row, and known to the
//! front end before the command is answered.

use serde::Deserialize;
use serde::Serialize;

use crate::admin::keygen::new_scope_key;
use crate::auth::SecretContext;
use crate::index::AccountChange;
use crate::index::AccountRecord;
use crate::index::ScopeRecord;
use crate::types::Timestamp;

use super::AccountStore;
use super::StoreError;
use super::parse;

/// An encryption scope as shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeView {
    /// The account.
    pub account: String,
    /// The name.
    pub name: String,
    /// Whether content under it may be read and written.
    pub enabled: bool,
    /// When it was made, as an HTTP date.
    pub created: String,
}

impl AccountStore {
    /// The encryption scopes of an account that have keys.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn scopes(&self, account: &str) -> Result<Vec<ScopeView>, StoreError> {
        let record = self.record(&parse(account)?).await?;
        Ok(record.scopes().iter().map(|scope| view(account, scope)).collect())
    }

    /// Creates an encryption scope with a new random key. Content that is written under its name
    /// from now on is encrypted; older content stays as it is.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn create_scope(&self, account: &str, scope: &str) -> Result<ScopeView, StoreError> {
        let name = parse(account)?;
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if !(3..=63).contains(&scope.len()) || !scope.bytes().all(is_allowed) {
            return Err(StoreError::ScopeName(scope.to_owned()));
        }
        let turn = self.turn().await;
        let record = self.record(&name).await?;
        if record.scopes().iter().any(|kept| kept.name == scope) {
            return Err(StoreError::ScopeExists(account.to_owned(), scope.to_owned()));
        }
        if record.scopes().len() >= AccountRecord::SCOPES_MAX {
            return Err(StoreError::TooManyScopes(account.to_owned()));
        }
        let key = new_scope_key().map_err(|error| StoreError::Random(error.to_string()))?;
        let context = SecretContext::scope_key(&name, record.id, scope);
        let key = self.accounts.secrets().seal(&context, &*key);
        // The partition sets the time.
        let created = Timestamp::ZERO;
        let made = ScopeRecord { name: scope.to_owned(), created, enabled: true, key };
        self.change(&turn, &name, AccountChange::AddScope(Box::new(made))).await?;
        tracing::info!(account, scope, "encryption scope created");
        self.scope(account, scope).await
    }

    /// Enables or disables an encryption scope. While it is disabled, reads and writes of content
    /// under it are refused.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn switch_scope(
        &self,
        account: &str,
        scope: &str,
        enabled: bool,
    ) -> Result<ScopeView, StoreError> {
        let turn = self.turn().await;
        self.scope(account, scope).await?;
        let change = AccountChange::SwitchScope { name: scope.to_owned(), enabled };
        self.change(&turn, &parse(account)?, change).await?;
        tracing::info!(account, scope, enabled, "encryption scope switched");
        self.scope(account, scope).await
    }

    async fn scope(&self, account: &str, scope: &str) -> Result<ScopeView, StoreError> {
        let found = self.scopes(account).await?.into_iter().find(|kept| kept.name == scope);
        found.ok_or_else(|| StoreError::NoScope(account.to_owned(), scope.to_owned()))
    }
}

fn view(account: &str, scope: &ScopeRecord) -> ScopeView {
    ScopeView {
        account: account.to_owned(),
        name: scope.name.clone(),
        enabled: scope.enabled,
        created: scope.created.to_string(),
    }
}
