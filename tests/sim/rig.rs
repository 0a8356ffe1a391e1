//! The machine of a history: disks, sessions, and the faults of each session.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use blockyard::capacity::SimulatedCatalog;
use blockyard::coordinator::SimulatedStore;
use blockyard::env::Disk;
use blockyard::env::Env;
use blockyard::env::Fault;
use blockyard::env::Faults;
use blockyard::env::SeededRand;
use blockyard::env::SimClock;
use blockyard::env::SimDisk;
use blockyard::env::TaskHealth;
use blockyard::env::Tasks;
use blockyard::index::Damage;
use blockyard::index::Error;
use blockyard::types::Timestamp;

use crate::draw::Draw;
use crate::seeds::Trace;
use crate::seeds::Violation;

/// The virtual time after which a session counts as stuck.
pub(crate) const SESSION_MAX: Duration = Duration::from_secs(3600);

/// Whether syncs are honest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    Honest,
    /// After the start of the program its syncs succeed without effect, as if it acknowledged
    /// before the sync.
    Liar,
}

/// The fault of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Nothing.
    None,
    /// The power fails at some operation.
    PowerCut,
    /// Some reads fail.
    ReadErrors,
    /// A write fails.
    WriteError,
    /// A sync fails.
    SyncError,
    /// A write fails on the first of two disks; the other disk has no fault.
    OneDisk,
    /// The disk is nearly full, or some writes fail as on a full disk.
    Full,
    /// Syncs take seconds.
    Stalls,
    /// The coordinator refuses transactions, or their outcome is unknown.
    Coordinator,
    /// One node of a cluster at a time crashes, is cut off or is silent.
    Nodes,
}

/// A failure that a client sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failing {
    /// Bytes of a blob that was found cannot be read.
    Bytes,
    /// Rows cannot be read.
    Rows,
    /// A change may or may not have been made.
    Writes,
    /// A split, merge or move.
    MapChange,
    /// A request waited too long for a partition whose change cannot be made.
    Overloaded,
    /// A partition was not opened at the start, because an extent that it needs could not be read
    /// or fenced.
    Quarantined,
}

impl Failing {
    /// The failure that this error of a read of rows means.
    pub(crate) const fn of_rows(error: &Error) -> Self {
        if matches!(error, Error::Corrupt(Damage::Quarantined(_))) {
            Self::Quarantined
        } else if matches!(error, Error::Overloaded) {
            Self::Overloaded
        } else {
            Self::Rows
        }
    }
}

impl Trouble {
    /// Whether this fault excuses this failure. A poisoned disk, a full disk and an unavailable
    /// coordinator do not excuse failed reads.
    pub(crate) const fn excuses(self, failing: Failing) -> bool {
        match self {
            Self::None | Self::PowerCut | Self::Stalls => false,
            Self::ReadErrors => true,
            Self::WriteError
            | Self::SyncError
            | Self::OneDisk
            | Self::Coordinator
            | Self::Nodes => !matches!(failing, Failing::Bytes | Failing::Rows),
            Self::Full => matches!(failing, Failing::MapChange),
        }
    }

    /// Whether it has or may have affected one of the disks that the program starts with. Only then
    /// may a disk be poisoned.
    pub(crate) fn has_struck(self, sims: &[SimDisk]) -> bool {
        match self {
            // One disk fails after the program has started.
            Self::None
            | Self::OneDisk
            | Self::Full
            | Self::Stalls
            | Self::Coordinator
            | Self::Nodes => false,
            Self::PowerCut => sims.iter().any(SimDisk::is_down),
            Self::ReadErrors => true,
            Self::WriteError | Self::SyncError => !self.is_to_come(sims),
        }
    }

    /// Whether it happens once and has not happened yet.
    pub(crate) fn is_to_come(self, sims: &[SimDisk]) -> bool {
        match self {
            Self::WriteError | Self::SyncError => sims.iter().all(|sim| sim.faults_left() > 0),
            Self::OneDisk => sims.first().is_some_and(|sim| sim.faults_left() > 0),
            Self::None
            | Self::PowerCut
            | Self::ReadErrors
            | Self::Full
            | Self::Stalls
            | Self::Coordinator
            | Self::Nodes => false,
        }
    }

    /// Whether the program may have started without a disk. Recovery also needs some room.
    pub(crate) fn costs_a_disk(self, sims: &[SimDisk]) -> bool {
        self == Self::Full || self.has_struck(sims)
    }

    /// Whether it may have prevented the program from starting.
    pub(crate) fn fails_a_start(self, sims: &[SimDisk]) -> bool {
        self == Self::Coordinator || self.costs_a_disk(sims)
    }
}

