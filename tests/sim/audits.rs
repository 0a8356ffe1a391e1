//! Audits walk all rows repeatedly, in rounds that kills interrupt. At the same time writers and
//! copies pause between storing bytes and writing the row, and slow readers read bytes that copies
//! share. No bytes are freed that a row names, that a row is about to name, or that are being read
//! (I10). Bytes that no row names are freed eventually (I11).

use blockyard::capacity::ExtentInfo;
use blockyard::capacity::ExtentState;
use blockyard::coordinator::Coordinator;
use blockyard::coordinator::SimulatedStore;
use blockyard::index::CopiedContent;
use blockyard::index::Guard;
use blockyard::index::NewBlobFields;
use blockyard::index::NewContent;
use blockyard::index::PutCopy;
use blockyard::index::Share;
use blockyard::index::Write;
use blockyard::index::WriteReply;
use blockyard::reclaim::ReclaimConfig;
use blockyard::types::BlobProperties;
use blockyard::types::Metadata;
use blockyard::types::RoutingKey;
use blockyard::types::Tags;
use futures_util::future::join;
use futures_util::future::join_all;

use crate::calls::Calls;
use crate::counts::Counts;
use crate::draw::Draw;
use crate::index::key;
use crate::rig::Device;
use crate::rig::End;
use crate::rig::Machine;
use crate::rig::Plan;
use crate::rig::Rig;
use crate::rig::Trouble;
use crate::seeds::Run;
use crate::seeds::Violation;
use crate::stack::Stack;
use crate::stack::reclaim_config;
use blockyard::types::Revision;

const DISK_BYTES: u64 = 24 << 20;
const NAMES: u64 = 6;
const WORKERS: u64 = 3;
const READERS: u64 = 3;
/// Milliseconds. Several audits fit into it.
const LONG: u64 = 500;

/// Runs one history and adds to `counts` what happened in it.
pub(crate) fn run(seed: u64, counts: &Counts) -> Run {
    let draw = &Draw::new(seed.wrapping_add(5 << 32));
    let mut rig = Rig::new(seed, 1, DISK_BYTES, Device::Honest);
    let store = &SimulatedStore::new();
    let borders = &if draw.percent(50) { vec![RoutingKey::blob(&key("3"))] } else { Vec::new() };
    // One walk covers few extents.
    let ranges = usize::try_from(draw.between(2, 5)).unwrap();
    let reclaim = &ReclaimConfig { audit_ranges_max: ranges, ..reclaim_config() };
    for _ in 0..draw.between(1, 3) {
        let end = *draw.one(&[End::PowerCut, End::Kill, End::Shutdown]).unwrap();
        let plan = Plan { trouble: Trouble::None, end };
        rig.session(draw, plan, |machine| async move {
            let stack = Stack::open_with(&machine, store, borders, reclaim.clone()).await?;
            let world = World { calls: Calls::new(&stack, draw) };
            Box::pin(world.play()).await?;
            // The pause ends at any moment of an audit.
            world.calls.pause(LONG).await;
            if end == End::Shutdown {
                stack.shutdown().await;
            }
            Ok(())
        })?;
        store.crash();
    }
    rig.session(draw, Plan::CALM, |machine| async move {
        if is_cut_off(&machine, store).await {
            counts.add("rounds cut off", 1);
        }
        let stack = Stack::open_with(&machine, store, borders, reclaim.clone()).await?;
        let world = World { calls: Calls::new(&stack, draw) };
        Box::pin(world.play()).await?;
        // An audit skips open extents.
        let is_sealed = |info: &ExtentInfo| info.state == ExtentState::Sealed;
        world.calls.space_comes_back(is_sealed, NAMES * 64_000).await?;
        stack.shutdown().await;
        Ok(())
    })?;
    Ok(rig.trace())
}

/// Whether an audit was in the middle of a round when the last session ended.
async fn is_cut_off(machine: &Machine, store: &SimulatedStore) -> bool {
    let coordinator = store.open(&machine.env);
    matches!(coordinator.get(b"audit-cursor").await, Ok(Some(_)))
}

struct World<'a> {
    calls: Calls<'a>,
}

impl World<'_> {
    async fn play(&self) -> Result<(), Violation> {
        let steps = self.calls.draw.between(10, 40);
        let workers = join_all((0..WORKERS).map(|_| self.work(steps)));
        let readers = join_all((0..READERS).map(|_| self.read(steps / 2)));
        let (worked, read) = join(workers, readers).await;
        worked.into_iter().chain(read).collect::<Result<Vec<()>, Violation>>()?;
        for name in 0..NAMES {
            self.calls.read(&name.to_string(), 0).await?;
        }
        Ok(())
    }

    fn name(&self) -> String {
        self.calls.draw.between(0, NAMES - 1).to_string()
    }

    /// Mostly zero, so that extents fill up, and sometimes long.
    fn wait(&self) -> u64 {
        if self.calls.draw.percent(40) { LONG } else { 0 }
    }

    async fn work(&self, steps: u64) -> Result<(), Violation> {
        for _ in 0..steps {
            let name = self.name();
            match self.calls.draw.between(0, 9) {
                0..=5 => self.calls.put(&name, self.wait()).await,
                6..=8 => self.copy(&name).await?,
                _ => self.calls.delete(&name).await,
            }
            self.calls.read(&name, 0).await?;
        }
        Ok(())
    }

    async fn read(&self, steps: u64) -> Result<(), Violation> {
        for _ in 0..steps {
            self.calls.pause(100).await;
            self.calls.read(&self.name(), LONG).await?;
        }
        Ok(())
    }

    /// Looks a blob up, mostly deletes it, and then writes a row that names its bytes.
    async fn copy(&self, name: &str) -> Result<(), Violation> {
        let (stack, source) = (self.calls.stack, self.name());
        let guard = stack.inflight.copy();
        let share = Share {
            key: key(&source),
            revision: Revision::Current,
            guard: Guard::default(),
            range: None,
        };
        let Ok(WriteReply::Shared(shared)) =
            stack.router.write(Write::Share(Box::new(share))).await
        else {
            return Ok(());
        };
        let Some(content) = shared.content else { return Ok(()) };
        let CopiedContent::Whole(NewContent::Stored(locations) | NewContent::Shared(locations)) =
            &content
        else {
            return Err(format!("{source} is one piece, not {content:?}"));
        };
        guard.met(locations.iter().map(|location| location.extent));
        if self.calls.draw.percent(70) {
            self.calls.delete(&source).await;
        }
        self.calls.pause(self.wait()).await;
        let put = Write::PutCopy(Box::new(PutCopy {
            key: key(name),
            guard: Guard::default(),
            kind: shared.record.kind,
            properties: BlobProperties::default(),
            metadata: Metadata::default(),
            tags: Tags::default(),
            tier: None,
            content,
            crc64: shared.record.crc64,
            copy: None,
            increment: None,
            job: None,
            fields: NewBlobFields::default(),
        }));
        drop(stack.router.write(put).await);
        drop(guard);
        Ok(())
    }
}
