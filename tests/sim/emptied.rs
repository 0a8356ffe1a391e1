//! Clients write into a container, delete their blobs and delete the container if it is empty, amid
//! stalls, kills and power cuts. A deletion that is acknowledged has lost no acknowledged write
//! (I18), and a container that is not deleted takes writes after any restart.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use blockyard::coordinator::SimulatedStore;
use blockyard::env::SimDisk;
use blockyard::index::Containers;
use blockyard::index::CreateContainer;
use blockyard::index::DeleteBlob;
use blockyard::index::DeleteContainer;
use blockyard::index::Error;
use blockyard::index::FoundContainer;
use blockyard::index::Guard;
use blockyard::index::History;
use blockyard::index::ListBlobs;
use blockyard::index::ListEntry;
use blockyard::index::LocalRequests;
use blockyard::index::NewBlobFields;
use blockyard::index::NewContent;
use blockyard::index::PutBlob;
use blockyard::index::ReadContainer;
use blockyard::index::Refused;
use blockyard::types::AccountId;
use blockyard::types::BlobKey;
use blockyard::types::BlobName;
use blockyard::types::BlobProperties;
use blockyard::types::CannedAcl;
use blockyard::types::Collation;
use blockyard::types::ContainerId;
use blockyard::types::ContainerName;
use blockyard::types::Crc64;
use blockyard::types::DeleteScope;
use blockyard::types::Metadata;
use blockyard::types::NewKind;
use blockyard::types::Protection;
use blockyard::types::PublicAccess;
use blockyard::types::RoutingKey;
use blockyard::types::Tags;
use bytes::Bytes;
use futures_util::future::join;
use futures_util::future::join_all;

use crate::counts::Counts;
use crate::draw::Draw;
use crate::rig::Device;
use crate::rig::End;
use crate::rig::Plan;
use crate::rig::Rig;
use crate::rig::Trouble;
use crate::seeds::Run;
use crate::seeds::Violation;
use crate::stack::Stack;

const DISK_BYTES: u64 = 24 << 20;
const ACCOUNT: AccountId = AccountId::new(1);
const WRITERS: u64 = 3;
const DELETERS: u64 = 2;
/// A container takes a write at most so long after a restart.
const OPEN_WITHIN: Duration = Duration::from_secs(15);

/// What a blob may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blob {
    /// A write was acknowledged, and no deletion of the blob began since.
    Written,
    /// A write or a deletion has no answer.
    Unknown,
}

/// Blobs by the id of their container and their name; those that are not there are left out.
type Model = BTreeMap<(u64, String), Blob>;

/// The model, and the next id of a container.
#[derive(Debug, Default)]
struct World {
    blobs: Model,
    ids: u64,
}

fn bucket() -> ContainerName {
    ContainerName::new("bucket").unwrap()
}

fn key(container: ContainerId, name: &str) -> BlobKey {
    let name = BlobName::new(name).unwrap();
    BlobKey { account: ACCOUNT, container, collation: Collation::Utf8, name }
}

/// Runs one history.
pub(crate) fn run(seed: u64, counts: &Counts) -> Run {
    let draw = Draw::new(seed.wrapping_add(7 << 32));
    let stalls = Draw::new(seed.wrapping_add(8 << 32));
    let mut rig = Rig::new(seed, 1, DISK_BYTES, Device::Honest);
    let store = SimulatedStore::new();
    // The container's row and its blobs may be in different partitions.
    let table = RoutingKey::container_range(ACCOUNT, ContainerId::new(0));
    let border = table.high().unwrap().clone();
    let borders = if draw.percent(70) { vec![border] } else { Vec::new() };
    let world = RefCell::new(World::default());
    let ends = [End::Kill, End::PowerCut, End::Shutdown];
    for _ in 0..draw.between(2, 4) {
        let plan = Plan { trouble: Trouble::None, end: *draw.one(&ends).unwrap() };
        let sims = rig.sims.clone();
        let (draw, store, borders, world) = (&draw, &store, &borders, &world);
        let stalls = &stalls;
        rig.session(draw, plan, |machine| async move {
            let stack = Stack::open(&machine, store, borders).await?;
            let session = Session::new(&stack, draw, world, counts);
            session.is_open().await?;
            session.play(plan, (&sims, stalls)).await?;
            if plan.end == End::Shutdown {
                stack.shutdown().await;
            }
            Ok(())
        })?;
        store.crash();
    }
    let (draw, store, borders, world) = (&draw, &store, &borders, &world);
    rig.session(draw, Plan::CALM, |machine| async move {
        let stack = Stack::open(&machine, store, borders).await?;
        let session = Session::new(&stack, draw, world, counts);
        session.is_open().await?;
        session.check().await?;
        stack.shutdown().await;
        Ok(())
    })?;
    Ok(rig.trace())
}

struct Session<'a> {
    stack: &'a Stack,
    containers: Arc<Containers>,
    draw: &'a Draw,
    world: &'a RefCell<World>,
    counts: &'a Counts,
}