/// How a session ends and the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    PowerCut,
    Kill,
    /// The program stops in order, then the power fails.
    Shutdown,
}

/// The fault and the end of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) trouble: Trouble,
    pub(crate) end: End,
}

impl Plan {
    /// A session without a fault, for the final check.
    pub(crate) const CALM: Self = Self { trouble: Trouble::None, end: End::Shutdown };

    pub(crate) fn draw(draw: &Draw) -> Self {
        let trouble = match draw.between(0, 25) {
            0..=3 => Trouble::None,
            4..=11 => Trouble::PowerCut,
            12..=13 => Trouble::ReadErrors,
            14 => Trouble::WriteError,
            15..=16 => Trouble::SyncError,
            17..=19 => Trouble::Full,
            20..=22 => Trouble::Stalls,
            _ => Trouble::Coordinator,
        };
        let end = match draw.between(0, 5) {
            0..=2 => End::PowerCut,
            3..=4 => End::Kill,
            _ => End::Shutdown,
        };
        Self { trouble, end }
    }
}

/// The machine.
#[derive(Debug)]
pub(crate) struct Rig {
    pub(crate) sims: Vec<SimDisk>,
    catalogs: Vec<SimulatedCatalog>,
    own_stores: Vec<SimulatedStore>,
    seed: u64,
    device: Device,
    kind: MachineKind,
    capacity_bytes: u64,
    history: Vec<Plan>,
    /// The random choices of the order in which the disks are given.
    turns: Draw,
}

/// What the processes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MachineKind {
    /// One does everything.
    Single,
    /// Each disk is that of a capacity node, and one process has the front end and the index.
    Cluster,
    /// As [`Self::Cluster`], with the index in a process of its own.
    FrontEnd,
}

/// The machine of a session.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) disks: Vec<Arc<dyn Disk>>,
    pub(crate) catalogs: Vec<SimulatedCatalog>,
    /// The directories of the disks.
    pub(crate) paths: Vec<PathBuf>,
    /// The place of the first disk, once the order is [`Self::turned`].
    pub(crate) first: usize,
    pub(crate) env: Env,
    pub(crate) sims: Vec<SimDisk>,
    pub(crate) kind: MachineKind,
    /// What each capacity node keeps beside its extents.
    pub(crate) own_stores: Vec<SimulatedStore>,
    device: Device,
}

impl Machine {
    pub(crate) fn is_cluster(&self) -> bool {
        self.kind != MachineKind::Single
    }

    /// The same machine, with its disks perhaps in another order.
    pub(crate) fn turned(&self) -> Self {
        let mut turned = self.clone();
        turned.disks.rotate_right(self.first);
        turned.catalogs.rotate_right(self.first);
        turned.paths.rotate_right(self.first);
        turned
    }

    /// Notes that the program has started.
    pub(crate) fn started(&self) {
        if self.device == Device::Liar {
            for sim in &self.sims {
                sim.set_faults(Faults { sync_lie: 1_000_000, ..Faults::default() });
            }
        }
    }

    /// Makes removals durable, as after some time: no removed file comes back.
    pub(crate) fn make_removals_durable(&self) {
        self.sims.iter().for_each(SimDisk::make_removals_durable);
    }
}

/// How a session ended, unless the program found an invariant violated. It stops what the invariant
/// belongs to, which the trouble of the session could excuse.
fn sound<T>(health: &TaskHealth, done: Result<T, Violation>) -> Result<T, Violation> {
    match (health.violations().join("; "), done) {
        (violations, done) if violations.is_empty() => done,
        (violations, Ok(_)) => Err(violations),
        (violations, Err(why)) => Err(format!("{violations}; then {why}")),
    }
}

impl Rig {
    pub(crate) fn new(seed: u64, disks: u64, capacity_bytes: u64, device: Device) -> Self {
        let sims: Vec<SimDisk> =
            (0..disks).map(|disk| SimDisk::new(seed * 16 + disk, capacity_bytes)).collect();
        let catalogs = sims.iter().map(|_| SimulatedCatalog::default()).collect();
        let turns = Draw::new(seed.wrapping_add(6 << 32));
        let own_stores = sims.iter().map(|_| SimulatedStore::new()).collect();
        Self {
            sims,
            catalogs,
            own_stores,
            seed,
            device,
            kind: MachineKind::Single,
            capacity_bytes,
            history: Vec::new(),
            turns,
        }
    }

