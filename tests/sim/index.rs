//! Capacity and index together under concurrent clients: every answer, read and list fits the reference, whatever the
//! disks did and wherever the power went.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use blockyard::capacity::Capacity;
use blockyard::capacity::ExtentKind;
use blockyard::coordinator;
use blockyard::coordinator::SimulatedStore;
use blockyard::env::Faults;
use blockyard::env::SimDisk;
use blockyard::index::CreateContainer;
use blockyard::index::Error;
use blockyard::index::Write;
use blockyard::types::AccountId;
use blockyard::types::BlobKey;
use blockyard::types::BlobName;
use blockyard::types::Collation;
use blockyard::types::ContainerId;
use blockyard::types::ContainerName;
use blockyard::types::Metadata;
use blockyard::types::PublicAccess;
use blockyard::types::RoutingKey;
use blockyard::types::Timestamp;
use futures_util::future::join;
use futures_util::future::join_all;

use crate::client::AHEAD;
use crate::client::Client;
use crate::contests::Contests;
use crate::counts::Counts;
use crate::draw::Draw;
use crate::model::Blob;
use crate::rig::Device;
use crate::rig::End;
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

/// Few, so that they are changed again and again.
pub(crate) const NAMES: u64 = 6;

/// All that is known.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) blobs: BTreeMap<String, Blob>,
    pub(crate) contests: Contests,
    pub(crate) tags: u64,
    /// The container's row was made.
    pub(crate) container: bool,
    /// No session's clock has shown a later time.
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

    /// The process is gone.
    fn cut_off(&mut self) {
        let until = self.latest.plus(AHEAD);
        self.blobs.values_mut().for_each(|blob| blob.cut_off(until));
    }

    /// Bytes of frames that blobs may take, at most: everything that any possible state refers to, once, each with its heads
    /// and the rests of pages.
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

/// The names of a client, each with its key.
pub(crate) fn key(name: &str) -> BlobKey {
    BlobKey {
        account: AccountId::new(1),
        container: ContainerId::new(1),
        collation: Collation::Utf16,
        name: BlobName::new(name).unwrap(),
    }
}

/// 1 to 16 partitions whose borders lie between the clients' names and inside them.
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

/// One history.
pub(crate) fn run(seed: u64, device: Device) -> Run {
    run_counted(seed, device, &Counts::default())
}

/// One history, and what happened in it.
pub(crate) fn run_counted(seed: u64, device: Device, counts: &Counts) -> Run {
    let draw = Draw::new(seed);
    let plans: Vec<Plan> = (0..draw.between(2, 4)).map(|_| Plan::draw(&draw)).collect();
    run_planned(seed, device, &plans, counts)
}

/// One history of these sessions.
pub(crate) fn run_planned(seed: u64, device: Device, plans: &[Plan], counts: &Counts) -> Run {
    let draw = Draw::new(seed.wrapping_add(1 << 32));
    let stumbles = Draw::new(seed.wrapping_add(2 << 32));
    let disks = if draw.percent(20) { 2 } else { 1 };
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
                model: &model,
                sims,
                borders: &borders,
                counts,
            };
            session.run(machine, &store)
        })?;
        store.crash();
        model.borrow_mut().cut_off();
    }
    let sims = rig.sims.clone();
    let plan = Plan::CALM;
    store.set_faults(coordinator_faults(plan));
    rig.session(&draw, plan, |machine| {
        let session = Session {
            plan,
            draw: &draw,
            stumbles: &stumbles,
            model: &model,
            sims,
            borders: &borders,
            counts,
        };
        session.last_look(machine, &store)
    })?;
    Ok(rig.trace())
}

fn coordinator_faults(plan: Plan) -> coordinator::Faults {
    let per_mille = if plan.trouble == Trouble::Coordinator { 100 } else { 0 };
    coordinator::Faults {
        unavailable_per_mille: per_mille,
        ambiguous_per_mille: per_mille,
        ..coordinator::Faults::default()
    }
}

/// Says who is stuck, before the whole session counts as stuck.
async fn in_time(
    who: String,
    work: impl Future<Output = Result<(), Violation>>,
) -> Result<(), Violation> {
    match tokio::time::timeout(SESSION_MAX / 2, work).await {
        Ok(done) => done,
        Err(_) => Err(format!("{who} is stuck")),
    }
}

/// What a session works with.
pub(crate) struct Session<'a> {
    pub(crate) plan: Plan,
    pub(crate) draw: &'a Draw,
    /// When disks stumble.
    stumbles: &'a Draw,
    pub(crate) model: &'a RefCell<Model>,
    pub(crate) sims: Vec<SimDisk>,
    borders: &'a [RoutingKey],
    pub(crate) counts: &'a Counts,
}

