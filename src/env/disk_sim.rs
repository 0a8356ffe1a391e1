//! A disk that misbehaves by seed: everything a real one may do, as often as a test likes, and the
//! same way each time.
//!
//! What is written but not synced survives a power cut in part, in any order, torn between sectors;
//! so do names without a synced folder. Reads, writes and syncs fail, syncs lie, space runs out,
//! bits flip, power goes at any chosen operation. Small virtual delays let operations interleave.
//!
//! Main path: this file's handles -> `world.rs` (files, names, faults) -> `image.rs` (bytes of a
//! file), `names.rs` (changes of names); `faults.rs` is what may go wrong; `power.rs` decides what
//! survives, `dice.rs` draws and keeps the trace.
//!
//! It does not simulate a file system that corrupts itself, nor the lock of a data directory.

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

/// The machine around a simulated disk: what a test holds to hand out the disk and to break it.
/// Clones share it.
#[derive(Clone, Debug)]
pub struct SimDisk {
    world: Arc<Mutex<World>>,
}

impl SimDisk {
    /// An empty disk of this capacity, with no faults switched on.
    #[must_use]
    pub fn new(seed: u64, capacity_bytes: u64) -> Self {
        Self { world: Arc::new(Mutex::new(World::new(seed, capacity_bytes))) }
    }

    /// The disk as the program sees it, until the next crash.
    #[must_use]
    pub fn disk(&self) -> Arc<dyn Disk> {
        let generation = self.world().generation;
        Arc::new(Handle { world: Arc::clone(&self.world), generation })
    }

    /// Sets the chances of faults from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.world().faults = faults;
    }

    /// Lets whatever begins within `time` take that long.
    #[expect(clippy::disallowed_methods, reason = "the seam")]
    pub fn stall(&self, time: Duration) {
        self.world().stalled_until = Some(tokio::time::Instant::now() + time);
    }

    /// The same for syncs alone: what is written and read meanwhile is done.
    #[expect(clippy::disallowed_methods, reason = "the seam")]
    pub fn stall_syncs(&self, time: Duration) {
        self.world().syncs_stalled_until = Some(tokio::time::Instant::now() + time);
    }

    /// Lets one operation fail: of those this fault can strike, the one after the next `skip`.
    pub fn fail_once(&self, fault: Fault, skip: u64) {
        self.world().ambush.push((fault, skip));
    }

    /// Faults told to strike once that have not struck yet.
    #[must_use]
    pub fn faults_left(&self) -> usize {
        self.world().ambush.len()
    }

    /// Cuts the power at an operation, counted as by [`Self::operations`]: it and all later ones
    /// fail until a restart.
    pub fn crash_at(&self, operation: u64) {
        self.world().crash_at = Some(operation);
    }

    /// Whether the power went at the chosen operation and nobody has restarted since.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.world().down
    }

    /// Cuts the power now (if it is not gone already) and starts again: handles so far are dead,
    /// the disk holds what was durable and a random part of what was not.
    #[must_use]
    pub fn restart_after_power_cut(&self) -> Arc<dyn Disk> {
        self.world().power_cut();
        self.disk()
    }

    /// Kills the process and starts it again: handles so far are dead, all that was written is
    /// there.
    #[must_use]
    pub fn restart_after_kill(&self) -> Arc<dyn Disk> {
        self.world().kill();
        self.disk()
    }

    /// Makes all removals of files durable without a sync. Linux file systems do that by themselves
    /// within seconds.
    pub fn settle_removals(&self) {
        self.world().settle_removals();
    }

    /// Changes the capacity; what is stored stays, even above it.
    pub fn set_capacity(&self, bytes: u64) {
        self.world().capacity_pages = bytes / PAGE_BYTES;
    }

    /// Flips a bit at rest. False where nothing is written.
    #[must_use]
    pub fn flip(&self, path: &str, offset: u64) -> bool {
        self.world().flip(path, offset)
    }

    /// Flips a bit of a random written byte below a folder and tells which.
    #[must_use]
    pub fn flip_random(&self, folder: &str) -> Option<(String, u64)> {
        let mut world = self.world();
        let (path, offset) = world.pick(|path| path.starts_with(folder))?;
        world.flip(&path, offset).then_some((path, offset))
    }

    /// Operations so far, those of dead handles not counted.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.world().operations
    }

    /// A digest of all operations so far with their bytes: equal for two runs that did the same in
    /// the same order.
    #[must_use]
    pub fn trace(&self) -> u64 {
        self.world().dice.trace()
    }

    fn world(&self) -> MutexGuard<'_, World> {
        lock(&self.world)
    }
}

/// The world stays usable after a failed assertion elsewhere: a test's report matters more than its
/// state.
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