impl<'a> Session<'a> {
    fn new(
        stack: &'a Stack,
        draw: &'a Draw,
        world: &'a RefCell<World>,
        counts: &'a Counts,
    ) -> Self {
        let clock = Arc::clone(&stack.env.clock);
        let containers = Arc::new(Containers {
            router: Arc::clone(&stack.router),
            inflight: stack.inflight.clone(),
            requests: LocalRequests::shared(stack.inflight.clone(), Arc::clone(&clock)),
            clock,
        });
        Self { stack, containers, draw, world, counts }
    }

    async fn play(&self, plan: Plan, stalls: (&[SimDisk], &Draw)) -> Result<(), Violation> {
        let steps = self.draw.between(5, 25);
        let work = async {
            let writers = join_all((0..WRITERS).map(|number| self.write(number, steps)));
            let deleters = join_all((0..DELETERS).map(|_| self.delete(steps)));
            let (wrote, deleted) = join(writers, deleters).await;
            wrote.into_iter().chain(deleted).collect::<Result<(), Violation>>()
        };
        let work = async {
            tokio::select! {
                biased;
                done = work => done,
                never = self.stall(stalls) => match never {},
            }
        };
        if plan.end == End::Kill {
            let life = Duration::from_millis(self.draw.between(1, steps * 30));
            if let Ok(done) = tokio::time::timeout(life, Box::pin(work)).await {
                return done;
            }
            self.counts.add("kills at work", 1);
            return Ok(());
        }
        Box::pin(work).await
    }

    /// Makes syncs take long now and then, so that commits overlap what is done meanwhile.
    async fn stall(&self, (sims, draw): (&[SimDisk], &Draw)) -> std::convert::Infallible {
        loop {
            self.stack.env.clock.sleep(Duration::from_millis(draw.between(5, 300))).await;
            let time = Duration::from_millis(draw.between(5, 400));
            sims.iter().for_each(|sim| sim.stall(time));
            self.stack.env.clock.sleep(time).await;
        }
    }

    async fn pause(&self, milliseconds: u64) {
        let time = Duration::from_millis(self.draw.between(0, milliseconds));
        self.stack.env.clock.sleep(time).await;
    }

    /// The container, which is made if there is none.
    async fn find(&self) -> Result<Option<FoundContainer>, Violation> {
        match self.stack.router.ask(ReadContainer(ACCOUNT, bucket())).await {
            Ok(record) => {
                return Ok(Some(FoundContainer {
                    protection: Protection::default(),
                    account: ACCOUNT,
                    name: bucket(),
                    id: record.id,
                }));
            }
            Err(Error::Refused(Refused::ContainerNotFound)) => {}
            Err(Error::Overloaded) => return Ok(None),
            Err(error) => return Err(format!("the container cannot be read: {error}")),
        }
        let id = {
            let mut world = self.world.borrow_mut();
            world.ids += 1;
            ContainerId::new(world.ids)
        };
        let create = CreateContainer {
            account: ACCOUNT,
            name: bucket(),
            id,
            collation: Collation::Utf8,
            metadata: Metadata::default(),
            public_access: PublicAccess::Private,
            encryption_scope: None,
            owner: None,
            region: None,
            acl: CannedAcl::Private,
            object_lock: false,
        };
        match self.stack.router.tell(create).await {
            Ok(_) => {
                self.counts.add("containers made", 1);
                Ok(Some(FoundContainer {
                    account: ACCOUNT,
                    name: bucket(),
                    id,
                    protection: Protection::default(),
                }))
            }
            Err(Error::Refused(Refused::ContainerExists) | Error::Overloaded) => Ok(None),
            Err(error) => Err(format!("the container cannot be made: {error}")),
        }
    }

    /// Writes blobs of one client and deletes them again.
    async fn write(&self, number: u64, steps: u64) -> Result<(), Violation> {
        for step in 0..steps {
            let Some(found) = self.find().await? else { continue };
            // The body arrives, sometimes slowly.
            self.pause(if self.draw.percent(20) { 400 } else { 10 }).await;
            let name = format!("{number}/{}", step % 3);
            self.put(&found, &name).await?;
            self.pause(20).await;
            if self.draw.percent(95) {
                self.remove(&found, &name).await?;
            }
            self.pause(200).await;
        }
        Ok(())
    }

    /// A Put Blob, as the front end makes it.
    async fn put(&self, found: &FoundContainer, name: &str) -> Result<(), Violation> {
        let place = (found.id.get(), name.to_owned());
        let noted = self.stack.inflight.commit();
        let noted = match self.containers.enter(noted, found).await {
            Ok(noted) => noted,
            Err(Error::Refused(Refused::ContainerNotFound)) => {
                self.counts.add("writes into deleted containers refused", 1);
                return Ok(());
            }
            Err(Error::Overloaded) => return Ok(()),
            Err(error) => return Err(format!("{name} cannot be written: {error}")),
        };
        let before = self.world.borrow_mut().blobs.insert(place.clone(), Blob::Unknown);
        let put = PutBlob {
            key: key(found.id, name),
            guard: Guard::default(),
            properties: BlobProperties::default(),
            metadata: Metadata::default(),
            kind: NewKind::Block,
            tags: Tags::default(),
            content: NewContent::Inline(Bytes::from_static(b"x")),
            crc64: Crc64::of(b"x"),
            tier: None,
            fields: NewBlobFields::default(),
        };
        let answer = self.stack.router.tell(put).await;
        drop(noted);
        let blobs = &mut self.world.borrow_mut().blobs;
        match (answer, before) {
            (Ok(_), _) => {
                self.counts.add("blobs written", 1);
                blobs.insert(place, Blob::Written);
            }
            (Err(Error::Overloaded | Error::Full(_)), None) => {
                blobs.remove(&place);
            }
            (Err(Error::Overloaded | Error::Full(_)), Some(before)) => {
                blobs.insert(place, before);
            }
            (Err(error), _) => return Err(format!("{name} cannot be written: {error}")),
        }
        Ok(())
    }