    /// The machines of a cluster: a disk for each capacity node.
    pub(crate) fn cluster(seed: u64, nodes: u64, capacity_bytes: u64, kind: MachineKind) -> Self {
        Self { kind, ..Self::new(seed, nodes, capacity_bytes, Device::Honest) }
    }

    /// Runs one session on a new runtime. Its tasks end with the runtime, as with a process.
    ///
    /// `work` gets the machine and whether the session should end in order. A stuck session is a
    /// violation.
    pub(crate) fn session<T, F>(
        &mut self,
        draw: &Draw,
        plan: Plan,
        work: impl FnOnce(Machine) -> F,
    ) -> Result<T, Violation>
    where
        F: Future<Output = Result<T, Violation>>,
    {
        self.history.push(plan);
        let sessions = self.history.len() as u64;
        self.prepare(draw, plan);
        let disks: Vec<Arc<dyn Disk>> = self.sims.iter().map(SimDisk::disk).collect();
        let paths = (0..disks.len()).map(|disk| PathBuf::from(format!("/disks/{disk}"))).collect();
        let first = usize::try_from(self.turns.between(0, disks.len() as u64 - 1)).unwrap();
        let (catalogs, own_stores) = (self.catalogs.clone(), self.own_stores.clone());
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.unwrap();
        let done = runtime.block_on(async {
            let clock = SimClock::new();
            // Wall time advances while the machine is off, unless it is set back. It is not set
            // back in a calm session, because reclaim would wait until the time it has seen is
            // reached.
            let back = if plan != Plan::CALM && draw.percent(15) { 5400 } else { 0 };
            let wall = Duration::from_secs(1_893_456_000 + sessions * 3600 - back);
            clock.set_wall(Timestamp::from_unix(wall));
            let rand = SeededRand::new(self.seed * 1000 + sessions);
            let env = Env { clock: Arc::new(clock), rand: Arc::new(rand), tasks: Tasks::new() };
            let (sims, device, kind) = (self.sims.clone(), self.device, self.kind);
            let health = env.tasks.health();
            let machine =
                Machine { disks, catalogs, paths, first, env, sims, kind, own_stores, device };
            let done = tokio::time::timeout(SESSION_MAX, work(machine)).await;
            let done = done.unwrap_or_else(|_| Err("stuck".to_owned()));
            sound(&health, done)
        });
        drop(runtime);
        self.finish(plan);
        done.map_err(|why| format!("{why}\n    after {:?}", self.history))
    }

    fn prepare(&self, draw: &Draw, plan: Plan) {
        let mut faults = Faults::default();
        for sim in &self.sims {
            match plan.trouble {
                // One disk fails after the program has started. A disk that fails during a start is
                // out of service, and bytes and partitions on it are not served.
                Trouble::OneDisk
                | Trouble::None
                | Trouble::Stalls
                | Trouble::Coordinator
                | Trouble::Nodes => {}
                // An early failure hits recovery, a late one hits the work of clients.
                Trouble::PowerCut => {
                    let far = if draw.percent(30) { 60 } else { 2000 };
                    sim.crash_at(sim.operations() + draw.between(1, far));
                }
                Trouble::ReadErrors => faults.read_error = 20_000,
                Trouble::WriteError => sim.fail_once(Fault::WriteError, draw.between(0, 300)),
                Trouble::SyncError => sim.fail_once(Fault::SyncError, draw.between(0, 100)),
                Trouble::Full if draw.percent(50) => faults.full = 30_000,
                Trouble::Full => sim.set_capacity(self.capacity_bytes / 4),
            }
            sim.set_faults(faults);
        }
    }

    /// Ends the faults of the disks, but not their effects.
    pub(crate) fn heal(sims: &[SimDisk], capacity_bytes: u64) {
        for sim in sims {
            sim.set_faults(Faults::default());
            sim.set_capacity(capacity_bytes);
        }
    }

    fn finish(&self, plan: Plan) {
        let rand = SeededRand::new(self.seed * 1000 + 500 + self.history.len() as u64);
        self.catalogs.iter().for_each(|catalog| catalog.crash(&rand));
        let killed = plan.end == End::Kill && !self.sims.iter().any(SimDisk::is_down);
        for sim in &self.sims {
            sim.set_capacity(self.capacity_bytes);
            if killed {
                drop(sim.restart_after_kill());
            } else {
                drop(sim.restart_after_power_cut());
            }
        }
    }

    /// The digest of the operations of all disks.
    pub(crate) fn trace(&self) -> Trace {
        self.sims.iter().fold(0, |trace, sim| trace.rotate_left(7) ^ sim.trace())
    }
}
