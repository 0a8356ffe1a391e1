//! A simulated disk with faults. A seed determines them, so a test can repeat a run exactly.
//!
//! A power failure keeps any part of the writes that were not synced, in any order, torn between
//! sectors. The same holds for names in folders that were not synced. Reads, writes and syncs fail,
//! syncs report success without effect, space runs out, bits flip, and the power fails at any
//! chosen operation. Small virtual delays let operations interleave.
//!
//! Main path: the handles of this file -> `world.rs` (files, names, faults) -> `image.rs` (bytes of
//! a file), `names.rs` (changes of names). `faults.rs` lists the faults, `power.rs` decides which
//! changes survive, `dice.rs` makes random decisions and keeps the trace.
//!
//! It simulates neither a corrupt file system nor the lock of a data directory.

mod dice;
mod faults;
mod image;
mod names;
mod power;
#[cfg(test)]
mod tests;
mod world;

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::env::Disk;
use crate::env::DiskError;
use crate::env::DiskFile;
use crate::env::DiskTimes;
use crate::env::Space;
use crate::env::disk_sim::image::PAGE_BYTES;
use crate::env::disk_sim::power::What;
use crate::env::disk_sim::world::Call;
use crate::env::disk_sim::world::Fate;
use crate::env::disk_sim::world::World;

pub use faults::{Fault, Faults};

/// Longest delay of an operation. Tokio's timers count whole milliseconds.
const DELAY_MS_MAX: u64 = 2;

/// The control of a simulated disk: a test uses it to open the disk and to cause faults. Clones
/// share the disk.
#[derive(Clone, Debug)]
pub struct SimDisk {
    world: Arc<Mutex<World>>,
}

impl SimDisk {
    /// An empty disk of this capacity, without faults.
    #[must_use]
    pub fn new(seed: u64, capacity_bytes: u64) -> Self {
        Self { world: Arc::new(Mutex::new(World::new(seed, capacity_bytes))) }
    }

    /// The disk for the program under test. The handle is valid until the next restart.
    #[must_use]
    pub fn disk(&self) -> Arc<dyn Disk> {
        let generation = self.world().generation;
        Arc::new(Handle { world: Arc::clone(&self.world), generation })
    }

    /// Sets the probabilities of faults.
    pub fn set_faults(&self, faults: Faults) {
        self.world().faults = faults;
    }

    /// Makes operations that begin within `time` end only after it.
    #[expect(clippy::disallowed_methods, reason = "the seam")]
    pub fn stall(&self, time: Duration) {
        self.world().stalled_until = Some(tokio::time::Instant::now() + time);
    }

    /// As [`Self::stall`], for syncs only. Reads and writes are not delayed.
    #[expect(clippy::disallowed_methods, reason = "the seam")]
    pub fn stall_syncs(&self, time: Duration) {
        self.world().syncs_stalled_until = Some(tokio::time::Instant::now() + time);
    }

    /// Causes this fault once: `skip` operations that it can affect succeed, and it affects the one
    /// after them.
    pub fn fail_once(&self, fault: Fault, skip: u64) {
        self.world().one_time_faults.push((fault, skip));
    }

    /// How many faults of [`Self::fail_once`] have not happened yet.
    #[must_use]
    pub fn faults_left(&self) -> usize {
        self.world().one_time_faults.len()
    }

    /// Makes the power fail at this operation, in the count of [`Self::operations`]. It and all
    /// later operations fail until a restart.
    pub fn crash_at(&self, operation: u64) {
        self.world().crash_at = Some(operation);
    }

