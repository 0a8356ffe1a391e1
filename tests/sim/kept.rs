//! Versions, delete markers, soft delete and object lock amid splits, kills and power cuts: no
//! acknowledged version is lost, a held one is never removed, what was deleted comes back until its
//! time, and no byte is left that nothing names.
//!
//! Each client has names of its own and sends one request at a time, so that a request without an
//! answer leaves two possible states. The next look decides which it is.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use blockyard::coordinator::SimulatedStore;
use blockyard::env::SimDisk;
use blockyard::index::BlobChange;
use blockyard::index::DeleteBlob;
use blockyard::index::Error;
use blockyard::index::Guard;
use blockyard::index::History;
use blockyard::index::ListBlobs;
use blockyard::index::ListEntry;
use blockyard::index::NewBlobFields;
use blockyard::index::PutBlob;
use blockyard::index::Refused;
use blockyard::index::UndeleteBlob;
use blockyard::index::UpdateBlob;
use blockyard::index::Write;
use blockyard::index::WriteReply;
use blockyard::protocol::model::Reason;
use blockyard::reclaim::ReclaimConfig;
use blockyard::types::BlobProperties;
use blockyard::types::Crc64;
use blockyard::types::DeleteScope;
use blockyard::types::LockClaim;
use blockyard::types::NewKind;
use blockyard::types::ObjectLock;
use blockyard::types::PartitionId;
use blockyard::types::Protection;
use blockyard::types::Retention;
use blockyard::types::RetentionMode;
use blockyard::types::Revision;
use blockyard::types::RoutingKey;
use blockyard::types::Tags;
use blockyard::types::Timestamp;
use blockyard::types::Versioning;
use futures_util::future::join_all;

use crate::calls::Calls;
use crate::chain::Chain;
use crate::chain::Entry;
use crate::chain::Span;
use crate::client::AHEAD;
use crate::counts::Counts;
use crate::draw::Draw;
use crate::draw::content;
use crate::index::key;
use crate::requests::metadata;
use crate::rig::Device;
use crate::rig::End;
use crate::rig::Plan;
use crate::rig::Rig;
use crate::rig::Trouble;
use crate::seeds::Run;
use crate::seeds::Violation;
use crate::stack::Stack;
use crate::stack::reclaim_config;

/// How much later than expected a request may be evaluated: a retention that ends by then may be
/// refused as past.
const DELAY_MAX: Duration = AHEAD.saturating_mul(9);
const DISK_BYTES: u64 = 24 << 20;
const CLIENTS: u64 = 3;
const NAMES: u64 = 2;
/// How long something that was deleted can be restored.
const RESTORABLE_FOR: Duration = Duration::from_secs(9);
/// The most partitions, about.
const PARTITIONS_MAX: usize = 8;

/// What is known of all names, and the latest time that any clock has shown.
#[derive(Debug)]
struct World {
    chains: BTreeMap<String, Chain>,
    marks: u64,
    latest: Timestamp,
}

