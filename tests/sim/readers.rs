//! Readers that read what they looked up while the same blobs are overwritten and deleted, on disks
//! whose syncs stall. A read gets the bytes of one version. A read that never ends does not prevent
//! other space from being freed.

use std::time::Duration;

use blockyard::capacity::ExtentInfo;
use blockyard::coordinator::SimulatedStore;
use blockyard::env::SimDisk;
use blockyard::types::RoutingKey;
use futures_util::future::join_all;
use futures_util::future::join3;

use crate::calls::Calls;
use crate::calls::Opened;
use crate::calls::extents;
use crate::draw::Draw;
use crate::index::key;
use crate::rig::Device;
use crate::rig::Plan;
use crate::rig::Rig;
use crate::seeds::Run;
use crate::seeds::Violation;
use crate::stack::Stack;

const DISK_BYTES: u64 = 24 << 20;
/// The number of names. There are few, so that reads and changes of a name overlap.
const NAMES: u64 = 4;
const READERS: u64 = 4;
/// The blob of the read that never ends.
const HELD: &str = "held";

/// Runs one history.
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
        let world = World { calls: Calls::new(&stack, draw) };
        Box::pin(world.play((&sims, &stalls))).await?;
        stack.shutdown().await;
        Ok(())
    })?;
    Ok(rig.trace())
}

struct World<'a> {
    calls: Calls<'a>,
}

impl World<'_> {
    async fn play(&self, stalls: (&[SimDisk], &Draw)) -> Result<(), Violation> {
        self.calls.put(HELD, 0).await;
        // Fills the extent that the read uses, so that later bytes are in other extents.
        for _ in 0..12 {
            self.calls.put("0", 0).await;
        }
        let held = if self.calls.draw.percent(50) { self.calls.open(HELD).await? } else { None };
        let steps = self.calls.draw.between(20, 80);
        let writers = join_all((0..2).map(|_| self.change(steps)));
        let readers = join_all((0..READERS).map(|_| self.read(steps / 4)));
        let (_, read, ()) = join3(writers, readers, self.stall(stalls)).await;
        read.into_iter().collect::<Result<Vec<()>, Violation>>()?;
        self.calls.delete(HELD).await;
        self.space_comes_back(held.as_ref()).await?;
        match held {
            Some(held) => self.calls.finish(&held).await,
            None => Ok(()),
        }
    }

    /// Makes syncs take seconds: the garbage of a commit is known before the commit is visible.
    async fn stall(&self, (sims, draw): (&[SimDisk], &Draw)) {
        for _ in 0..draw.between(1, 3) {
            let pause = Duration::from_millis(draw.between(10, 800));
            self.calls.stack.env.clock.sleep(pause).await;
            let time = Duration::from_millis(draw.between(500, 4_000));
            sims.iter().for_each(|sim| sim.stall(time));
            self.calls.stack.env.clock.sleep(time).await;
        }
    }

    /// Overwrites and deletes blobs.
    async fn change(&self, steps: u64) {
        for _ in 0..steps {
            let name = self.name();
            if self.calls.draw.percent(25) {
                self.calls.delete(&name).await;
            } else {
                self.calls.put(&name, 0).await;
            }
            self.calls.pause(60).await;
        }
    }

    fn name(&self) -> String {
        self.calls.draw.between(0, NAMES - 1).to_string()
    }

    /// Reads that begin at any moment of a commit and last longer than the commit.
    async fn read(&self, steps: u64) -> Result<(), Violation> {
        for _ in 0..steps {
            self.calls.pause(200).await;
            self.calls.read(&self.name(), 3_000).await?;
        }
        Ok(())
    }

    /// Checks that no more bytes are stored than the names refer to, except in the extents of a
    /// read that has not ended.
    async fn space_comes_back(&self, held: Option<&Opened>) -> Result<(), Violation> {
        let kept = held.map(|held| extents(&held.view)).unwrap_or_default();
        let count = |info: &ExtentInfo| !kept.contains(&info.extent);
        self.calls.space_comes_back(count, NAMES * 64_000).await
    }
}