    /// Whether the power has failed at the chosen operation and the disk was not restarted since.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.world().down
    }

    /// Makes the power fail now, if it has not already, and restarts. Earlier handles fail. The
    /// disk keeps durable bytes and a random part of the other changes.
    #[must_use]
    pub fn restart_after_power_cut(&self) -> Arc<dyn Disk> {
        self.world().power_cut();
        self.disk()
    }

    /// Simulates a kill and a restart of the process. Earlier handles fail. The disk keeps all
    /// written bytes.
    #[must_use]
    pub fn restart_after_kill(&self) -> Arc<dyn Disk> {
        self.world().kill();
        self.disk()
    }

    /// Makes all removals of files durable without a sync, as Linux file systems do within seconds.
    pub fn make_removals_durable(&self) {
        self.world().make_removals_durable();
    }

    /// Changes the capacity. Stored bytes stay, even if they exceed it.
    pub fn set_capacity(&self, bytes: u64) {
        self.world().capacity_pages = bytes / PAGE_BYTES;
    }

    /// Flips a bit of a stored byte. Returns false if no byte was written there.
    #[must_use]
    pub fn flip(&self, path: &str, offset: u64) -> bool {
        self.world().flip(path, offset)
    }

    /// Flips a bit of a random written byte below a folder. Returns its path and offset.
    #[must_use]
    pub fn flip_random(&self, folder: &str) -> Option<(String, u64)> {
        let mut world = self.world();
        let (path, offset) = world.pick(|path| path.starts_with(folder))?;
        world.flip(&path, offset).then_some((path, offset))
    }

    /// Number of operations, without those of invalid handles.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.world().operations
    }

    /// A digest of all operations and their bytes. It is equal for two runs with the same
    /// operations in the same order.
    #[must_use]
    pub fn trace(&self) -> u64 {
        self.world().dice.trace()
    }

    fn world(&self) -> MutexGuard<'_, World> {
        lock(&self.world)
    }
}