/// Runs one history.
pub(crate) fn run(seed: u64, counts: &Counts) -> Run {
    let draw = Draw::new(seed.wrapping_add(9 << 32));
    let mut rig = Rig::new(seed, 1, DISK_BYTES, Device::Honest);
    let store = SimulatedStore::new();
    let borders = if draw.percent(60) { vec![RoutingKey::blob(&key("1"))] } else { Vec::new() };
    let world = World { chains: BTreeMap::new(), marks: 0, latest: Timestamp::ZERO };
    let world = RefCell::new(world);
    let ends = [End::Kill, End::PowerCut, End::Shutdown];
    for _ in 0..draw.between(2, 4) {
        let trouble = if draw.percent(60) { Trouble::PowerCut } else { Trouble::None };
        let plan = Plan { trouble, end: *draw.one(&ends).unwrap() };
        let sims = rig.sims.clone();
        let (draw, store, borders, world) = (&draw, &store, &borders, &world);
        rig.session(draw, plan, |machine| async move {
            let opened = Stack::open_with(&machine, store, borders, pace()).await;
            let stack = match opened {
                Ok(stack) => stack,
                Err(_) if sims.iter().any(SimDisk::is_down) => return Ok(()),
                Err(why) => return Err(why),
            };
            let is_last = false;
            let session = Session { stack: &stack, draw, world, counts, sims, is_last };
            session.play(plan).await?;
            session.note_time();
            if plan.end == End::Shutdown {
                stack.shutdown().await;
            }
            Ok(())
        })?;
        store.crash();
    }
    let sims = rig.sims.clone();
    let (draw, store, borders, world) = (&draw, &store, &borders, &world);
    rig.session(draw, Plan::CALM, |machine| async move {
        let stack = Stack::open_with(&machine, store, borders, pace()).await?;
        let is_last = true;
        let session = Session { stack: &stack, draw, world, counts, sims, is_last };
        session.last_look().await?;
        stack.shutdown().await;
        Ok(())
    })?;
    Ok(rig.trace())
}

/// What ran out is removed soon.
fn pace() -> ReclaimConfig {
    ReclaimConfig { end_deletions_every: Duration::from_millis(100), ..reclaim_config() }
}

struct Session<'a> {
    stack: &'a Stack,
    draw: &'a Draw,
    world: &'a RefCell<World>,
    counts: &'a Counts,
    sims: Vec<SimDisk>,
    /// Whether all bytes are read.
    is_last: bool,
}

/// A request: what it sends, and the state after it.
struct Sent {
    write: Write,
    after: Chain,
    /// Whether it may be refused, and whether it may be done.
    refusable: bool,
    doable: bool,
    what: &'static str,
}

