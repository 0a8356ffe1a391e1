//! Changes and pages of accounts.

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::index::record::AccountRecord;
use crate::index::record::ScopeRecord;
use crate::index::record::UserRecord;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::AccountType;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::RoleAssignment;
use crate::types::RoutingKey;
use crate::types::Secret;
use crate::types::ServicePropertiesChange;
use crate::types::UserName;

/// A change of an account's row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccountChange {
    /// Set Blob Service Properties.
    Properties(Box<ServicePropertiesChange>),
    /// Replaces its shared keys: first and second, decoded and sealed; none when they come from the
    /// configuration.
    Keys(Vec<Secret>),
    /// Whether its containers may have public access.
    Anonymous(bool),
    /// Whether its containers keep versions, unless they say so themselves.
    Versioning(bool),
    /// The days for which deleted containers can be restored; `None`: not at all.
    ContainerRetention(Option<u32>),
    /// Whether new containers have object lock, where versions are kept.
    ObjectLock(bool),
    /// Its kind and SKU.
    Type(AccountType),
    /// Replaces what its user delegation keys are derived from, which revokes them all.
    DelegationSecret(Secret),
    /// Puts other sealings of the same secrets in the place of those that are still there.
    Reseal(Vec<(Secret, Secret)>),
    /// Gives a role; one that is given already changes nothing. The caller holds the number of them
    /// to [`AccountRecord::ASSIGNMENTS_MAX`].
    Assign(RoleAssignment),
    /// Removes a role assignment; a missing one is ignored.
    Unassign(RoleAssignment),
    /// Adds a user, or replaces the one of the same name. Times that are zero are set. The caller
    /// holds the number of them to [`AccountRecord::USERS_MAX`], and ids of access keys unique.
    PutUser(Box<UserRecord>),
    /// Removes a user and its roles; one that is not there changes nothing.
    RemoveUser(UserName),
    /// Adds an encryption scope with a key; one that is there keeps its key. A time that is zero is
    /// set. The caller holds the number of them to [`AccountRecord::SCOPES_MAX`].
    AddScope(Box<ScopeRecord>),
    /// Enables or disables an encryption scope; one that is not there changes nothing.
    SwitchScope {
        /// Its name.
        name: String,
        /// Whether content under it may be read and written.
        enabled: bool,
    },
}

/// Makes an account with all that it has, or gives that to the one that has this id. One of another
/// id is not found: the secrets are not sealed for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetUpAccount {
    /// The name.
    pub name: AccountName,
    /// A fresh id, or that of the account.
    pub id: AccountId,
    /// Its shared keys, decoded and sealed for its id.
    pub keys: Vec<Secret>,
    /// The secret from which its user delegation keys are derived, sealed for its id.
    pub delegation_secret: Secret,
    /// Whether its containers may have public access.
    pub anonymous: bool,
    /// Its kind and SKU.
    pub account_type: AccountType,
}

/// A page of all accounts, in name order, as far as this partition reaches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListAccounts {
    /// Where to go on: `next` of the page before.
    pub from: Option<Bytes>,
    /// Entries at most, above 0.
    pub limit: usize,
}

impl ListAccounts {
    /// The position the page starts at, by which it is routed.
    #[must_use]
    pub fn position(&self) -> Bytes {
        let table = (AccountId::new(0), ContainerId::new(0));
        let start = RoutingKey::prefix(table.0, table.1, "", Collation::Utf8);
        self.from.clone().map_or(start.clone(), |from| from.max(start))
    }
}

/// An account in a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountEntry {
    /// The name as its row has it: the caller reports one that is not valid.
    pub name: String,
    /// The record.
    pub record: AccountRecord,
}

/// A page of accounts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountPage {
    /// In name order.
    pub entries: Vec<AccountEntry>,
    /// Where to go on, possibly in the next partition; `None` at the end.
    pub next: Option<Bytes>,
}
