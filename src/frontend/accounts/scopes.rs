//! Encryption scopes of an account that have keys, opened.

use std::collections::HashMap;
use std::sync::Arc;

use crate::auth::SecretContext;
use crate::frontend::secrets::Secrets;
use crate::index::AccountRecord;
use crate::types::AccountName;
use crate::types::CustomerKey;

/// The state of an encryption scope with a key.
#[derive(Clone, Debug)]
pub(crate) enum Scope {
    /// Content under it may be read and written.
    Enabled(CustomerKey),
    /// It may not.
    Disabled,
    /// Its key cannot be opened. The log says why.
    Sealed,
}

/// The encryption scopes of an account that have keys, by name; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Scopes(Option<Arc<HashMap<String, Scope>>>);

impl Scopes {
    /// Those of an account's row.
    pub(super) fn stored(name: &AccountName, record: &AccountRecord, secrets: &Secrets) -> Self {
        if record.scopes().is_empty() {
            return Self(None);
        }
        let opened = record.scopes().iter().map(|scope| {
            if !scope.enabled {
                return (scope.name.clone(), Scope::Disabled);
            }
            let context = SecretContext::scope_key(name, record.id, &scope.name);
            let key = secrets.open(&context, &scope.key);
            let key = key.map_err(|error| error.to_string()).and_then(|key| {
                CustomerKey::from_bytes(&key).ok_or_else(|| "it has not 32 bytes".to_owned())
            });
            let state = key.map_or_else(
                |error| {
                    let scope = &scope.name;
                    tracing::error!(account = %name, scope, error, "a scope's key does not open");
                    Scope::Sealed
                },
                Scope::Enabled,
            );
            (scope.name.clone(), state)
        });
        Self(Some(Arc::new(opened.collect())))
    }

    /// Whether it is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether one of them is disabled.
    pub(crate) fn has_disabled(&self) -> bool {
        let mut all = self.0.iter().flat_map(|scopes| scopes.values());
        all.any(|scope| matches!(scope, Scope::Disabled))
    }

    /// The scope of that name; `None` for a scope without a key.
    pub(crate) fn get(&self, name: &str) -> Option<&Scope> {
        self.0.as_ref()?.get(name)
    }
}
