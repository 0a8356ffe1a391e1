//! What an account of scenario `credentials` has, and what a change makes of it.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use blockyard::admin::KeySlot;
use blockyard::auth::AccountKeys;
use blockyard::frontend::accounts::Account;
use blockyard::types::UserName;

pub(crate) const USERS: [&str; 3] = ["ann", "bob", "eve"];

/// What an account has: what is served, and what the row says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) keys: Vec<String>,
    /// The access keys of each user, the first one first.
    pub(crate) users: BTreeMap<&'static str, Vec<String>>,
    /// The users that are readers.
    pub(crate) readers: BTreeSet<&'static str>,
}

/// A change, as the operator asks for it.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Rotate(KeySlot, String),
    CreateUser(&'static str, String),
    RotateUser(&'static str, KeySlot, String),
    DeleteUser(&'static str),
    Grant(&'static str),
    Revoke(&'static str),
}

fn replace(keys: &mut Vec<String>, slot: KeySlot, new: &str) {
    match slot {
        KeySlot::First => keys[0] = new.to_owned(),
        KeySlot::Second => {
            keys.truncate(1);
            keys.push(new.to_owned());
        }
    }
}

impl Change {
    /// The id of the access key that it makes.
    pub(crate) fn access_key(&self) -> Option<&str> {
        match self {
            Self::CreateUser(_, id) | Self::RotateUser(_, _, id) => Some(id),
            Self::Rotate(..) | Self::DeleteUser(_) | Self::Grant(_) | Self::Revoke(_) => None,
        }
    }
}

impl State {
    /// What the front end serves of an account, as far as it is of these keys and ids.
    pub(crate) fn served(account: &Account, keys: &[String], ids: &[String]) -> Self {
        let keys = keys.iter().filter(|key| accepts(account, key)).cloned().collect();
        let mut users: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        for user in USERS {
            let name = UserName::new(user).unwrap();
            let own = |id: &&String| account.users.key(id).is_some_and(|key| key.user.name == name);
            if account.users.get(&name).is_some() {
                users.insert(user, ids.iter().filter(own).cloned().collect());
            }
        }
        let is_reader =
            |user: &&&str| account.assignments.iter().any(|one| one.principal == **user);
        let readers = USERS.iter().filter(is_reader).copied().collect();
        Self { keys, users, readers }
    }

    /// Whether a user has the access key of this id.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.users.values().flatten().any(|own| own == id)
    }

    /// The state after a change; `None` if the change is refused.
    pub(crate) fn after(&self, change: &Change) -> Option<Self> {
        let mut state = self.clone();
        match change {
            Change::Rotate(slot, key) => replace(&mut state.keys, *slot, key),
            Change::CreateUser(user, id) => {
                if state.users.insert(user, vec![id.clone()]).is_some() {
                    return None;
                }
            }
            Change::RotateUser(user, slot, id) => replace(state.users.get_mut(user)?, *slot, id),
            Change::DeleteUser(user) => {
                state.users.remove(user)?;
                state.readers.remove(user);
            }
            Change::Grant(user) => {
                state.users.get(user)?;
                state.readers.insert(user);
            }
            Change::Revoke(user) => {
                if !state.readers.remove(user) {
                    return None;
                }
            }
        }
        Some(state)
    }

    /// The same without the order of access keys, as far as it is seen in what is served.
    pub(crate) fn shown(&self) -> Self {
        let mut shown = self.clone();
        shown.keys.sort();
        shown.users.values_mut().for_each(|ids| ids.sort());
        shown
    }
}

/// Whether the account takes what is signed with this key.
fn accepts(found: &Account, key: &str) -> bool {
    let signature = AccountKeys::new(&[key]).unwrap().sign(b"a request");
    let signature = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, signature).unwrap();
    found.keys.verify(b"a request", &signature)
}