    async fn remove(&self, found: &FoundContainer, name: &str) -> Result<(), Violation> {
        let place = (found.id.get(), name.to_owned());
        let before = self.world.borrow().blobs.get(&place).copied();
        if before.is_some() {
            self.world.borrow_mut().blobs.insert(place.clone(), Blob::Unknown);
        }
        let guard = Guard::default();
        let delete = DeleteBlob { key: key(found.id, name), guard, scope: DeleteScope::Blob };
        match self.stack.router.tell(delete).await {
            Ok(_) => {
                self.world.borrow_mut().blobs.remove(&place);
                Ok(())
            }
            Err(Error::Refused(Refused::BlobNotFound)) if before != Some(Blob::Written) => {
                self.world.borrow_mut().blobs.remove(&place);
                Ok(())
            }
            Err(Error::Overloaded | Error::Full(_)) => {
                if let Some(before) = before {
                    self.world.borrow_mut().blobs.insert(place, before);
                }
                Ok(())
            }
            Err(error) => Err(format!("{name} cannot be deleted: {error}")),
        }
    }

    /// Deletes the container if it is empty, again and again.
    async fn delete(&self, steps: u64) -> Result<(), Violation> {
        for _ in 0..steps {
            self.pause(100).await;
            let Some(found) = self.find().await? else { continue };
            let delete = DeleteContainer {
                account: ACCOUNT,
                name: bucket(),
                guard: Guard::default(),
                closed: None,
                restorable_for: None,
            };
            match self.containers.delete_if_empty(delete, History::All).await {
                Ok(()) => self.is_not_lost(&found)?,
                Err(Error::Refused(Refused::ContainerNotEmpty)) => {
                    self.counts.add("deletions of containers with blobs refused", 1);
                }
                Err(Error::Refused(Refused::ContainerNotFound) | Error::Overloaded) => {}
                Err(error) => return Err(format!("the container cannot be deleted: {error}")),
            }
        }
        Ok(())
    }

    /// Checks that the container that was deleted had no blob whose write was acknowledged.
    fn is_not_lost(&self, found: &FoundContainer) -> Result<(), Violation> {
        self.counts.add("containers deleted", 1);
        // Another client may have deleted the container that was found and made the next one.
        let world = self.world.borrow();
        let gone = found.id.get();
        let lost =
            world.blobs.iter().find(|((id, _), blob)| *id <= gone && **blob == Blob::Written);
        match lost {
            Some((blob, _)) => Err(format!("container {gone} was deleted with {blob:?} in it")),
            None => Ok(()),
        }
    }

    /// Checks after a restart that the container takes a write soon.
    async fn is_open(&self) -> Result<(), Violation> {
        let begun = self.stack.env.clock.monotonic();
        let found = self.find().await?.ok_or("there is no container and none can be made")?;
        let record = self.stack.router.ask(ReadContainer(ACCOUNT, bucket())).await;
        if record.is_ok_and(|record| record.closed().is_some()) {
            self.counts.add("closings left behind", 1);
        }
        self.put(&found, "probe").await?;
        self.remove(&found, "probe").await?;
        let took = self.stack.env.clock.monotonic() - begun;
        if took > OPEN_WITHIN {
            return Err(format!("the container takes no write for {took:?} after a restart"));
        }
        Ok(())
    }

    /// Checks that the container has what was written into it.
    async fn check(&self) -> Result<(), Violation> {
        let found = self.find().await?.ok_or("the container is gone")?;
        let list = ListBlobs::first_page(ACCOUNT, found.id, Collation::Utf8, 1_000);
        let page = self.stack.router.list(&list).await.map_err(|error| error.to_string())?;
        let mut listed = Vec::new();
        for entry in page.entries {
            match entry {
                ListEntry::Blob { name, .. } => listed.push(name),
                ListEntry::VersionsOnly { .. }
                | ListEntry::Uncommitted { .. }
                | ListEntry::Upload { .. }
                | ListEntry::Prefix { .. } => {
                    return Err(format!("unexpected {entry:?}"));
                }
            }
        }
        for ((id, name), blob) in &self.world.borrow().blobs {
            let is_there = *id == found.id.get() && listed.contains(name);
            if *blob == Blob::Written && !is_there {
                return Err(format!("{name} of container {id} is lost; there is {listed:?}"));
            }
        }
        Ok(())
    }
}
