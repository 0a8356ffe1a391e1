//! Readers that hold what they looked up while the same blobs are written over and deleted, on
//! disks whose syncs stall: a read gets the bytes of one version, and one that never ends keeps no
//! other space from coming back.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;

use blockyard::capacity::Capacity;
use blockyard::capacity::ExtentKind;
use blockyard::coordinator::SimulatedStore;
use blockyard::env::SimDisk;
use blockyard::index::BlobView;
use blockyard::index::DeleteBlob;
use blockyard::index::Error;
use blockyard::index::Guard;
use blockyard::index::Piece;
use blockyard::index::PutBlob;
use blockyard::index::Read;
use blockyard::index::ReadBlob;
use blockyard::index::ReadReply;
use blockyard::index::Write;
use blockyard::index::inflight::ReadGuard;
use blockyard::types::BlobProperties;
use blockyard::types::Crc64;
use blockyard::types::DeleteScope;
use blockyard::types::ExtentId;
use blockyard::types::Metadata;
use blockyard::types::NewKind;
use blockyard::types::RoutingKey;
use blockyard::types::Tags;
use futures_util::future::join_all;
use futures_util::future::join3;

use crate::draw::Draw;
use crate::draw::content;
use crate::index::key;
use crate::rig::Device;
use crate::rig::Plan;
use crate::rig::Rig;
use crate::seeds::Run;
use crate::seeds::Violation;
use crate::stack::Stack;

const DISK_BYTES: u64 = 24 << 20;
/// Few, so that reads and changes of a name meet.
const NAMES: u64 = 4;
const READERS: u64 = 4;
/// The blob of the reader that does not end.
const HELD: &str = "held";

/// One history.
pub(crate) fn run(seed: u64) -> Run {
    let draw = Draw::new(seed.wrapping_add(3 << 32));
    let stalls = Draw::new(seed.wrapping_add(4 << 32));
    let mut rig = Rig::new(seed, 1, DISK_BYTES, Device::Honest);
    let store = SimulatedStore::new();
    let borders = if draw.percent(50) { vec![RoutingKey::blob(&key("2"))] } else { Vec::new() };
    let sims = rig.sims.clone();
    let draw = &draw;
    rig.session(draw, Plan::CALM, |machine| async move {
        let stack = Stack::open(&machine, &store, &borders).await?;
        let world = World { stack: &stack, draw, tags: Cell::default() };
        Box::pin(world.play((&sims, &stalls))).await?;
        stack.shutdown().await;
        Ok(())
    })?;
    Ok(rig.trace())
}

struct World<'a> {
    stack: &'a Stack,
    draw: &'a Draw,
    tags: Cell<u64>,
}

/// What a read has looked up, and what keeps it.
struct Opened {
    view: Box<BlobView>,
    _guard: ReadGuard,
}

