//! Free space of one disk. Decides whether an allocation is allowed without a call to the file
//! system each time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::capacity::CapacityConfig;
use crate::capacity::Error;
use crate::capacity::ExtentKind;
use crate::capacity::health::DiskName;
use crate::env::{Disk, Env, Space};

/// Bytes of allocation after which the free space is measured again.
const REFRESH_BYTES: u64 = 64 * 1024 * 1024;

/// Time after which the free space is measured again.
const REFRESH_AFTER: Duration = Duration::from_secs(1);

/// The fill levels at which a warning is logged, percent.
const FULL_PERCENT: [u64; 3] = [80, 90, 95];

/// How far the use of a disk must fall below a level before the level is reported again, percent.
const EMPTIER_PERCENT: u64 = 2;

/// The last measurement of the free space, and the bytes allocated since.
#[derive(Debug)]
pub(crate) struct SpaceWatch {
    seen: Mutex<Seen>,
    name: DiskName,
    /// How many levels of [`FULL_PERCENT`] were reported.
    reported: AtomicUsize,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    space: Space,
    at: Duration,
    allocated: u64,
}

impl SpaceWatch {
    /// Starts with a first measurement.
    pub(crate) fn new(name: DiskName, space: Space, at: Duration) -> Self {
        let seen = Mutex::new(Seen { space, at, allocated: 0 });
        let watch = Self { seen, name, reported: AtomicUsize::new(0) };
        watch.report(space);
        watch
    }

    /// Logs a warning when the disk has reached a further level.
    fn report(&self, space: Space) {
        let percent = used_percent(space);
        let before = self.reported.load(Ordering::Relaxed);
        let now = level(percent, before);
        self.reported.store(now, Ordering::Relaxed);
        if now > before {
            let (DiskName { number, path }, available) = (&self.name, space.available);
            tracing::warn!(
                disk = number,
                path,
                percent,
                available,
                "disk fills up: free some space or add a disk"
            );
        }
    }

    /// Available bytes: the last measurement less later allocations.
    pub(crate) fn available(&self) -> u64 {
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.space.available.saturating_sub(seen.allocated)
    }

    /// The last measurement.
    pub(crate) fn seen(&self) -> Space {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).space
    }

    /// Measures the free space again unless that was done within a second. So the use by other
    /// programs is noticed even if nothing is written here.
    pub(crate) async fn refresh(&self, disk: &dyn Disk, env: &Env) {
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if env.clock.monotonic().saturating_sub(seen.at) < REFRESH_AFTER {
            return;
        }
        match disk.space().await {
            Ok(space) => {
                self.report(space);
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                *seen = Seen { space, at: env.clock.monotonic(), allocated: 0 };
            }
            Err(error) => {
                let DiskName { number, path } = &self.name;
                tracing::warn!(
                    disk = number, path, %error,
                    "the free space of the disk cannot be measured; the last value is used"
                );
            }
        }
    }

    /// Counts `len` bytes of allocation, or refuses them if less than the kind's floor would
    /// remain. Before a refusal the free space is measured, so that writes resume as soon as space
    /// is free.
    pub(crate) async fn admit(
        &self,
        disk: &dyn Disk,
        env: &Env,
        config: &CapacityConfig,
        kind: ExtentKind,
        len: u64,
    ) -> Result<(), Error> {
        let fits = |seen: &Seen| {
            let left = seen.space.available.saturating_sub(seen.allocated);
            left >= len + config.floor(kind, seen.space.total)
        };
        {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let fresh = env.clock.monotonic().saturating_sub(seen.at) < REFRESH_AFTER
                && seen.allocated < REFRESH_BYTES;
            if fresh && fits(&seen) {
                seen.allocated += len;
                return Ok(());
            }
        }
        let space = disk.space().await.map_err(|error| {
            let DiskName { number, path } = &self.name;
            tracing::warn!(
                disk = number, path, %error,
                "the free space of the disk cannot be measured; an allocation is refused as on \
                 a full disk"
            );
            Error::Full
        })?;
        self.report(space);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        *seen = Seen { space, at: env.clock.monotonic(), allocated: 0 };
        if !fits(&seen) {
            return Err(Error::Full);
        }
        seen.allocated += len;
        Ok(())
    }
}

/// The used part of a disk, percent.
fn used_percent(space: Space) -> u64 {
    let used = space.total.saturating_sub(space.available);
    used.saturating_mul(100) / space.total.max(1)
}

