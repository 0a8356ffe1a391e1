//! Capacity and index with concurrent clients: every answer, read and list fits the reference
//! model, for all faults of disks and at any moment of a power failure.

use std::cell::Cell;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use blockyard::capacity::Capacity;
use blockyard::capacity::ExtentInfo;
use blockyard::capacity::ExtentKind;
use blockyard::capacity::ExtentState;
use blockyard::coordinator;
use blockyard::coordinator::SimulatedStore;
use blockyard::env::Fault;
use blockyard::env::Faults;
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
use crate::rig::Device;
use crate::rig::End;
use crate::rig::Failing;
use crate::rig::Machine;
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

/// Reads may fail, as with any failing disk; nothing else may.
const FLIPPED: Plan = Plan { trouble: Trouble::ReadErrors, end: End::PowerCut };

/// Names of a client. There are few, so that they are changed repeatedly.
pub(crate) const NAMES: u64 = 6;

/// The most slow readers of a session.
const READERS_MAX: u64 = 3;

/// The number of names that all clients change.
pub(crate) const SHARED: u64 = 2;

/// The time after a fault within which all names can be written again.
const RESUMED_WITHIN: Duration = Duration::from_secs(60);

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

/// A name next to one of a client. Such names lie in every partition.
fn probe(client: u64, name: u64, attempt: u64) -> String {
    format!("{client}/{name}-probe{attempt}")
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
    let stumbles = Draw::new(seed.wrapping_add(2 << 32));
    let streams = Draw::new(seed.wrapping_add(3 << 32));
    let releases = Draw::new(seed.wrapping_add(4 << 32));
    let both = plans.iter().any(|plan| plan.trouble == Trouble::OneDisk);
    let disks = if draw.percent(20) || both { 2 } else { 1 };
    let mut rig = Rig::new(seed, disks, DISK_BYTES, device);
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
        if self.releases.percent(10) && extents::forget_records(&machine, self.store).await {
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
        if !stack.capacity.is_whole() && !self.plan.trouble.costs_a_disk(&self.sims) {
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
        let work = Box::pin(async {
            tokio::select! {
                biased;
                done = Box::pin(work) => done,
                never = stumble::run(when, &self.sims, stack.env.clock.as_ref()) => match never {},
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

    /// Checks the state after the fault is over, before a restart: everything that can continue
    /// does.
    async fn aftermath(&self, stack: &Stack) -> Result<(), Violation> {
        let quarantined = self.check_service(stack)?;
        if quarantined > 0 {
            // They stay quarantined until the next start.
            self.counts.add("partitions quarantined", quarantined as u64);
            return Ok(());
        }
        if self.is_down() || self.plan.end == End::Kill {
            return Ok(());
        }
        let client = Client { number: 0, stack, session: self };
        let waiting = self.sims.iter().any(|sim| sim.faults_left() > 0);
        match self.plan.trouble {
            Trouble::Full => self.make_room(&client).await?,
            Trouble::SyncError | Trouble::WriteError | Trouble::OneDisk if waiting => {
                return Ok(());
            }
            Trouble::OneDisk => return self.goes_on_beside_it(&client).await,
            Trouble::SyncError | Trouble::WriteError => return self.is_poisoned(&client).await,
            Trouble::None
            | Trouble::PowerCut
            | Trouble::ReadErrors
            | Trouble::Stalls
            | Trouble::Coordinator => {
                self.sims.iter().for_each(|sim| sim.set_faults(Faults::default()));
                self.store.set_faults(coordinator::Faults::default());
            }
        }
        self.counts.add("troubles lifted", u64::from(self.plan.trouble != Trouble::None));
        self.writes_resume(&client).await?;
        if self.draw.percent(50) {
            self.garbage_is_gone(stack, |one| one.state == ExtentState::Sealed).await?;
            self.counts.add("garbage gone afterwards", 1);
        }
        Ok(())
    }

    /// Checks that a disk is poisoned only after an injected fault, and that a partition is
    /// quarantined only because of such a disk: no session damages files that it needs, not even by
    /// a power failure. Returns the number of quarantined partitions.
    fn check_service(&self, stack: &Stack) -> Result<usize, Violation> {
        let trouble = self.plan.trouble;
        let poisoned = stack.capacity.disks().iter().any(|disk| disk.poisoned);
        if poisoned && trouble != Trouble::OneDisk && !trouble.has_struck(&self.sims) {
            return Err(format!("a disk takes no writes with {:?}", self.plan));
        }
        let lacks_a_disk = poisoned || !stack.capacity.is_whole();
        let mut quarantined = 0;
        for one in stack.host.status().into_iter().filter(|one| one.quarantined) {
            let why = one.stopped.unwrap_or_default();
            if !(lacks_a_disk && why.contains("disk that is out of service")) {
                return Err(format!("{} is {why}, with {:?}", one.id, self.plan));
            }
            quarantined += 1;
        }
        Ok(quarantined)
    }

    /// Checks that a disk takes no writes after a failed write or sync, and that its bytes can be
    /// read.
    async fn is_poisoned(&self, client: &Client<'_>) -> Result<(), Violation> {
        if self.plan.trouble == Trouble::SyncError && self.sims.len() == 1 {
            self.counts.add("failed syncs", 1);
            if client.can_write(&probe(0, 0, 0)).await? {
                return Err("a write was acknowledged after a failed sync".to_owned());
            }
        }
        for number in 0..CLIENTS {
            Client { number, ..*client }.check_all().await?;
        }
        client.check_shared().await
    }

    /// Checks that bytes on a poisoned disk can be read, that the other disk takes all writes, and
    /// that garbage on it is freed.
    async fn goes_on_beside_it(&self, client: &Client<'_>) -> Result<(), Violation> {
        self.is_poisoned(client).await?;
        self.writes_resume(client).await?;
        let first = client.stack.first_disk;
        let sound = |one: &ExtentInfo| one.disk != first && one.state == ExtentState::Sealed;
        self.garbage_is_gone(client.stack, sound).await?;
        self.counts.add("sound disks beside a poisoned one", 1);
        Ok(())
    }

    /// Makes room on a full disk, with a larger disk or by deletes.
    async fn make_room(&self, client: &Client<'_>) -> Result<(), Violation> {
        if self.draw.percent(50) {
            Rig::heal(&self.sims, DISK_BYTES);
            self.counts.add("disks grown", 1);
            return Ok(());
        }
        for sim in &self.sims {
            sim.set_faults(Faults::default());
        }
        self.counts.add("disks emptied", 1);
        client.delete_all().await
    }

    /// Checks that every partition takes writes again within a limit of time.
    async fn writes_resume(&self, client: &Client<'_>) -> Result<(), Violation> {
        let clock = &client.stack.env.clock;
        let end = clock.monotonic() + RESUMED_WITHIN;
        for (number, name) in (0..CLIENTS).flat_map(|n| (0..NAMES).map(move |name| (n, name))) {
            for attempt in 0.. {
                // Another name for each try: a change with an unknown outcome adds possible states
                // to its name.
                let name = probe(number, name, attempt);
                if client.can_write(&name).await? || self.is_down() {
                    break;
                }
                if clock.monotonic() > end {
                    let map = client.stack.router.map();
                    let at = map.at(RoutingKey::blob(&key(&name)).as_bytes());
                    return Err(format!("the trouble is over, {name} cannot be written: {at:?}"));
                }
                clock.sleep(Duration::from_millis(500)).await;
            }
        }
        self.counts.add("partitions written to afterwards", client.stack.host.partitions() as u64);
        Ok(())
    }

    /// Checks at the end that all blobs are right and can be changed.
    async fn last_look(self, machine: Machine) -> Result<(), Violation> {
        disks::are_missed(&machine, self.store).await?;
        let stack = Stack::open(&machine, self.store, self.borders).await?;
        disks::are_remembered(&machine, stack.coordinator.as_ref()).await?;
        let clients: Vec<Client<'_>> =
            (0..CLIENTS).map(|number| Client { number, stack: &stack, session: &self }).collect();
        for client in &clients {
            client.check_all().await?;
        }
        clients[0].check_shared().await?;
        clients[0].check_contests().await?;
        clients[0].check_search().await?;
        self.garbage_is_gone(&stack, |_| true).await?;
        extents::are_all_used(&stack, self.store).await?;
        self.writes_resume(&clients[0]).await?;
        join_all(clients.into_iter().map(|client| client.run(5)))
            .await
            .into_iter()
            .collect::<Result<Vec<()>, Violation>>()?;
        if self.draw.percent(40) {
            return self.flips_are_never_served(&stack).await;
        }
        stack.shutdown().await;
        Ok(())
    }

    /// Checks that after a pass and an audit no more bytes are stored than blobs may refer to
    /// (I11). An open extent may have bytes of a write with an unknown outcome, so `what` is
    /// checked only after it is sealed.
    async fn garbage_is_gone(
        &self,
        stack: &Stack,
        what: impl Fn(&ExtentInfo) -> bool,
    ) -> Result<(), Violation> {
        let live = self.model.borrow().stored_max();
        let mut left = Vec::new();
        // Layers of deleted page blobs are removed one per pass.
        for wait in (0..40).map(|wait| 100 + 50 * wait) {
            stack.env.clock.sleep(Duration::from_millis(wait)).await;
            left = stack.capacity.extents().await;
            left.retain(|one| one.kind == ExtentKind::Data && one.len > one.freed && what(one));
            let stored: u64 = left.iter().map(|info| info.len - info.freed).sum();
            if stored <= live || self.is_down() {
                return Ok(());
            }
        }
        Err(format!("at most {live} bytes are referred to, but there are {left:?}"))
    }

    /// Flips bits everywhere and checks that only right bytes are served (I13).
    async fn flips_are_never_served(&self, stack: &Stack) -> Result<(), Violation> {
        let flips = self.draw.between(1, 60);
        let flipped =
            (0..flips).filter_map(|_| self.draw.one(&self.sims)?.flip_random("extents/")).count();
        self.counts.add("flips", flipped as u64);
        for number in 0..CLIENTS {
            let reader =
                Client { number, stack, session: &Session { plan: FLIPPED, ..self.again() } };
            reader.check_all().await?;
        }
        Ok(())
    }

    fn again(&self) -> Self {
        Self {
            plan: self.plan,
            draw: self.draw,
            stumbles: self.stumbles,
            streams: self.streams,
            releases: self.releases,
            store: self.store,
            model: self.model,
            sims: self.sims.clone(),
            borders: self.borders,
            counts: self.counts,
        }
    }
}
