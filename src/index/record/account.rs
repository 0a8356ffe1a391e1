//! An account.

use serde::{Deserialize, Serialize};

use crate::index::record::AccountFields;
use crate::index::record::ScopeRecord;
use crate::index::record::UserRecord;
use crate::index::record::tagged;
use crate::types::AccountId;
use crate::types::AccountType;
use crate::types::RoleAssignment;
use crate::types::Secret;
use crate::types::ServiceProperties;
use crate::types::Timestamp;
use crate::types::USER_ISSUER;
use crate::types::UserName;
use crate::types::Versioning;

/// An account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountRecord {
    /// Its id in the keys of its rows.
    pub id: AccountId,
    /// When it was created.
    pub created: Timestamp,
    /// Its shared keys, first and second; empty if they come from the configuration.
    pub keys: Vec<Secret>,
    /// Whether its containers may allow anonymous access.
    pub anonymous: bool,
    /// The secret from which user delegation keys are derived; `None` in rows of older releases
    /// until a node starts with them.
    pub delegation_secret: Option<Secret>,
    /// Properties of its Blob service.
    pub properties: ServiceProperties,
    /// The role assignments, beside roles that tokens claim. They are in this row, so that they are
    /// read with the keys, change with the account in one commit and are deleted with it. There are
    /// at most [`Self::ASSIGNMENTS_MAX`].
    pub assignments: Vec<RoleAssignment>,
    /// The tagged fields, if it has any.
    #[serde(with = "tagged::tail")]
    pub fields: Option<Box<AccountFields>>,
}

impl AccountRecord {
    /// The most role assignments of one account. Each takes about 200 bytes, and the row is written
    /// as a whole.
    pub const ASSIGNMENTS_MAX: usize = 1000;
    /// The most users of one account. Each takes about 400 bytes of the row.
    pub const USERS_MAX: usize = 1000;
    /// The most encryption scopes with keys of one account. Each takes about 160 bytes of the row.
    pub const SCOPES_MAX: usize = 1000;

    /// An account without keys and roles.
    #[must_use]
    pub fn new(id: AccountId, created: Timestamp, anonymous: bool) -> Self {
        Self {
            id,
            created,
            keys: Vec::new(),
            anonymous,
            delegation_secret: None,
            properties: ServiceProperties::default(),
            assignments: Vec::new(),
            fields: None,
        }
    }

    /// Its users.
    #[must_use]
    pub fn users(&self) -> &[UserRecord] {
        self.fields.as_ref().map_or(&[], |fields| fields.users.as_slice())
    }

    /// Adds a user, or replaces the one of the same name.
    pub(crate) fn put_user(&mut self, user: UserRecord) {
        let users = &mut self.fields.get_or_insert_default().users;
        match users.iter_mut().find(|kept| kept.name == user.name) {
            Some(kept) => *kept = user,
            None => users.push(user),
        }
    }

    /// Removes a user and the roles that it has.
    pub(in crate::index) fn remove_user(&mut self, name: &UserName) {
        let mut fields = self.fields.take().unwrap_or_default();
        fields.users.retain(|user| user.name != *name);
        self.fields = (*fields != AccountFields::default()).then_some(fields);
        self.assignments
            .retain(|role| role.issuer != USER_ISSUER || role.principal != name.as_str());
    }

    /// Its encryption scopes with keys.
    #[must_use]
    pub fn scopes(&self) -> &[ScopeRecord] {
        self.fields.as_ref().map_or(&[], |fields| fields.scopes.as_slice())
    }

    /// Adds a scope. One that is there keeps its key.
    pub(in crate::index) fn add_scope(&mut self, scope: ScopeRecord) {
        if !self.scopes().iter().any(|kept| kept.name == scope.name) {
            self.change_fields(|fields| fields.scopes.push(scope));
        }
    }

    /// Whether its containers keep versions, unless they say so themselves.
    #[must_use]
    pub fn versioning(&self) -> Option<Versioning> {
        self.fields.as_ref()?.versioning
    }

    /// Switches versions on or off. Where they were never on, nothing is suspended.
    pub(in crate::index) fn set_versioning(&mut self, on: bool) {
        let versioning = match (on, self.versioning()) {
            (true, _) => Versioning::Enabled,
            (false, Some(_)) => Versioning::Suspended,
            (false, None) => return,
        };
        self.fields.get_or_insert_default().versioning = Some(versioning);
    }

    /// Its kind and SKU.
    #[must_use]
    pub fn account_type(&self) -> AccountType {
        self.fields.as_ref().and_then(|fields| fields.account_type).unwrap_or_default()
    }

    /// Whether soft-deleted rows may be removed before they expire.
    #[must_use]
    pub fn permanent_delete(&self) -> bool {
        self.fields.as_ref().is_some_and(|fields| fields.permanent_delete)
    }

    /// The days for which deleted containers can be restored; `None`: not at all.
    #[must_use]
    pub fn container_retention_days(&self) -> Option<u32> {
        self.fields.as_ref()?.container_retention_days
    }

    /// Whether new containers have object lock: where versions are kept.
    #[must_use]
    pub fn locks_objects(&self) -> bool {
        let is_on = self.fields.as_ref().is_some_and(|fields| fields.object_lock);
        is_on && self.versioning() == Some(Versioning::Enabled)
    }

    /// Changes its tagged fields.
    pub(in crate::index) fn change_fields(&mut self, change: impl FnOnce(&mut AccountFields)) {
        let mut fields = self.fields.take().unwrap_or_default();
        change(&mut fields);
        self.fields = (*fields != AccountFields::default()).then_some(fields);
    }

    /// All secrets in it.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let of_users = self.users().iter().flat_map(|user| &user.keys).map(|key| &key.secret);
        let of_scopes = self.scopes().iter().map(|scope| &scope.key);
        self.keys.iter().chain(&self.delegation_secret).chain(of_users).chain(of_scopes)
    }

    /// All secrets in it, mutable.
    pub(in crate::index) fn secrets_mut(&mut self) -> impl Iterator<Item = &mut Secret> {
        let of_fields = self.fields.iter_mut().flat_map(|fields| {
            let AccountFields { users, scopes, .. } = fields.as_mut();
            let of_users = users.iter_mut().flat_map(|user| &mut user.keys);
            let of_users = of_users.map(|key| &mut key.secret);
            of_users.chain(scopes.iter_mut().map(|scope| &mut scope.key))
        });
        self.keys.iter_mut().chain(&mut self.delegation_secret).chain(of_fields)
    }
}