/// Takes a turn on the disk: waits a moment, counts the operation, does it unless power or a fault
/// is against it.
async fn turn<T>(
    world: &Mutex<World>,
    generation: u64,
    call: Call<'_>,
    work: impl FnOnce(&mut World, &Call<'_>) -> Result<T, DiskError>,
) -> Result<T, DiskError> {
    delay(world, call.action).await;
    let mut world = lock(world);
    match world.enter(generation, &call)? {
        Fate::Go => work(&mut world, &call),
        Fate::Die => work(&mut world, &call).and(Err(call.dead())),
    }
}

#[derive(Debug)]
struct Handle {
    world: Arc<Mutex<World>>,
    generation: u64,
}

impl Handle {
    async fn turn<T>(
        &self,
        action: &'static str,
        path: &str,
        work: impl FnOnce(&mut World, &Call<'_>) -> Result<T, DiskError>,
    ) -> Result<T, DiskError> {
        turn(&self.world, self.generation, Call { action, path, offset: 0, len: 0 }, work).await
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
        let inode = self.turn("open", path, World::open).await?;
        Ok(self.file(path, inode))
    }

    async fn create(&self, path: &str) -> Result<Arc<dyn DiskFile>, DiskError> {
        let inode = self.turn("create", path, World::create).await?;
        Ok(self.file(path, inode))
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.turn("rename", from, |world, call| world.rename(call, to)).await
    }

    async fn remove(&self, path: &str) -> Result<(), DiskError> {
        self.turn("remove", path, World::remove).await
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>, DiskError> {
        self.turn("list", folder, World::list).await
    }

    async fn sync_dir(&self, folder: &str) -> Result<(), DiskError> {
        self.turn("sync", folder, World::sync_dir).await
    }

    async fn space(&self) -> Result<Space, DiskError> {
        self.turn("space", "", |world, _| Ok(world.space())).await
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

/// What is done to a file.
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
    async fn turn<T>(
        &self,
        operation: Operation,
        work: impl FnOnce(&mut World, &Call<'_>) -> Result<T, DiskError>,
    ) -> Result<T, DiskError> {
        let Operation { action, offset, len } = operation;
        let call = Call { action, path: &self.path, offset, len };
        turn(&self.world, self.generation, call, work).await
    }
}

#[async_trait]
impl DiskFile for FileHandle {
    async fn read_at(&self, offset: u64, len: usize) -> Result<Bytes, DiskError> {
        let call = Operation::new("read", offset, len as u64);
        self.turn(call, |world, call| world.read(self.inode, call)).await
    }

    async fn write_at(&self, offset: u64, pieces: Vec<Bytes>) -> Result<(), DiskError> {
        let bytes: Bytes = pieces.concat().into();
        let call = Operation::new("write", offset, bytes.len() as u64);
        self.turn(call, |world, call| world.write(self.inode, call, bytes)).await
    }

    async fn write_sync(&self, offset: u64, pieces: Vec<Bytes>) -> Result<(), DiskError> {
        // Two operations, so that the power can go between them.
        self.write_at(offset, pieces).await?;
        self.sync().await
    }

    async fn sync(&self) -> Result<(), DiskError> {
        // Only what was written before the call is promised: what comes during the delay stays
        // pending.
        let mark = lock(&self.world).mark();
        self.turn(Operation::new("sync", 0, 0), |world, call| world.sync(self.inode, call, mark))
            .await
    }

    async fn drop_cache(&self) -> Result<(), DiskError> {
        let mark = lock(&self.world).mark();
        let call = Operation::new("drop cache", 0, 0);
        self.turn(call, |world, call| {
            world.sync(self.inode, call, mark)?;
            world.drop_cache(self.inode);
            Ok(())
        })
        .await
    }

    async fn allocate(&self, offset: u64, len: u64) -> Result<(), DiskError> {
        self.turn(Operation::new("allocate", offset, len), |world, call| {
            world.allocate(self.inode, call)
        })
        .await
    }

    async fn punch_hole(&self, offset: u64, len: u64) -> Result<(), DiskError> {
        let what = What::Punch { offset, len };
        let call = Operation::new("punch hole", offset, len);
        self.turn(call, |world, call| world.reshape(self.inode, call, what)).await
    }

    async fn set_len(&self, len: u64) -> Result<(), DiskError> {
        let what = What::SetLen { len };
        let call = Operation::new("set length", 0, len);
        self.turn(call, |world, call| world.reshape(self.inode, call, what)).await
    }

    async fn len(&self) -> Result<u64, DiskError> {
        self.turn(Operation::new("stat", 0, 0), |world, _| Ok(world.len(self.inode))).await
    }

    async fn allocated(&self) -> Result<u64, DiskError> {
        self.turn(Operation::new("stat", 0, 0), |world, _| Ok(world.allocated(self.inode))).await
    }
}
