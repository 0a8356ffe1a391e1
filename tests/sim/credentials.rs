//! Users, access keys, account keys and roles amid splits, kills, power cuts and failed writes. A
//! change that was acknowledged is in force from then on, before and after a restart; one without
//! an answer is made or not, never half. What was revoked is never served again, and no two users
//! share an access key.
//!
//! Each account has one operator, who makes one change at a time. Clients look at what the front
//! end serves all the time.

mod changes;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use blockyard::admin::AccountStore;
use blockyard::admin::AccountStoreParts;
use blockyard::admin::Endpoints;
use blockyard::admin::NewAccount;
use blockyard::audit_log::AuditLog;
use blockyard::auth::KeyRing;
use blockyard::coordinator::IdAllocator;
use blockyard::coordinator::SimulatedStore;
use blockyard::coordinator::counter;
use blockyard::env::SimDisk;
use blockyard::frontend::Accounts;
use blockyard::frontend::Secrets;
use blockyard::index::AccountChange;
use blockyard::index::UpdateAccount;
use blockyard::node::account_list::AccountList;
use blockyard::types::AccountName;
use blockyard::types::ClusterNumber;
use blockyard::types::PartitionId;
use blockyard::types::RoutingKey;
use blockyard::types::Timestamp;
use futures_util::future::join_all;
use zeroize::Zeroizing;

use crate::counts::Counts;
use crate::credential_state::State;
use crate::draw::Draw;
use crate::index::coordinator_faults;
use crate::rig::Device;
use crate::rig::End;
use crate::rig::Failing;
use crate::rig::Plan;
use crate::rig::Rig;
use crate::rig::Trouble;
use crate::seeds::Run;
use crate::seeds::Violation;
use crate::stack::Stack;

const DISK_BYTES: u64 = 24 << 20;
/// One on either side of a border between partitions.
const ACCOUNTS: [&str; 2] = ["aaaa", "nnnn"];
/// Of the configuration, so that no list of accounts is empty.
const CONFIGURED: &str =
    "zzzz:a2V5IG9mIHRoZSBjb25maWd1cmF0aW9uIGtleSBvZiB0aGUgY29uZmlndXJhdGlvbg==";

/// What is known of an account.
#[derive(Clone, Debug, Default)]
struct Known {
    /// The states that it may be in.
    possible: Vec<State>,
    /// The states that it may have once the running change has ended.
    coming: Vec<State>,
    /// Whether a change may be running. One that was given up has ended when the next one is
    /// made; a refusal may come before that.
    running: bool,
    /// Changes that have begun.
    changes: u64,
}

#[derive(Debug, Default)]
struct World {
    accounts: BTreeMap<&'static str, Known>,
    /// All account keys and access keys that were ever asked for.
    keys: Vec<String>,
    ids: Vec<String>,
}

/// Runs one history.
pub(crate) fn run(seed: u64, counts: &Counts) -> Run {
    let draw = Draw::new(seed.wrapping_add(11 << 32));
    let mut rig = Rig::new(seed, 1, DISK_BYTES, Device::Honest);
    let store = SimulatedStore::new();
    let world = RefCell::new(World::default());
    let ends = [End::Kill, End::PowerCut, End::Shutdown];
    let troubles = [
        Trouble::PowerCut,
        Trouble::WriteError,
        Trouble::SyncError,
        Trouble::Coordinator,
        Trouble::None,
    ];
    let troubled = (0..draw.between(2, 4))
        .map(|_| Plan { trouble: *draw.one(&troubles).unwrap(), end: *draw.one(&ends).unwrap() });
    let plans: Vec<Plan> = [Plan::CALM].into_iter().chain(troubled).chain([Plan::CALM]).collect();
    for (number, plan) in plans.iter().enumerate() {
        let role = match number {
            0 => Role::First,
            _ if number + 1 == plans.len() => Role::Last,
            _ => Role::Middle,
        };
        store.set_faults(coordinator_faults(*plan));
        let sims = rig.sims.clone();
        let (draw, store, world) = (&draw, &store, &world);
        rig.session(draw, *plan, |machine| async move {
            let excused = || plan.trouble.fails_a_start(&sims);
            let stack = match Stack::open(&machine, store, &borders()).await {
                Ok(stack) => stack,
                Err(_) if excused() => return Ok(()),
                Err(why) => return Err(why),
            };
            let list = Arc::new(account_list(&stack));
            let accounts = match list.read().await {
                Ok(accounts) => accounts,
                Err(_) if excused() => return Ok(()),
                Err(error) => return Err(format!("the accounts cannot be read: {error}")),
            };
            list.complete(&accounts, &stack.env);
            let admin = admin(&stack, accounts.clone());
            let plan = *plan;
            let sims = sims.clone();
            let session =
                Session { stack: &stack, draw, world, counts, sims, plan, accounts, admin };
            session.run(role).await?;
            drop(session);
            if plan.end == End::Shutdown {
                stack.shutdown().await;
            }
            Ok(())
        })?;
        store.crash();
    }
    Ok(rig.trace())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Creates the accounts.
    First,
    Middle,
    /// Looks at everything.
    Last,
}