/// Ignores a poisoned lock: after a failed assertion of a test, its report matters and not the
/// state of the disk.
fn lock(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn delay(world: &Mutex<World>, action: &str) {
    let (ms, stalled) = {
        let mut world = lock(world);
        let syncs = world.syncs_stalled_until.filter(|_| action == "sync");
        (world.dice.below(DELAY_MS_MAX + 1), world.stalled_until.max(syncs))
    };
    if ms == 0 {
        tokio::task::yield_now().await;
    } else {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
    if let Some(until) = stalled {
        tokio::time::sleep_until(until).await;
    }
}

/// Executes an operation: waits a moment, counts it, and does the work unless the power fails.
async fn operate<T>(
    world: &Mutex<World>,
    generation: u64,
    call: Call<'_>,
    work: impl FnOnce(&mut World, &Call<'_>) -> Result<T, DiskError>,
) -> Result<T, DiskError> {
    delay(world, call.action).await;
    let mut world = lock(world);
    match world.enter(generation, &call)? {
        Fate::Answered => work(&mut world, &call),
        Fate::Unanswered => work(&mut world, &call).and(Err(call.dead())),
    }
}

#[derive(Debug)]
struct Handle {
    world: Arc<Mutex<World>>,
    generation: u64,
}

impl Handle {
    async fn operate<T>(
        &self,
        action: &'static str,
        path: &str,
        work: impl FnOnce(&mut World, &Call<'_>) -> Result<T, DiskError>,
    ) -> Result<T, DiskError> {
        operate(&self.world, self.generation, Call { action, path, offset: 0, len: 0 }, work).await
    }

    fn file(&self, path: &str, inode: u64) -> Arc<dyn DiskFile> {
        Arc::new(FileHandle {
            world: Arc::clone(&self.world),
            generation: self.generation,
            path: path.into(),
            inode,
        })
    }
}

#[async_trait]
impl Disk for Handle {
    async fn open(&self, path: &str) -> Result<Arc<dyn DiskFile>, DiskError> {
        let inode = self.operate("open", path, World::open).await?;
        Ok(self.file(path, inode))
    }

    async fn create(&self, path: &str) -> Result<Arc<dyn DiskFile>, DiskError> {
        let inode = self.operate("create", path, World::create).await?;
        Ok(self.file(path, inode))
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.operate("rename", from, |world, call| world.rename(call, to)).await
    }

    async fn remove(&self, path: &str) -> Result<(), DiskError> {
        self.operate("remove", path, World::remove).await
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>, DiskError> {
        self.operate("list", folder, World::list).await
    }

    async fn sync_dir(&self, folder: &str) -> Result<(), DiskError> {
        self.operate("sync", folder, World::sync_dir).await
    }

    async fn space(&self) -> Result<Space, DiskError> {
        self.operate("space", "", |world, _| Ok(world.space())).await
    }

    fn times(&self) -> Option<&DiskTimes> {
        None
    }
}

#[derive(Debug)]
struct FileHandle {
    world: Arc<Mutex<World>>,
    generation: u64,
    path: Arc<str>,
    inode: u64,
}

/// An operation on a file.
struct Operation {
    action: &'static str,
    offset: u64,
    len: u64,
}

impl Operation {
    const fn new(action: &'static str, offset: u64, len: u64) -> Self {
        Self { action, offset, len }
    }
}

impl FileHandle {
    async fn operate<T>(
        &self,
        operation: Operation,
        work: impl FnOnce(&mut World, &Call<'_>) -> Result<T, DiskError>,
    ) -> Result<T, DiskError> {
        let Operation { action, offset, len } = operation;
        let call = Call { action, path: &self.path, offset, len };
        operate(&self.world, self.generation, call, work).await
    }
}

#[async_trait]
impl DiskFile for FileHandle {
    async fn read_at(&self, offset: u64, len: usize) -> Result<Bytes, DiskError> {
        let call = Operation::new("read", offset, len as u64);
        self.operate(call, |world, call| world.read(self.inode, call)).await
    }

    async fn write_at(&self, offset: u64, pieces: Vec<Bytes>) -> Result<(), DiskError> {
        let bytes: Bytes = pieces.concat().into();
        let call = Operation::new("write", offset, bytes.len() as u64);
        self.operate(call, |world, call| world.write(self.inode, call, bytes)).await
    }

    async fn write_sync(&self, offset: u64, pieces: Vec<Bytes>) -> Result<(), DiskError> {
        // Two operations, so that the power can fail between them.
        self.write_at(offset, pieces).await?;
        self.sync().await
    }

    async fn sync(&self) -> Result<(), DiskError> {
        // Only bytes written before the call become durable. Writes during the delay stay pending.
        let mark = lock(&self.world).mark();
        self.operate(Operation::new("sync", 0, 0), |world, call| world.sync(self.inode, call, mark))
            .await
    }

    async fn drop_cache(&self) -> Result<(), DiskError> {
        let mark = lock(&self.world).mark();
        let call = Operation::new("drop cache", 0, 0);
        self.operate(call, |world, call| {
            world.sync(self.inode, call, mark)?;
            world.drop_cache(self.inode);
            Ok(())
        })
        .await
    }

    async fn allocate(&self, offset: u64, len: u64) -> Result<(), DiskError> {
        self.operate(Operation::new("allocate", offset, len), |world, call| {
            world.allocate(self.inode, call)
        })
        .await
    }

    async fn punch_hole(&self, offset: u64, len: u64) -> Result<(), DiskError> {
        let what = What::Punch { offset, len };
        let call = Operation::new("punch hole", offset, len);
        self.operate(call, |world, call| world.reshape(self.inode, call, what)).await
    }

    async fn set_len(&self, len: u64) -> Result<(), DiskError> {
        let what = What::SetLen { len };
        let call = Operation::new("set length", 0, len);
        self.operate(call, |world, call| world.reshape(self.inode, call, what)).await
    }

    async fn len(&self) -> Result<u64, DiskError> {
        self.operate(Operation::new("stat", 0, 0), |world, _| Ok(world.len(self.inode))).await
    }

    async fn allocated(&self) -> Result<u64, DiskError> {
        self.operate(Operation::new("stat", 0, 0), |world, _| Ok(world.allocated(self.inode))).await
    }
}
