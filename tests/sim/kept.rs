//! Versions, delete markers, soft delete and object lock amid splits, kills and power cuts: no
//! acknowledged version is lost, a held one is never removed, what was deleted comes back until its
//! time, and no byte is left that nothing names.
//!
//! Each client has names of its own and sends one request at a time, so that a request without an
//! answer leaves two possible states. The next look decides which it is.

mod look;
mod requests;
mod uploads;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use blockyard::coordinator::SimulatedStore;
use blockyard::env::SimDisk;
use blockyard::index::Error;
use blockyard::index::Refused;
use blockyard::index::Write;
use blockyard::index::WriteReply;
use blockyard::reclaim::ReclaimConfig;
use blockyard::types::PartitionId;
use blockyard::types::Revision;
use blockyard::types::RoutingKey;
use blockyard::types::Timestamp;
use futures_util::future::join_all;

use crate::chain::Chain;
use crate::chain::Entry;
use crate::chain::Span;
use crate::client::AHEAD;
use crate::counts::Counts;
use crate::draw::Draw;
use crate::index::key;
use crate::rig::Device;
use crate::rig::End;
use crate::rig::Plan;
use crate::rig::Rig;
use crate::rig::Trouble;
use crate::seeds::Run;
use crate::seeds::Violation;
use crate::stack::Stack;
use crate::stack::reclaim_config;
use uploads::Uploads;

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
    uploads: Uploads,
}

/// Runs one history.
pub(crate) fn run(seed: u64, counts: &Counts) -> Run {
    let draw = Draw::new(seed.wrapping_add(9 << 32));
    let mut rig = Rig::new(seed, 1, DISK_BYTES, Device::Honest);
    let store = SimulatedStore::new();
    let borders = if draw.percent(60) { vec![RoutingKey::blob(&key("1"))] } else { Vec::new() };
    let world = RefCell::new(World {
        chains: BTreeMap::new(),
        marks: 0,
        latest: Timestamp::ZERO,
        uploads: Uploads::default(),
    });
    // The seeds of earlier bugs are even, and play as they did then.
    let has_uploads = seed % 2 == 1;
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
            let session =
                Session { stack: &stack, draw, world, counts, sims, has_uploads, is_last };
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
        let session = Session { stack: &stack, draw, world, counts, sims, has_uploads, is_last };
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
    /// Whether some versions are uploaded in parts.
    has_uploads: bool,
    /// Whether all bytes are read.
    is_last: bool,
}

/// A request: what it sends, and the state after it.
struct Sent {
    write: Write,
    after: Chain,
    /// Whether it may be refused, and whether it may be done.
    refusable: bool,
    /// When the retention ends that it sets: then it may be refused too.
    ends: Option<Timestamp>,
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

    /// The latest time that a partition may have evaluated a request at that is answered now.
    fn latest(&self) -> Timestamp {
        self.span(Timestamp::ZERO).to
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
                self.stack.host().split(owner, &[border]).await
            } else {
                let ids: Vec<PartitionId> = map
                    .partitions()
                    .iter()
                    .skip_while(|of| of.id != one)
                    .take(2)
                    .map(|of| of.id)
                    .collect();
                self.stack.host().merge(&ids).await
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
            self.settle_upload(&name).await?;
            let Some(sent) = self.request(&name).await? else { continue };
            self.send(&name, sent).await?;
            self.pause(40).await;
        }
        Ok(())
    }

    async fn send(&self, name: &str, sent: Sent) -> Result<(), Violation> {
        self.deliver(name, sent).await.map(|_| ())
    }

    /// Sends a request and notes what its answer says.
    async fn deliver(&self, name: &str, sent: Sent) -> Result<Delivered, Violation> {
        let Sent { write, mut after, refusable, ends, doable, what } = sent;
        let makes_version = ["puts", "uploads", "metadata changes", "markers"].contains(&what);
        let asked = format!("{write:?}");
        self.note(name, |chain| chain.in_doubt = Some(Box::new(after.clone())));
        let answer = self.stack.router.write(write).await;
        let settled = |chain: Chain| {
            self.note(name, |known| *known = Chain { in_doubt: None, ..chain });
        };
        // By the clock of a partition, which may be ahead, a retention that the request sets may be
        // over when it is evaluated.
        let latest = self.latest();
        let is_past = |why: &Refused| {
            matches!(why, Refused::RetentionInPast) && ends.is_some_and(|until| until <= latest)
        };
        match answer {
            Ok(_) if !doable => Err(format!("{name}: done although it was held: {asked}")),
            Ok(reply) => {
                if let (true, WriteReply::Written(written)) = (makes_version, &reply) {
                    after.learn(written.version);
                }
                if let (true, WriteReply::UploadCompleted(completed)) = (makes_version, &reply) {
                    after.learn(completed.written.version);
                }
                if let (true, WriteReply::Deleted(deleted)) = (makes_version, &reply) {
                    after.learn(deleted.version);
                }
                after.evaluated_before(self.span(Timestamp::ZERO).to, RESTORABLE_FOR);
                settled(after);
                self.counts.add(what, 1);
                Ok(Delivered::Done)
            }
            Err(Error::Refused(why)) if refusable || is_past(&why) => {
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
}

/// What became of a request.
enum Delivered {
    Done,
    Refused,
    /// It has no answer.
    Unknown,
}
