//! Writers and copies that take their time between the bytes and the row, and slow readers of bytes
//! that copies share, while audits walk all rows again and again: nothing is freed that somebody
//! still names, is about to name or reads (I10).

use blockyard::coordinator::SimulatedStore;
use blockyard::index::CopiedContent;
use blockyard::index::Guard;
use blockyard::index::NewContent;
use blockyard::index::PutCopy;
use blockyard::index::Share;
use blockyard::index::Write;
use blockyard::index::WriteReply;
use blockyard::types::BlobProperties;
use blockyard::types::Metadata;
use blockyard::types::RoutingKey;
use blockyard::types::Tags;
use futures_util::future::join;
use futures_util::future::join_all;

use crate::calls::Calls;
use crate::draw::Draw;
use crate::index::key;
use crate::rig::Device;
use crate::rig::Plan;
use crate::rig::Rig;
use crate::seeds::Run;
use crate::seeds::Violation;
use crate::stack::Stack;

const DISK_BYTES: u64 = 24 << 20;
const NAMES: u64 = 6;
const WORKERS: u64 = 3;
const READERS: u64 = 3;
/// Milliseconds. Several audits fit into it.
const LONG: u64 = 500;

/// One history.
pub(crate) fn run(seed: u64) -> Run {
    let draw = &Draw::new(seed.wrapping_add(5 << 32));
    let mut rig = Rig::new(seed, 1, DISK_BYTES, Device::Honest);
    let store = SimulatedStore::new();
    let borders = if draw.percent(50) { vec![RoutingKey::blob(&key("3"))] } else { Vec::new() };
    rig.session(draw, Plan::CALM, |machine| async move {
        let stack = Stack::open(&machine, &store, &borders).await?;
        let world = World { calls: Calls::new(&stack, draw) };
        Box::pin(world.play()).await?;
        stack.shutdown().await;
        Ok(())
    })?;
    Ok(rig.trace())
}

struct World<'a> {
    calls: Calls<'a>,
}

impl World<'_> {
    async fn play(&self) -> Result<(), Violation> {
        let steps = self.calls.draw.between(20, 60);
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

    /// Mostly no time, so that extents come to their end, and sometimes long.
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

    /// Looks a blob up, mostly deletes it, and names its bytes in the end.
    async fn copy(&self, name: &str) -> Result<(), Violation> {
        let (stack, source) = (self.calls.stack, self.name());
        let guard = stack.inflight.copy();
        let share =
            Share { key: key(&source), snapshot: None, guard: Guard::default(), range: None };
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
            job: None,
        }));
        drop(stack.router.write(put).await);
        drop(guard);
        Ok(())
    }
}