impl World<'_> {
    async fn play(&self, stalls: (&[SimDisk], &Draw)) -> Result<(), Violation> {
        self.put(HELD).await;
        // The extent that the reader names comes to its end, so that what is written later lies
        // elsewhere.
        for _ in 0..12 {
            self.put("0").await;
        }
        let held = if self.draw.percent(50) { self.open(HELD).await? } else { None };
        let steps = self.draw.between(20, 80);
        let writers = join_all((0..2).map(|_| self.change(steps)));
        let readers = join_all((0..READERS).map(|_| self.read(steps / 4)));
        let (_, read, ()) = join3(writers, readers, self.stall(stalls)).await;
        read.into_iter().collect::<Result<Vec<()>, Violation>>()?;
        self.delete(HELD).await;
        self.space_comes_back(held.as_ref()).await?;
        match held {
            Some(held) => self.finish(&held).await,
            None => Ok(()),
        }
    }

    /// Syncs that take seconds: what a commit drops is known before the commit is seen.
    async fn stall(&self, (sims, draw): (&[SimDisk], &Draw)) {
        for _ in 0..draw.between(1, 3) {
            let pause = Duration::from_millis(draw.between(10, 800));
            self.stack.env.clock.sleep(pause).await;
            let time = Duration::from_millis(draw.between(500, 4_000));
            sims.iter().for_each(|sim| sim.stall(time));
            self.stack.env.clock.sleep(time).await;
        }
    }

    /// Writes names over and deletes them.
    async fn change(&self, steps: u64) {
        for _ in 0..steps {
            let name = self.name();
            if self.draw.percent(25) {
                self.delete(&name).await;
            } else {
                self.put(&name).await;
            }
            self.pause(60).await;
        }
    }

    fn name(&self) -> String {
        self.draw.between(0, NAMES - 1).to_string()
    }

    async fn pause(&self, milliseconds: u64) {
        let time = Duration::from_millis(self.draw.between(0, milliseconds));
        self.stack.env.clock.sleep(time).await;
    }

    /// A stalled disk refuses some, which is no matter here.
    async fn put(&self, name: &str) {
        self.tags.set(self.tags.get() + 1);
        let bytes = content(self.tags.get(), self.draw.between(30_000, 48_000));
        let (crc64, len) = (Crc64::of(&bytes), bytes.len() as u64);
        let Ok(stored) = self.stack.pool.store(vec![bytes], len).await else { return };
        let put = Write::PutBlob(PutBlob {
            key: key(name),
            guard: Guard::default(),
            properties: BlobProperties::default(),
            metadata: Metadata::default(),
            kind: NewKind::Block,
            tags: Tags::default(),
            content: stored.content(),
            crc64,
            tier: None,
        });
        let committing = stored.committing();
        if let Err(Error::Overloaded) = self.stack.router.write(put).await {
            committing.refused();
        }
    }

    async fn delete(&self, name: &str) {
        let scope = DeleteScope::Blob;
        let delete =
            Write::DeleteBlob(DeleteBlob { key: key(name), guard: Guard::default(), scope });
        drop(self.stack.router.write(delete).await);
    }

    /// Reads that begin at any moment of a commit, and go on for longer than it takes.
    async fn read(&self, steps: u64) -> Result<(), Violation> {
        for _ in 0..steps {
            self.pause(200).await;
            if let Some(opened) = self.open(&self.name()).await? {
                self.pause(3_000).await;
                self.finish(&opened).await?;
            }
        }
        Ok(())
    }

    async fn open(&self, name: &str) -> Result<Option<Opened>, Violation> {
        let mut guard = self.stack.inflight.read(self.stack.env.clock.monotonic());
        let (key, range) = (key(name), None);
        let position = RoutingKey::blob(&key);
        let read = ReadBlob { key, snapshot: None, guard: Guard::default(), range, pieces: true };
        match self.stack.router.read(position.as_bytes(), Read::Blob(read)).await {
            Ok(ReadReply::Blob(view)) => {
                guard.names(extents(&view));
                Ok(Some(Opened { view, _guard: guard }))
            }
            Err(Error::BlobNotFound) => Ok(None),
            Ok(other) => Err(format!("{name}: unexpected answer {other:?}")),
            Err(error) => Err(format!("{name}: {error}")),
        }
    }

    /// What was looked up is there.
    async fn finish(&self, opened: &Opened) -> Result<(), Violation> {
        let mut bytes = Vec::new();
        for piece in &opened.view.pieces {
            let Piece::Stored { location, range } = piece else {
                return Err(format!("not in an extent: {piece:?}"));
            };
            let read = self.stack.capacity.read(location, range.clone()).await;
            bytes.extend(read.map_err(|error| format!("a running read: {error}"))?.concat());
        }
        if Crc64::of(&bytes) != opened.view.record.crc64 {
            return Err("a read shows other bytes than it looked up".to_owned());
        }
        Ok(())
    }

    /// One reader may not have ended: beside its extents no more is stored than the names refer to.
    async fn space_comes_back(&self, held: Option<&Opened>) -> Result<(), Violation> {
        let kept = held.map(|held| extents(&held.view)).unwrap_or_default();
        let mut stored = 0;
        for _ in 0..20 {
            self.stack.env.clock.sleep(Duration::from_secs(1)).await;
            let infos = self.stack.capacity.extents().await;
            let others = infos
                .iter()
                .filter(|info| info.kind == ExtentKind::Data && !kept.contains(&info.extent));
            stored = others.map(|info| info.len - info.freed).sum();
            if stored <= NAMES * 64_000 {
                return Ok(());
            }
        }
        Err(format!("{stored} bytes are stored beside what a stalled reader holds"))
    }
}

fn extents(view: &BlobView) -> BTreeSet<ExtentId> {
    view.pieces.iter().filter_map(Piece::extent).collect()
}
