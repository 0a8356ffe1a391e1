//! Capacity and index with concurrent clients: every answer, read and list fits the reference
//! model, for all faults of disks and at any moment of a power failure.

mod aftermath;
mod last_look;

use std::cell::Cell;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use blockyard::capacity::ExtentInfo;
use blockyard::coordinator;
use blockyard::coordinator::SimulatedStore;
use blockyard::env::Fault;
use blockyard::env::SimDisk;
use blockyard::index::CreateContainer;
use blockyard::index::Damage;
use blockyard::index::Error;
use blockyard::index::Refused;
use blockyard::index::Write;
use blockyard::types::AccountId;
use blockyard::types::BlobKey;
use blockyard::types::BlobName;
use blockyard::types::CannedAcl;
use blockyard::types::Collation;
use blockyard::types::ContainerId;
use blockyard::types::ContainerName;
use blockyard::types::Metadata;
use blockyard::types::PublicAccess;
use blockyard::types::RoutingKey;
use blockyard::types::Timestamp;
use futures_util::future::join;
use futures_util::future::join_all;
use futures_util::future::join3;

use crate::client::AHEAD;
use crate::client::Client;
use crate::contests::Contests;
use crate::counts::Counts;
use crate::disks;
use crate::draw::Draw;
use crate::extents;
use crate::model::Blob;
use crate::nodes;
use crate::nodes::NODES;
use crate::rig::Device;
use crate::rig::End;
use crate::rig::Failing;
use crate::rig::Machine;
use crate::rig::MachineKind;
use crate::rig::Plan;
use crate::rig::Rig;
use crate::rig::SESSION_MAX;
use crate::rig::Trouble;
use crate::seeds::Run;
use crate::seeds::Violation;
use crate::splitter;
use crate::stack::Stack;
use crate::stumble;

const DISK_BYTES: u64 = 24 << 20;
pub(crate) const CLIENTS: u64 = 4;
/// Names of a client. There are few, so that they are changed repeatedly.
pub(crate) const NAMES: u64 = 6;
/// The most slow readers of a session.
const READERS_MAX: u64 = 3;
/// The number of names that all clients change.
pub(crate) const SHARED: u64 = 2;

/// The reference model of all blobs.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) blobs: BTreeMap<String, Blob>,
    pub(crate) contests: Contests,
    pub(crate) tags: u64,
    /// Whether the container's row was made.
    pub(crate) container: bool,
    /// The latest time that a session's clock has shown.
    pub(crate) latest: Timestamp,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            blobs: BTreeMap::new(),
            contests: Contests::default(),
            tags: 0,
            container: false,
            latest: Timestamp::ZERO,
        }
    }
}

impl Model {
    pub(crate) fn tag(&mut self) -> u64 {
        self.tags += 1;
        self.tags
    }

    /// Names of blobs that are being changed.
    pub(crate) fn changing(&self) -> Vec<String> {
        let changing = self.blobs.iter().filter(|(_, blob)| blob.is_changing());
        changing.map(|(name, _)| name.clone()).collect()
    }

    /// Notes that the process has ended.
    fn cut_off(&mut self) -> Result<(), Violation> {
        let until = self.latest.plus(AHEAD);
        for (name, blob) in &mut self.blobs {
            blob.cut_off(until).map_err(|why| format!("{name}: {why}"))?;
        }
        Ok(())
    }

    /// The most bytes of frames that blobs may take: the content that any possible state refers to,
    /// once, with headers of frames and rests of pages.
    fn stored_max(&self) -> u64 {
        let mut all = BTreeMap::new();
        for state in self.blobs.values().flat_map(Blob::possible) {
            state.stored(&mut all);
        }
        all.values().map(|len| len + len / 1000 + (2 + len / (64 << 10)) * 2 * 4096).sum()
    }
}

/// The container of all blobs.
pub(crate) fn container() -> ContainerName {
    ContainerName::new("contained").unwrap()
}

/// The name with this number that all clients change.
pub(crate) fn shared_name(number: u64) -> String {
    format!("shared/{number}")
}

/// Whether all clients change it.
pub(crate) fn is_shared(name: &str) -> bool {
    name.starts_with("shared/")
}

/// The names of a client, each with its key.
pub(crate) fn key(name: &str) -> BlobKey {
    BlobKey {
        account: AccountId::new(1),
        container: ContainerId::new(1),
        collation: Collation::Utf16,
        name: BlobName::new(name).unwrap(),
    }
}

/// The borders of 1 to 16 partitions, between the names of clients and among them.
fn boundaries(draw: &Draw) -> Vec<RoutingKey> {
    let partitions = *draw.one(&[1, 2, 5, 16]).unwrap();
    let names: Vec<String> = (0..CLIENTS)
        .flat_map(|client| (0..NAMES).map(move |name| format!("{client}/{name}")))
        .collect();
    let mut keys: Vec<RoutingKey> = Vec::new();
    for border in 1..partitions {
        let at = usize::try_from(border * CLIENTS * NAMES / partitions).unwrap();
        keys.push(RoutingKey::blob(&key(&names[at])));
    }
    keys
}