fn account(name: &str) -> AccountName {
    AccountName::new(name).unwrap()
}

fn borders() -> Vec<RoutingKey> {
    ["bbbb", "oooo"].map(|name| RoutingKey::account(&account(name))).to_vec()
}

fn account_ids(stack: &Stack) -> Arc<IdAllocator> {
    let coordinator = Arc::clone(&stack.coordinator);
    Arc::new(IdAllocator::new(coordinator, ClusterNumber::ALONE, counter::ACCOUNT_IDS))
}

fn account_list(stack: &Stack) -> AccountList {
    let ring = KeyRing::new(uuid::Uuid::nil(), Zeroizing::new([7; 32]), Timestamp::ZERO);
    AccountList {
        configured: vec![CONFIGURED.parse().unwrap()],
        users: Vec::new(),
        public_access: None,
        router: Arc::clone(&stack.router),
        secrets: Secrets::new(ring, Arc::clone(&stack.env.rand)),
        ids: account_ids(stack),
        audit_log: AuditLog::default(),
    }
}

fn admin(stack: &Stack, accounts: Accounts) -> AccountStore {
    let ids = account_ids(stack);
    let blob = "127.0.0.1:10000".parse().unwrap();
    let endpoints = Endpoints { blob, http: true, https: false };
    let (containers, tasks) = (stack.containers.clone(), stack.env.tasks.clone());
    AccountStore::new(AccountStoreParts { accounts, containers, ids, endpoints, tasks })
}

struct Session<'a> {
    stack: &'a Stack,
    draw: &'a Draw,
    world: &'a RefCell<World>,
    counts: &'a Counts,
    sims: Vec<SimDisk>,
    plan: Plan,
    accounts: Accounts,
    admin: AccountStore,
}