/// How many levels a disk has reached, if it had reached `before` of them at the last measurement.
fn level(percent: u64, before: usize) -> usize {
    let reached = |percent: u64| FULL_PERCENT.iter().filter(|full| percent >= **full).count();
    // A small decrease does not lower the level, so that it is not reported again and again.
    reached(percent).max(before.min(reached(percent + EMPTIER_PERCENT)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use async_trait::async_trait;

    use super::*;
    use crate::env::clock::SimClock;
    use crate::env::{DiskError, DiskFile, DiskTimes, SeededRand, Tasks};
    use crate::telemetry::CapturedLog;

    fn space(total: u64, available: u64) -> Space {
        Space { total, available, file_system: None }
    }

    #[test]
    fn each_level_is_reported_once_while_a_disk_fills_up() {
        let mut reported = 0;
        let mut raised = Vec::new();
        for percent in [79, 80, 79, 80, 89, 90, 91, 89, 90, 95, 100, 93, 95, 70, 80] {
            let now = level(percent, reported);
            if now > reported {
                raised.push(percent);
            }
            reported = now;
        }
        assert_eq!(raised, [80, 90, 95, 80]);
        assert_eq!(used_percent(space(0, 0)), 0);
        assert_eq!(used_percent(space(1_000, 45)), 95);
    }

    /// A directory of 1,000 MB. The field is the used part, percent.
    #[derive(Debug, Default)]
    struct Filling(AtomicUsize);

    impl Filling {
        fn used(&self, percent: usize) {
            self.0.store(percent, Ordering::Relaxed);
        }
    }

    #[async_trait]
    impl Disk for Filling {
        async fn open(&self, path: &str) -> Result<Arc<dyn DiskFile>, DiskError> {
            Err(DiskError::NotFound { path: path.to_owned() })
        }
        async fn create(&self, path: &str) -> Result<Arc<dyn DiskFile>, DiskError> {
            Err(DiskError::NotFound { path: path.to_owned() })
        }
        async fn rename(&self, _: &str, _: &str) -> Result<(), DiskError> {
            Ok(())
        }
        async fn remove(&self, _: &str) -> Result<(), DiskError> {
            Ok(())
        }
        async fn list(&self, _: &str) -> Result<Vec<String>, DiskError> {
            Ok(Vec::new())
        }
        async fn sync_dir(&self, _: &str) -> Result<(), DiskError> {
            Ok(())
        }
        async fn space(&self) -> Result<Space, DiskError> {
            let used = self.0.load(Ordering::Relaxed) as u64;
            Ok(space(1_000_000_000, (100 - used) * 10_000_000))
        }
        fn times(&self) -> Option<&DiskTimes> {
            None
        }
        fn root(&self) -> Option<&Path> {
            Some(Path::new("/data/seven"))
        }
    }

    /// How many warnings report `percent` and name the disk.
    fn warnings(log: &CapturedLog, percent: usize) -> usize {
        let percent = format!("percent={percent} ");
        log.lines_with(&["WARN", "disk fills up", "disk=3", "/data/seven", &percent])
    }

    /// The space is measured at the start, in a refresh while nothing is written, and by a write.
    #[tokio::test(start_paused = true)]
    async fn disk_that_fills_up_is_named_in_a_warning_wherever_its_space_is_asked_for() {
        let log = CapturedLog::default();
        let _kept = log.begin();
        let (clock, rand) = (Arc::new(SimClock::new()), Arc::new(SeededRand::new(1)));
        let env = Env { clock, rand, tasks: Tasks::new() };
        let disk = Filling::default();
        disk.used(79);
        let name = DiskName::of(&disk, 3);
        let now = || env.clock.monotonic();
        let watch = SpaceWatch::new(name.clone(), disk.space().await.unwrap(), now());
        assert_eq!(log.lines_with(&["disk fills up"]), 0);
        disk.used(81);
        env.clock.sleep(REFRESH_AFTER).await;
        watch.refresh(&disk, &env).await;
        assert_eq!(warnings(&log, 81), 1, "{}", log.text());
        disk.used(91);
        env.clock.sleep(REFRESH_AFTER).await;
        let (config, kind) = (CapacityConfig::small(), ExtentKind::Data);
        watch.admit(&disk, &env, &config, kind, 1).await.unwrap();
        assert_eq!(warnings(&log, 91), 1, "{}", log.text());
        disk.used(96);
        let watch = SpaceWatch::new(name, disk.space().await.unwrap(), now());
        assert_eq!(warnings(&log, 96), 1, "{}", log.text());
        env.clock.sleep(REFRESH_AFTER).await;
        watch.refresh(&disk, &env).await;
        assert_eq!(log.lines_with(&["disk fills up"]), 3, "each level once: {}", log.text());
    }
}