/// Runs one history.
pub(crate) fn run(seed: u64, device: Device) -> Run {
    run_counted(seed, device, &Counts::default())
}

/// Runs one history and adds to `counts` what happened in it.
pub(crate) fn run_counted(seed: u64, device: Device, counts: &Counts) -> Run {
    let draw = Draw::new(seed);
    let plans: Vec<Plan> = (0..draw.between(2, 4)).map(|_| Plan::draw(&draw)).collect();
    run_planned(seed, device, &plans, counts)
}

/// Runs one history of these sessions.
pub(crate) fn run_planned(seed: u64, device: Device, plans: &[Plan], counts: &Counts) -> Run {
    let draw = Draw::new(seed.wrapping_add(1 << 32));
    let both = plans.iter().any(|plan| plan.trouble == Trouble::OneDisk);
    let disks = if draw.percent(20) || both { 2 } else { 1 };
    let rig = Rig::new(seed, disks, DISK_BYTES, device);
    run_on(rig, (seed, draw), plans, counts)
}

/// Runs one history of a cluster of capacity nodes, under one process with index and front end, or
/// under two processes.
pub(crate) fn run_clustered(seed: u64, kind: MachineKind, counts: &Counts) -> Run {
    let draw = Draw::new(seed.wrapping_add(7 << 32));
    let plan = |_| Plan {
        trouble: if draw.percent(80) { Trouble::Nodes } else { Trouble::None },
        end: *draw.one(&[End::PowerCut, End::Kill, End::Kill, End::Shutdown]).unwrap(),
    };
    let plans: Vec<Plan> = (0..draw.between(2, 3)).map(plan).collect();
    let rig = Rig::cluster(seed, NODES as u64, DISK_BYTES, kind);
    run_on(rig, (seed, draw), &plans, counts)
}

fn run_on(mut rig: Rig, (seed, draw): (u64, Draw), plans: &[Plan], counts: &Counts) -> Run {
    let stumbles = Draw::new(seed.wrapping_add(2 << 32));
    let streams = Draw::new(seed.wrapping_add(3 << 32));
    let releases = Draw::new(seed.wrapping_add(4 << 32));
    let store = SimulatedStore::new();
    let borders = boundaries(&draw);
    let model = RefCell::new(Model::default());
    for &plan in plans {
        let sims = rig.sims.clone();
        store.set_faults(coordinator_faults(plan));
        rig.session(&draw, plan, |machine| {
            let session = Session {
                plan,
                draw: &draw,
                stumbles: &stumbles,
                streams: &streams,
                releases: &releases,
                store: &store,
                model: &model,
                sims,
                borders: &borders,
                counts,
            };
            session.run(machine)
        })?;
        store.crash();
        model.borrow_mut().cut_off()?;
    }
    let sims = rig.sims.clone();
    let plan = Plan::CALM;
    store.set_faults(coordinator_faults(plan));
    rig.session(&draw, plan, |machine| {
        let session = Session {
            plan,
            draw: &draw,
            stumbles: &stumbles,
            streams: &streams,
            releases: &releases,
            store: &store,
            model: &model,
            sims,
            borders: &borders,
            counts,
        };
        session.last_look(machine)
    })?;
    Ok(rig.trace())
}

pub(crate) fn coordinator_faults(plan: Plan) -> coordinator::Faults {
    let per_mille = if plan.trouble == Trouble::Coordinator { 100 } else { 0 };
    coordinator::Faults {
        unavailable_per_mille: per_mille,
        ambiguous_per_mille: per_mille,
        ..coordinator::Faults::default()
    }
}

/// Reports which task is stuck, before the whole session counts as stuck.
async fn in_time(
    who: String,
    work: impl Future<Output = Result<(), Violation>>,
) -> Result<(), Violation> {
    match tokio::time::timeout(SESSION_MAX / 2, work).await {
        Ok(done) => done,
        Err(_) => Err(format!("{who} is stuck")),
    }
}

/// The state of a session.
pub(crate) struct Session<'a> {
    pub(crate) plan: Plan,
    pub(crate) draw: &'a Draw,
    /// The random choices of stalls of disks.
    stumbles: &'a Draw,
    /// The random choices of slow readers.
    pub(crate) streams: &'a Draw,
    /// The random choices of sessions that begin with a store of an older release.
    releases: &'a Draw,
    store: &'a SimulatedStore,
    pub(crate) model: &'a RefCell<Model>,
    pub(crate) sims: Vec<SimDisk>,
    borders: &'a [RoutingKey],
    pub(crate) counts: &'a Counts,
}

