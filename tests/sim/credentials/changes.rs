//! Changes of an account, one at a time, and what their answers say.

use blockyard::admin::AssigneeKind;
use blockyard::admin::AssignmentView;
use blockyard::admin::KeySlot;
use blockyard::admin::NewKey;
use blockyard::admin::NewUser;
use blockyard::admin::StoreError;
use blockyard::index::Error;

use super::*;
use crate::credential_state::Change;
use crate::credential_state::USERS;

/// An operator makes no more changes once an account may be in more states than this.
const POSSIBLE_MAX: usize = 16;

impl Session<'_> {
    pub(super) fn new_key(&self) -> String {
        let mut world = self.world.borrow_mut();
        let key = format!("a2V5IG51bWJlciBvZiBhbiBhY2NvdW50{:08}", world.keys.len());
        world.keys.push(key.clone());
        key
    }

    /// A new id of an access key, or one that is or was in use.
    fn some_id(&self) -> String {
        let mut world = self.world.borrow_mut();
        if self.draw.percent(15)
            && let Some(old) = self.draw.one(&world.ids)
        {
            return old.clone();
        }
        let id = format!("BYSIMULATED{:09}", world.ids.len());
        world.ids.push(id.clone());
        id
    }

    fn some_change(&self) -> Change {
        let user = *self.draw.one(&USERS).unwrap();
        let slot = *self.draw.one(&[KeySlot::First, KeySlot::Second]).unwrap();
        match self.draw.between(0, 9) {
            0 => Change::Rotate(slot, self.new_key()),
            1..=3 => Change::CreateUser(user, self.some_id()),
            4..=5 => Change::RotateUser(user, slot, self.some_id()),
            6 => Change::DeleteUser(user),
            7..=8 => Change::Grant(user),
            _ => Change::Revoke(user),
        }
    }

    pub(super) async fn operator(&self, name: &'static str, steps: u64) -> Result<(), Violation> {
        for _ in 0..steps {
            self.pause(50).await;
            if self.is_down() || self.know(name, |known| known.possible.len() > POSSIBLE_MAX) {
                return Ok(());
            }
            self.change(name, self.some_change()).await?;
        }
        Ok(())
    }

    /// Makes a change and notes what its answer says.
    async fn change(&self, name: &'static str, change: Change) -> Result<(), Violation> {
        let before = self.world.borrow().accounts[name].possible.clone();
        let coming: Vec<State> = before.iter().filter_map(|state| state.after(&change)).collect();
        let was_running = self.know(name, |known| {
            known.coming.clone_from(&coming);
            known.changes += 1;
            std::mem::replace(&mut known.running, true)
        });
        let given_up = Duration::from_millis(self.draw.between(0, 12));
        let patience = if self.draw.percent(15) { given_up } else { Duration::from_secs(600) };
        let asked = tokio::time::timeout(patience, self.ask(name, &change)).await;
        let Ok(answer) = asked else {
            self.counts.add("changes given up", 1);
            self.no_answer(name, before, coming);
            return Ok(());
        };
        self.know(name, |known| {
            known.coming.clear();
            known.running = was_running && answer.is_err();
        });
        let failed = |why: &str| Err(format!("{name}: {change:?}: {why}; it may be {before:#?}"));
        let possible = match answer {
            Ok(()) if coming.is_empty() => return failed("done, although it had to be refused"),
            Ok(()) => {
                if let Some(id) = change.access_key()
                    && self.is_anothers(name, id)
                {
                    return failed("two users have the same access key");
                }
                self.counts.add("changes", 1);
                coming
            }
            Err(StoreError::AccessKeyTaken(_)) if self.may_be_taken(&change) => before,
            Err(
                StoreError::UserExists(..) | StoreError::NoUser(..) | StoreError::NoAssignment(_),
            ) => {
                if before.iter().all(|state| state.after(&change).is_some()) {
                    return failed("refused, although it could be made");
                }
                self.counts.add("changes refused", 1);
                before
            }
            Err(StoreError::Index(Error::Overloaded | Error::Full(_))) => before,
            Err(StoreError::Index(_)) if self.excused() => {
                self.counts.add("changes without an answer", 1);
                self.no_answer(name, before, coming);
                return self.look(name).map_err(|why| format!("after {change:?}: {why}"));
            }
            Err(error) => return failed(&error.to_string()),
        };
        self.know(name, |known| known.possible = possible);
        self.look(name).map_err(|why| format!("after {change:?}: {why}"))
    }

    /// A change was sent and has no answer: it was made, will be made or never is.
    fn no_answer(&self, name: &'static str, before: Vec<State>, coming: Vec<State>) {
        let mut possible = before;
        for state in coming {
            if !possible.contains(&state) {
                possible.push(state);
            }
        }
        self.know(name, |known| *known = Known { possible, coming: Vec::new(), ..known.clone() });
    }

    async fn ask(&self, name: &str, change: &Change) -> Result<(), StoreError> {
        let new = |id: &String| (Some(id.clone()), Some(format!("secret/of+{id}")));
        let reader = |user: &str| AssignmentView {
            role: "reader".to_owned(),
            kind: AssigneeKind::User,
            principal: user.to_owned(),
            issuer: None,
            container: None,
        };
        let admin = &self.admin;
        match change {
            Change::Rotate(slot, key) => {
                admin.rotate(name, *slot, Some(key.clone())).await.map(drop)
            }
            Change::CreateUser(user, id) => {
                let (access_key_id, secret_key) = new(id);
                let name_of = (*user).to_owned();
                let new = NewUser { name: name_of, display_name: None, access_key_id, secret_key };
                admin.create_user(name, new).await.map(drop)
            }
            Change::RotateUser(user, slot, id) => {
                let (access_key_id, secret_key) = new(id);
                let new = NewKey { access_key_id, secret_key };
                admin.rotate_user(name, user, *slot, new).await.map(drop)
            }
            Change::DeleteUser(user) => admin.delete_user(name, user).await,
            Change::Grant(user) => admin.assign(name, &reader(user)).await.map(drop),
            Change::Revoke(user) => admin.unassign(name, &reader(user)).await.map(drop),
        }
    }

    /// Whether a user of another account has an access key of this id for certain.
    fn is_anothers(&self, name: &str, id: &str) -> bool {
        let world = self.world.borrow();
        let mut others = world.accounts.iter().filter(|(other, _)| **other != name);
        others
            .any(|(_, known)| known.possible.iter().chain(&known.coming).all(|state| state.has(id)))
    }

    fn may_be_taken(&self, change: &Change) -> bool {
        let world = self.world.borrow();
        let mut states =
            world.accounts.values().flat_map(|known| known.possible.iter().chain(&known.coming));
        change.access_key().is_some_and(|id| states.any(|state| state.has(id)))
    }
}