impl Session<'_> {
    fn is_down(&self) -> bool {
        self.sims.iter().any(SimDisk::is_down)
    }

    fn note_time(&self) {
        let mut world = self.world.borrow_mut();
        world.latest = world.latest.max(self.stack.env.clock.now());
    }

    /// The times at which the partition may evaluate a request that is answered now and was sent at
    /// `asked`.
    fn span(&self, asked: Timestamp) -> Span {
        self.note_time();
        Span { from: asked, to: self.world.borrow().latest.plus(AHEAD) }
    }

    async fn play(&self, plan: Plan) -> Result<(), Violation> {
        let steps = self.draw.between(10, 60);
        let clients = join_all((0..CLIENTS).map(|number| self.client(number, steps)));
        let work = async {
            let (done, ()) = futures_util::future::join(clients, self.change_map(steps / 4)).await;
            done.into_iter().collect::<Result<(), Violation>>()
        };
        if plan.end == End::Kill {
            let life = Duration::from_millis(self.draw.between(1, steps * 12));
            if let Ok(done) = tokio::time::timeout(life, Box::pin(work)).await {
                return done;
            }
            self.counts.add("kills at work", 1);
            return Ok(());
        }
        Box::pin(work).await
    }

    /// Splits, merges and stripes partitions. What comes of it does not matter here.
    async fn change_map(&self, times: u64) {
        for _ in 0..times {
            self.pause(40).await;
            let map = self.stack.router.map();
            let Some(one) = self.draw.one(map.partitions()).map(|one| one.id) else { continue };
            let few = map.partitions().len() < PARTITIONS_MAX;
            let done = if few && self.draw.percent(50) {
                let name = format!("{}", self.draw.between(0, CLIENTS - 1));
                let border = RoutingKey::blob(&key(&name));
                let owner = map.owner(border.as_bytes()).map_or(one, |owner| owner.id);
                self.stack.host.split(owner, &[border]).await
            } else {
                let ids: Vec<PartitionId> = map
                    .partitions()
                    .iter()
                    .skip_while(|of| of.id != one)
                    .take(2)
                    .map(|of| of.id)
                    .collect();
                self.stack.host.merge(&ids).await
            };
            self.counts.add("changes of the map", u64::from(done.is_ok()));
        }
    }

    async fn pause(&self, milliseconds: u64) {
        let time = Duration::from_millis(self.draw.between(0, milliseconds));
        self.stack.env.clock.sleep(time).await;
    }

    async fn client(&self, number: u64, steps: u64) -> Result<(), Violation> {
        for _ in 0..steps {
            if self.is_down() {
                return Ok(());
            }
            let name = format!("{number}/{}", self.draw.between(0, NAMES - 1));
            // A request in doubt has to be decided before the next one is sent.
            if !self.look(&name).await? {
                continue;
            }
            let Some(sent) = self.request(&name).await? else { continue };
            self.send(&name, sent).await?;
            self.pause(40).await;
        }
        Ok(())
    }

    /// Names of even clients are in a container with object lock, where soft delete is on at times.
    /// The others are in one whose versioning is suspended at times.
    fn protection(&self, name: &str) -> Protection {
        let is_locked = !name.starts_with('1');
        let soft = is_locked && self.draw.percent(60);
        let suspended = !is_locked && self.draw.percent(40);
        Protection {
            versioning: Some(if suspended { Versioning::Suspended } else { Versioning::Enabled }),
            restorable_for: soft.then_some(RESTORABLE_FOR),
            lock: is_locked.then_some(ObjectLock { default: None }),
        }
    }

    fn mark(&self) -> u64 {
        let mut world = self.world.borrow_mut();
        world.marks += 1;
        world.marks
    }

    fn retention(&self) -> Retention {
        let mode = *self.draw.one(&[RetentionMode::Unlocked, RetentionMode::Locked]).unwrap();
        let period = match self.draw.between(0, 9) {
            0..=2 => Duration::from_millis(self.draw.between(1, 300)),
            // Until the next session, mostly.
            3..=8 => Duration::from_secs(60),
            _ => Duration::from_secs(1 << 30),
        };
        Retention { mode, until: self.stack.env.clock.now().plus(period) }
    }

    /// The next request about a name.
    async fn request(&self, name: &str) -> Result<Option<Sent>, Violation> {
        let protection = self.protection(name);
        let is_locked = protection.lock.is_some();
        let chain = self.world.borrow().chains[name].clone();
        let guard = Guard { protection, ..Guard::default() };
        let chance = self.draw.between(0, 99);
        Ok(match chance {
            0..=34 => self.put(name, chain, guard).await?,
            35..=44 => self.metadata(name, chain, guard),
            45..=59 => Some(self.delete(name, chain, guard)),
            60..=79 => self.delete_version(name, chain, guard),
            80..=91 if is_locked => self.protect(name, chain, guard),
            _ if is_locked => Some(self.undelete(name, chain, guard)),
            _ => None,
        })
    }

    async fn put(
        &self,
        name: &str,
        chain: Chain,
        mut guard: Guard,
    ) -> Result<Option<Sent>, Violation> {
        let mark = self.mark();
        let bytes = content(mark, self.draw.between(1_500, 20_000));
        let (crc64, len) = (Crc64::of(&bytes), bytes.len() as u64);
        if guard.protection.lock.is_some() && self.draw.percent(25) {
            guard.lock.retention = Some(self.retention());
        }
        let retention = guard.lock.retention;
        let asked = self.stack.env.clock.now();
        let stored = match self.stack.pool.store(vec![bytes], len).await {
            Ok(stored) => stored,
            Err(error) => {
                let told = [Reason::ServerBusy, Reason::InsufficientStorage];
                return match told.contains(&error.reason) || self.is_down() {
                    true => Ok(None),
                    false => Err(format!("storing {name}: {error:?}")),
                };
            }
        };
        let versioning = guard.protection.versioning;
        let put = PutBlob {
            key: key(name),
            guard,
            properties: BlobProperties::default(),
            metadata: metadata(mark),
            kind: NewKind::Block,
            tags: Tags::default(),
            content: stored.content(),
            crc64,
            tier: None,
            fields: NewBlobFields::default(),
        };
        let entry = Entry { retention, ..Entry::of(mark, crc64) };
        let after = chain.pushed(entry, versioning);
        // A retention may end before the request is evaluated.
        let span = self.span(asked);
        let refusable = retention.is_some_and(|of| of.until <= span.to.plus(DELAY_MAX));
        let sent =
            Sent { write: Write::PutBlob(put), after, refusable, doable: true, what: "puts" };
        let committing = stored.committing();
        match self.deliver(name, sent).await? {
            Delivered::Refused => committing.refused(),
            Delivered::Done | Delivered::Unknown => {}
        }
        Ok(None)
    }

    fn metadata(&self, name: &str, chain: Chain, guard: Guard) -> Option<Sent> {
        let current = chain.current()?.clone();
        let mark = self.mark();
        let held = current.held(false, self.span(self.stack.env.clock.now()));
        let versioning = guard.protection.versioning;
        let change = BlobChange::Metadata(metadata(mark));
        let update = UpdateBlob { key: key(name), revision: Revision::Current, guard, change };
        let entry = Entry { mark, ..Entry::of(mark, current.crc64) };
        Some(Sent {
            write: Write::UpdateBlob(update),
            after: chain.changed(entry, versioning),
            refusable: held.may_be(),
            doable: held.may_not_be(),
            what: "metadata changes",
        })
    }

    fn delete(&self, name: &str, chain: Chain, guard: Guard) -> Sent {
        let versioning = guard.protection.versioning;
        let delete = DeleteBlob { key: key(name), guard, scope: DeleteScope::Object };
        let after = chain.pushed(Entry::marker(), versioning);
        let (refusable, doable, what) = (false, true, "markers");
        Sent { write: Write::DeleteBlob(delete), after, refusable, doable, what }
    }

    fn delete_version(&self, name: &str, chain: Chain, mut guard: Guard) -> Option<Sent> {
        let at = usize::try_from(self.draw.between(0, 9)).unwrap() % chain.versions.len().max(1);
        let entry = chain.versions.get(at)?.clone();
        let bypass = self.draw.percent(30);
        guard.lock = LockClaim { bypass, ..LockClaim::default() };
        let span = self.span(self.stack.env.clock.now());
        let held = entry.held(bypass, span);
        let restorable_for = guard.protection.restorable_for;
        let scope = DeleteScope::Version(Revision::Version(entry.time?));
        let delete = DeleteBlob { key: key(name), guard, scope };
        Some(Sent {
            write: Write::DeleteBlob(delete),
            after: chain.removed(at, span.from, restorable_for),
            refusable: held.may_be(),
            doable: held.may_not_be(),
            what: "versions deleted",
        })
    }

    /// Changes the retention or the legal hold of a version.
    fn protect(&self, name: &str, mut chain: Chain, mut guard: Guard) -> Option<Sent> {
        let at = usize::try_from(self.draw.between(0, 9)).unwrap() % chain.versions.len().max(1);
        let entry = chain.versions.get(at).filter(|entry| !entry.is_marker)?.clone();
        let bypass = self.draw.percent(50);
        guard.lock = LockClaim { bypass, ..LockClaim::default() };
        let span = self.span(self.stack.env.clock.now());
        let changed = chain.versions.get_mut(at)?;
        let (change, refusable, doable) = if self.draw.percent(40) {
            let on = self.draw.percent(40);
            changed.hold = Some(on);
            (BlobChange::LegalHold(on), false, true)
        } else {
            let new = self.draw.percent(80).then(|| self.retention());
            changed.retention = new;
            let past = new.is_some_and(|new| new.until <= span.to.plus(DELAY_MAX));
            let old = entry.shortened(new, bypass, span);
            (BlobChange::Retention(new), past || old.may_be(), old.may_not_be())
        };
        let revision = Revision::Version(entry.time?);
        let update = UpdateBlob { key: key(name), revision, guard, change };
        let what = "protections changed";
        Some(Sent { write: Write::UpdateBlob(update), after: chain, refusable, doable, what })
    }

    fn undelete(&self, name: &str, chain: Chain, guard: Guard) -> Sent {
        let span = self.span(self.stack.env.clock.now());
        // Refused if there is nothing of the name.
        let refusable = chain.versions.is_empty();
        let what = "undeletions";
        let write = Write::UndeleteBlob(UndeleteBlob { key: key(name), guard });
        Sent { write, after: chain.restored(span), refusable, doable: true, what }
    }

    async fn send(&self, name: &str, sent: Sent) -> Result<(), Violation> {
        self.deliver(name, sent).await.map(|_| ())
    }

    /// Sends a request and notes what its answer says.
    async fn deliver(&self, name: &str, sent: Sent) -> Result<Delivered, Violation> {
        let Sent { write, mut after, refusable, doable, what } = sent;
        let makes_version = ["puts", "metadata changes", "markers"].contains(&what);
        let asked = format!("{write:?}");
        self.note(name, |chain| chain.in_doubt = Some(Box::new(after.clone())));
        let answer = self.stack.router.write(write).await;
        let settled = |chain: Chain| {
            self.note(name, |known| *known = Chain { in_doubt: None, ..chain });
        };
        match answer {
            Ok(_) if !doable => Err(format!("{name}: done although it was held: {asked}")),
            Ok(reply) => {
                if let (true, WriteReply::Written(written)) = (makes_version, &reply) {
                    after.learn(written.version);
                }
                if let (true, WriteReply::Deleted(deleted)) = (makes_version, &reply) {
                    after.learn(deleted.version);
                }
                after.evaluated_before(self.span(Timestamp::ZERO).to, RESTORABLE_FOR);
                settled(after);
                self.counts.add(what, 1);
                Ok(Delivered::Done)
            }
            Err(Error::Refused(why)) if refusable => {
                let before = self.world.borrow().chains[name].clone();
                settled(before);
                self.counts.add(&format!("{what} refused"), 1);
                let held = matches!(why, Refused::Retained(_) | Refused::LegalHold);
                self.counts.add("held versions", u64::from(held));
                Ok(Delivered::Refused)
            }
            Err(Error::Overloaded | Error::Full(_)) => {
                let before = self.world.borrow().chains[name].clone();
                settled(before);
                Ok(Delivered::Refused)
            }
            Err(Error::Unavailable(_)) if self.is_down() => Ok(Delivered::Unknown),
            Err(error) => Err(format!("{name}: {error}: {asked}")),
        }
    }

    fn note<T>(&self, name: &str, change: impl FnOnce(&mut Chain) -> T) -> T {
        change(self.world.borrow_mut().chains.entry(name.to_owned()).or_default())
    }

    /// Compares what is listed and read of a name with what is known of it. Tells whether it could
    /// be listed.
    async fn look(&self, name: &str) -> Result<bool, Violation> {
        self.note(name, |_| ());
        let asked = self.stack.env.clock.now();
        let Some(seen) = self.list(name, History::VersionsDown).await? else { return Ok(false) };
        let Some(deleted) = self.deleted(name).await? else { return Ok(false) };
        let span = self.span(asked);
        let known = self.world.borrow().chains[name].clone();
        let before = known.matched(&seen, &deleted, span);
        let mut found = match (before, &known.in_doubt) {
            (Ok(chain), _) => chain,
            (Err(why), None) => return Err(format!("{name}: {why}")),
            (Err(why), Some(after)) => after
                .matched(&seen, &deleted, span)
                .map_err(|other| format!("{name}: neither {why} nor {other}"))?,
        };
        let with_bytes: Vec<&Entry> =
            found.versions.iter().filter(|entry| !entry.is_marker).collect();
        if self.is_last {
            for entry in with_bytes {
                self.read(name, entry).await?;
            }
        } else if let Some(entry) = self.draw.one(&with_bytes) {
            self.read(name, entry).await?;
        }
        found.evaluated_before(span.to, RESTORABLE_FOR);
        self.note(name, |chain| *chain = found);
        Ok(true)
    }

    /// Reads the bytes of a version.
    async fn read(&self, name: &str, entry: &Entry) -> Result<(), Violation> {
        let Some(time) = entry.time else { return Ok(()) };
        let calls = Calls::new(self.stack, self.draw);
        match calls.open_revision(name, Revision::Version(time)).await {
            Ok(Some(opened)) if opened.view.record.crc64 != entry.crc64 => {
                Err(format!("{name}: version {time:?} has other bytes"))
            }
            Ok(Some(opened)) => match calls.finish(&opened).await {
                Err(_) if self.is_down() => Ok(()),
                done => done.map_err(|why| format!("{name}: version {time:?}: {why}")),
            },
            Ok(None) => Err(format!("{name}: version {time:?} cannot be read")),
            Err(_) if self.is_down() => Ok(()),
            Err(why) => Err(why),
        }
    }

    /// What is listed of a name, in the order of the list; `None` if the machine is down.
    async fn list(&self, name: &str, history: History) -> Result<Option<Vec<Entry>>, Violation> {
        self.page(name, history, false).await
    }

    /// What was softly deleted of a name and is shown.
    async fn deleted(&self, name: &str) -> Result<Option<Vec<Entry>>, Violation> {
        let all = self.page(name, History::VersionsUp { snapshots: false }, true).await?;
        Ok(all.map(|all| all.into_iter().filter(|entry| entry.is_deleted).collect()))
    }

    async fn page(
        &self,
        name: &str,
        history: History,
        deleted: bool,
    ) -> Result<Option<Vec<Entry>>, Violation> {
        let of = key(name);
        let first = ListBlobs::first_page(of.account, of.container, of.collation, 1_000);
        let mut list = ListBlobs { prefix: name.to_owned(), history, deleted, ..first };
        let mut entries = Vec::new();
        loop {
            let page = match self.stack.router.list(&list).await {
                Ok(page) => page,
                Err(Error::Overloaded) => return Ok(None),
                Err(_) if self.is_down() => return Ok(None),
                Err(error) => return Err(format!("{name} cannot be listed: {error}")),
            };
            for entry in page.entries {
                match entry {
                    ListEntry::Blob { record, revision, .. } => {
                        entries.push(Entry::seen(&record, revision));
                    }
                    ListEntry::VersionsOnly { .. }
                    | ListEntry::Uncommitted { .. }
                    | ListEntry::Upload { .. }
                    | ListEntry::Prefix { .. } => return Err(format!("unexpected {entry:?}")),
                }
            }
            list.from = page.next;
            if list.from.is_none() {
                return Ok(Some(entries));
            }
        }
    }

    /// Looks at everything. Then what was deleted ends, and only bytes of what is left are kept.
    async fn last_look(&self) -> Result<(), Violation> {
        let names: Vec<String> = self.world.borrow().chains.keys().cloned().collect();
        for name in &names {
            if !self.look(name).await? {
                return Err(format!("{name} cannot be listed at the end"));
            }
        }
        self.stack.env.clock.sleep(RESTORABLE_FOR.saturating_mul(2)).await;
        let mut left = 0;
        for name in &names {
            self.look(name).await?;
            let chain = self.world.borrow().chains[name].clone();
            if !chain.deleted.is_empty() {
                return Err(format!("{name}: what was deleted is shown beyond its end"));
            }
            left += chain.versions.iter().filter(|entry| !entry.is_marker).count() as u64;
        }
        self.counts.add("versions at the end", left);
        // Versions that share content have it once; here each is counted.
        let most = left * (20_000 + 3 * 4096);
        let calls = Calls::new(self.stack, self.draw);
        calls.space_comes_back(|_| true, most).await
    }
}

/// What became of a request.
enum Delivered {
    Done,
    Refused,
    /// It has no answer.
    Unknown,
}