impl Session<'_> {
    pub(crate) fn is_down(&self) -> bool {
        self.sims.iter().any(SimDisk::is_down)
    }

    /// Whether the fault of the session excuses this failure. A fault that has not happened yet
    /// excuses none.
    pub(crate) fn excuses(&self, failing: Failing) -> bool {
        let trouble = self.plan.trouble;
        !trouble.is_to_come(&self.sims) && trouble.excuses(failing)
    }

    async fn run(self, machine: Machine) -> Result<(), Violation> {
        if !machine.is_cluster()
            && self.releases.percent(10)
            && extents::forget_records(&machine, self.store).await
        {
            self.counts.add("stores of an older release", 1);
        }
        let stack = match Stack::open(&machine, self.store, self.borders).await {
            Ok(stack) => stack,
            Err(_) if self.plan.trouble.fails_a_start(&self.sims) => {
                self.counts.add("starts that failed", 1);
                return Ok(());
            }
            Err(why) => return Err(why),
        };
        if !stack.is_whole() && !self.plan.trouble.costs_a_disk(&self.sims) {
            return Err(format!("a disk is out of service with {:?}", self.plan));
        }
        machine.started();
        let result = match self.create_container(&stack).await {
            Ok(()) => self.work(&stack).await,
            Err(why) => Err(why),
        };
        let result = match result {
            Ok(()) => self.aftermath(&stack).await,
            Err(why) => Err(why),
        };
        self.counts.add_metrics(&stack.metrics);
        self.counts.add("power cuts at work", u64::from(self.is_down()));
        if self.plan.end == End::Shutdown {
            stack.shutdown().await;
        }
        let mut model = self.model.borrow_mut();
        model.latest = model.latest.max(machine.env.clock.now());
        result
    }

    /// Makes the container's row, in which reclaim looks up its name. Other tests cover requests of
    /// accounts.
    async fn create_container(&self, stack: &Stack) -> Result<(), Violation> {
        let create = CreateContainer {
            account: key("x").account,
            name: container(),
            id: key("x").container,
            collation: key("x").collation,
            metadata: Metadata::default(),
            public_access: PublicAccess::Private,
            encryption_scope: None,
            owner: None,
            region: None,
            acl: CannedAcl::Private,
            object_lock: false,
        };
        let client = Client { number: 0, stack, session: self };
        match stack.router.write(Write::CreateContainer(create)).await {
            Ok(_) | Err(Error::Refused(Refused::ContainerExists)) => {
                self.model.borrow_mut().container = true;
            }
            // Later sessions try again.
            Err(Error::Full(_) | Error::Overloaded) => {}
            Err(Error::Corrupt(Damage::Quarantined(_))) if client.excused(Failing::Quarantined) => {
            }
            Err(Error::Unavailable(_)) if client.excused(Failing::Writes) => {}
            Err(error) => return Err(format!("the container with {:?}: {error}", self.plan)),
        }
        Ok(())
    }

    async fn work(&self, stack: &Stack) -> Result<(), Violation> {
        if self.plan.trouble == Trouble::OneDisk
            && let Some(first) = self.sims.first()
        {
            first.fail_once(Fault::WriteError, self.draw.between(0, 200));
        }
        let steps = self.draw.between(10, 150);
        let clients = (0..CLIENTS).map(|number| {
            let client = Client { number, stack, session: self };
            in_time(format!("client {number}"), client.run(steps))
        });
        let over = &Cell::new(false);
        // Stalled syncs are meant for slow readers.
        let least = if self.plan.trouble == Trouble::Stalls { READERS_MAX } else { 0 };
        let readers = (0..self.streams.between(least, READERS_MAX)).map(|number| {
            let client = Client { number, stack, session: self };
            in_time(format!("slow reader {number}"), client.stream(over))
        });
        let times = if self.draw.percent(60) { steps / 12 } else { 0 };
        let work = async {
            // Two at a time: changes of one partition wait for each other, others are concurrent.
            let splitters = (0..2).map(|number| {
                in_time(format!("splitter {number}"), splitter::run(stack, self, times / 2))
            });
            let clients = async {
                let done = join_all(clients).await;
                over.set(true);
                done
            };
            let (done, split, read) = join3(clients, join_all(splitters), join_all(readers)).await;
            done.into_iter().chain(split).chain(read).collect()
        };
        let stalls = self.plan.trouble == Trouble::Stalls;
        let when = (self.stumbles, stalls, self.counts);
        let harm = async {
            let (draw, counts) = (self.stumbles, self.counts);
            match (stack.nodes(), stack.lives()) {
                (Some(_), _) if self.plan.trouble != Trouble::Nodes => std::future::pending().await,
                (Some(nodes), None) => nodes.harm(&[nodes::FRONT], draw, counts).await,
                (Some(nodes), Some(lives)) => {
                    let nodes = nodes.harm(&nodes::CALLERS, draw, counts);
                    join(nodes, lives.harm(draw, counts)).await.0
                }
                (None, _) => stumble::run(when, &self.sims, stack.env.clock.as_ref()).await,
            }
        };
        let work = Box::pin(async {
            tokio::select! {
                biased;
                done = Box::pin(work) => done,
                never = Box::pin(harm) => match never {},
            }
        });
        if self.plan.end == End::Kill {
            // The process is killed while clients work.
            let life = Duration::from_millis(self.draw.between(1, steps * 12));
            if let Ok(done) = tokio::time::timeout(life, work).await {
                return done;
            }
            self.counts.add("kills at work", 1);
            return Ok(());
        }
        work.await
    }
}