impl Session<'_> {
    fn is_down(&self) -> bool {
        self.sims.iter().any(SimDisk::is_down)
    }

    /// Whether an account may be unreadable now.
    fn excused(&self) -> bool {
        self.is_down() || self.plan.trouble.excuses(Failing::Writes)
    }

    async fn pause(&self, milliseconds: u64) {
        let time = Duration::from_millis(self.draw.between(0, milliseconds));
        self.stack.env.clock.sleep(time).await;
    }

    async fn run(&self, role: Role) -> Result<(), Violation> {
        if role == Role::First {
            for name in ACCOUNTS {
                let keys = [self.new_key(), self.new_key()];
                let new = NewAccount { keys: keys.clone().map(Some), ..NewAccount::default() };
                let created = self.admin.create(name, new).await;
                created.map_err(|error| format!("{name} is not created: {error}"))?;
                let state = State { keys: keys.to_vec(), ..State::default() };
                let known = Known { possible: vec![state], ..Known::default() };
                self.world.borrow_mut().accounts.insert(name, known);
            }
        }
        for name in ACCOUNTS {
            // What a kill interrupted has no answer.
            self.know(name, |known| {
                known.possible.append(&mut known.coming);
                known.running = false;
            });
            self.look(name)?;
        }
        if role == Role::Last {
            return self.last_look().await;
        }
        let steps = self.draw.between(5, 30);
        let operators = join_all(ACCOUNTS.map(|name| self.operator(name, steps)));
        let lookers = self.looker(steps * 3);
        let work = async {
            let (done, looked, ()) =
                futures_util::future::join3(operators, lookers, self.change_map(steps / 2)).await;
            done.into_iter().chain([looked]).collect::<Result<(), Violation>>()
        };
        if self.plan.end == End::Kill {
            let life = Duration::from_millis(self.draw.between(1, steps * 20));
            if let Ok(done) = tokio::time::timeout(life, Box::pin(work)).await {
                return done;
            }
            self.counts.add("kills at work", 1);
            return Ok(());
        }
        Box::pin(work).await?;
        self.all_served().await
    }

    /// An account whose row takes changes is served, soon.
    async fn all_served(&self) -> Result<(), Violation> {
        self.stack.env.clock.sleep(Duration::from_secs(5)).await;
        for name in ACCOUNTS {
            let (name, change) = (account(name), AccountChange::Reseal(Vec::new()));
            let written =
                self.stack.router.tell(UpdateAccount { name: name.clone(), change }).await;
            self.stack.env.clock.sleep(Duration::from_secs(15)).await;
            if let (Ok(_), Err(unread)) = (written, self.accounts.find(&name))
                && !self.is_down()
            {
                return Err(format!("{unread} is not served, although its row takes changes"));
            }
        }
        Ok(())
    }

    /// Splits and merges partitions. What comes of it does not matter here.
    async fn change_map(&self, times: u64) {
        for _ in 0..times {
            self.pause(60).await;
            let map = self.stack.router.map();
            let Some(one) = self.draw.one(map.partitions()).map(|one| one.id) else { continue };
            let done = if map.partitions().len() < 6 && self.draw.percent(50) {
                let border = RoutingKey::account(&account(ACCOUNTS[1]));
                let owner = map.owner(border.as_bytes()).map_or(one, |owner| owner.id);
                self.stack.host().split(owner, &[border]).await
            } else {
                let following = map.partitions().iter().skip_while(|of| of.id != one).take(2);
                let ids: Vec<PartitionId> = following.map(|of| of.id).collect();
                self.stack.host().merge(&ids).await
            };
            self.counts.add("changes of the map", u64::from(done.is_ok()));
        }
    }

    async fn looker(&self, times: u64) -> Result<(), Violation> {
        for _ in 0..times {
            self.pause(25).await;
            for name in ACCOUNTS {
                self.look(name)?;
                if self.draw.percent(30) {
                    self.read(name).await?;
                }
            }
        }
        Ok(())
    }

    fn know<T>(&self, name: &'static str, note: impl FnOnce(&mut Known) -> T) -> T {
        note(self.world.borrow_mut().accounts.entry(name).or_default())
    }

    /// What the front end serves of an account; `None` while its row has to be read.
    fn served(&self, name: &str) -> Result<Option<State>, Violation> {
        let found = match self.accounts.find(&account(name)) {
            Ok(found) => found.ok_or_else(|| format!("{name} is not served"))?,
            Err(unread) if self.excused() => {
                self.counts.add("accounts that had to be read again", 1);
                drop(unread);
                return Ok(None);
            }
            Err(unread) => return Err(format!("{name} is not read: {unread}")),
        };
        let world = self.world.borrow();
        let state = State::served(&found, &world.keys, &world.ids);
        for id in state.users.values().flatten() {
            match self.accounts.access_keys().find(id) {
                Ok(Some(owner)) if owner.as_str() == name => {}
                other => return Err(format!("{name}: access key {id} is found as {other:?}")),
            }
        }
        Ok(Some(state.shown()))
    }

    /// Compares what is served with what may be.
    fn look(&self, name: &'static str) -> Result<(), Violation> {
        let Some(seen) = self.served(name)? else { return Ok(()) };
        let known = self.world.borrow().accounts[name].clone();
        if !known.possible.iter().chain(&known.coming).any(|state| state.shown() == seen) {
            return Err(format!("{name} is served as {seen:#?}, but {known:#?}"));
        }
        if !known.running {
            self.settle(name, |state| state.shown() == seen);
        }
        Ok(())
    }

    /// Notes that a state was seen. A change is not undone. One whose write failed may still be
    /// made by a restart, which replays what reached the disk. Without such a failure, what was not
    /// made when the state was seen never will be.
    fn settle(&self, name: &'static str, is_seen: impl Fn(&State) -> bool) {
        let is_sure = !self.excused();
        self.know(name, |known| {
            let first = known.possible.iter().position(&is_seen).unwrap_or_default();
            known.possible.drain(..first);
            known.possible.retain(|state| !is_sure || is_seen(state));
        });
    }

    /// Compares the row of an account with what may be, unless a change is made meanwhile.
    async fn read(&self, name: &'static str) -> Result<(), Violation> {
        let Known { running, changes, .. } = self.world.borrow().accounts[name].clone();
        let Ok(users) = self.admin.users(name).await else { return Ok(()) };
        let known = self.world.borrow().accounts[name].clone();
        if running || known.changes != changes {
            return Ok(());
        }
        let mut seen = BTreeMap::new();
        for user in users {
            let ids = user.access_keys.into_iter().map(|key| key.access_key_id);
            seen.insert(user.name, ids.collect::<Vec<String>>());
        }
        let is_seen = |state: &State| {
            state.users.len() == seen.len()
                && state.users.iter().all(|(user, ids)| seen.get(*user) == Some(ids))
        };
        if !known.possible.iter().any(is_seen) {
            return Err(format!("{name}: the row has {seen:#?}, but {known:#?}"));
        }
        self.settle(name, is_seen);
        self.look(name)
    }

    async fn last_look(&self) -> Result<(), Violation> {
        for name in ACCOUNTS {
            let state = self.world.borrow().accounts[name].possible[0].shown();
            let users = self.admin.users(name).await.map_err(|error| error.to_string())?;
            for user in &users {
                let mut ids: Vec<String> =
                    user.access_keys.iter().map(|key| key.access_key_id.clone()).collect();
                ids.sort();
                if state.users.get(user.name.as_str()) != Some(&ids) {
                    return Err(format!("{name}/{}: {ids:?} instead of {state:#?}", user.name));
                }
            }
            if users.len() != state.users.len() {
                return Err(format!("{name} has the users {users:?} instead of {state:#?}"));
            }
            self.counts.add("users at the end", users.len() as u64);
        }
        let world = self.world.borrow();
        for id in &world.ids {
            let owners = world.accounts.values().flat_map(|known| known.possible.first());
            let owners = owners.filter(|state| state.has(id)).count();
            if owners > 1 {
                return Err(format!("{owners} accounts have the access key {id}"));
            }
        }
        Ok(())
    }
}