impl Session<'_> {
    pub(crate) fn is_down(&self) -> bool {
        self.sims.iter().any(SimDisk::is_down)
    }

    async fn run(self, machine: Machine, store: &SimulatedStore) -> Result<(), Violation> {
        let stack = match Stack::open(&machine, store, self.borders).await {
            Ok(stack) => stack,
            Err(_) if self.plan.trouble != Trouble::None => {
                self.counts.add("starts that failed", 1);
                return Ok(());
            }
            Err(why) => return Err(why),
        };
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

    /// Makes the row of the container, which reclaim looks its name up in. The accounts' own requests are for other tests.
    async fn create_container(&self, stack: &Stack) -> Result<(), Violation> {
        let create = CreateContainer {
            account: key("x").account,
            name: container(),
            id: key("x").container,
            collation: key("x").collation,
            metadata: Metadata::default(),
            public_access: PublicAccess::Private,
            encryption_scope: None,
        };
        match stack.router.write(Write::CreateContainer(create)).await {
            Ok(_) | Err(Error::ContainerExists) => self.model.borrow_mut().container = true,
            // Later sessions try again.
            Err(Error::Full | Error::Overloaded) => {}
            Err(_) if self.plan.trouble != Trouble::None || self.is_down() => {}
            Err(error) => return Err(format!("the container: {error}")),
        }
        Ok(())
    }

    async fn work(&self, stack: &Stack) -> Result<(), Violation> {
        let steps = self.draw.between(10, 150);
        let clients = (0..CLIENTS).map(|number| {
            let client = Client { number, stack, session: self };
            in_time(format!("client {number}"), client.run(steps))
        });
        let times = if self.draw.percent(60) { steps / 12 } else { 0 };
        let work = async {
            // Two at a time: changes of one partition wait for each other, all others do not.
            let splitters = (0..2).map(|number| {
                in_time(format!("splitter {number}"), splitter::run(stack, self, times / 2))
            });
            let (done, split) = join(join_all(clients), join_all(splitters)).await;
            done.into_iter().chain(split).collect()
        };
        let when = (self.stumbles, self.counts);
        let work = Box::pin(async {
            tokio::select! {
                biased;
                done = Box::pin(work) => done,
                never = stumble::run(when, &self.sims, stack.env.clock.as_ref()) => match never {},
            }
        });
        if self.plan.end == End::Kill {
            // The process dies in the middle of things.
            let life = Duration::from_millis(self.draw.between(1, steps * 12));
            if let Ok(done) = tokio::time::timeout(life, work).await {
                return done;
            }
            self.counts.add("kills at work", 1);
            return Ok(());
        }
        work.await
    }

    /// What must hold once the trouble is over, before any restart.
    async fn aftermath(&self, stack: &Stack) -> Result<(), Violation> {
        if self.is_down() || self.plan.end == End::Kill {
            return Ok(());
        }
        let client = Client { number: 0, stack, session: self };
        if self.plan.trouble == Trouble::Full {
            return self.writes_resume(&client).await;
        }
        let alone = self.sims.len() == 1;
        let struck = self.sims.iter().all(|sim| sim.faults_left() == 0);
        if self.plan.trouble == Trouble::SyncError && alone && struck {
            self.counts.add("failed syncs", 1);
            if client.can_write().await? {
                return Err("a write was acknowledged after a failed sync".to_owned());
            }
        }
        Ok(())
    }

    /// A full disk is no damage: once there is room, by more disk or by deleting, writes go through.
    async fn writes_resume(&self, client: &Client<'_>) -> Result<(), Violation> {
        if self.draw.percent(50) {
            Rig::heal(&self.sims, DISK_BYTES);
            self.counts.add("disks grown", 1);
        } else {
            for sim in &self.sims {
                sim.set_faults(Faults::default());
            }
            client.delete_all().await?;
            self.counts.add("disks emptied", 1);
        }
        for _ in 0..200 {
            if client.can_write().await? {
                return Ok(());
            }
            client.stack.env.clock.sleep(Duration::from_millis(50)).await;
        }
        Err("there is room, but writes do not go through".to_owned())
    }

    /// Everything is there, everything can be changed again.
    async fn last_look(self, machine: Machine, store: &SimulatedStore) -> Result<(), Violation> {
        let stack = Stack::open(&machine, store, self.borders).await?;
        let clients: Vec<Client<'_>> =
            (0..CLIENTS).map(|number| Client { number, stack: &stack, session: &self }).collect();
        for client in &clients {
            client.check_all().await?;
        }
        clients[0].check_contests().await?;
        clients[0].check_search().await?;
        self.garbage_is_gone(&stack).await?;
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

    /// After a pass and an audit no more is stored than what some blob may refer to (I11).
    async fn garbage_is_gone(&self, stack: &Stack) -> Result<(), Violation> {
        let live = self.model.borrow().stored_max();
        let mut stored = u64::MAX;
        // Layers of dead page blobs go one at a pass.
        for _ in 0..10 {
            stack.env.clock.sleep(Duration::from_secs(3)).await;
            let extents = stack.capacity.extents().await;
            let data = extents.iter().filter(|info| info.kind == ExtentKind::Data);
            stored = data.map(|info| info.len - info.freed).sum();
            if stored <= live {
                return Ok(());
            }
        }
        Err(format!("{stored} bytes are stored, at most {live} are referred to"))
    }

    /// Bits flip everywhere; what is served is right all the same (I13).
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
            model: self.model,
            sims: self.sims.clone(),
            borders: self.borders,
            counts: self.counts,
        }
    }
}
