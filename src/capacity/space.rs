//! Space of one disk: a cheap answer to "may this still be written", without asking the file system
//! each time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::capacity::CapacityConfig;
use crate::capacity::Error;
use crate::capacity::ExtentKind;
use crate::env::{Disk, Env, Space};

/// After this much allocation the file system is asked again, bytes.
const REFRESH_BYTES: u64 = 64 * 1024 * 1024;

/// After this much time the file system is asked again.
const REFRESH_AFTER: Duration = Duration::from_secs(1);

/// How full a disk is, in percent, when that is reported.
const FULL_PERCENT: [u64; 3] = [80, 90, 95];

/// A disk must be so much less full, in percent, before the same level is reported again.
const EMPTIER_PERCENT: u64 = 2;

/// The last answer of the file system and what was allocated since.
#[derive(Debug)]
pub(crate) struct SpaceWatch {
    seen: Mutex<Seen>,
    disk: usize,
    /// How many of the levels of [`FULL_PERCENT`] were reported.
    reported: AtomicUsize,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    space: Space,
    at: Duration,
    allocated: u64,
}

impl SpaceWatch {
    /// Starts with an answer of the file system.
    pub(crate) fn new(disk: usize, space: Space, at: Duration) -> Self {
        let seen = Mutex::new(Seen { space, at, allocated: 0 });
        let watch = Self { seen, disk, reported: AtomicUsize::new(0) };
        watch.report(space);
        watch
    }

    /// Says so when the disk has become fuller by a level.
    fn report(&self, space: Space) {
        let percent = used_percent(space);
        let before = self.reported.load(Ordering::Relaxed);
        let now = level(percent, before);
        self.reported.store(now, Ordering::Relaxed);
        if now > before {
            let (disk, available) = (self.disk, space.available);
            tracing::warn!(
                disk,
                percent,
                available,
                "disk fills up: free some space or add a disk"
            );
        }
    }

    /// What is available, as last seen.
    pub(crate) fn available(&self) -> u64 {
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.space.available.saturating_sub(seen.allocated)
    }

    /// The last answer of the file system.
    pub(crate) fn seen(&self) -> Space {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).space
    }

    /// Asks the file system again unless that was done just now: what others write on it is noticed
    /// though nothing is written here.
    pub(crate) async fn look(&self, disk: &dyn Disk, env: &Env) {
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
                tracing::warn!(disk = self.disk, %error, "the free space of the disk is not known");
            }
        }
    }

    /// Counts `len` bytes of allocation, or refuses them when less than the kind's floor would
    /// remain. A refusal is always given on a fresh answer, so that writes resume as soon as space
    /// is back.
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
            tracing::warn!(
                %error,
                "the free space of the disk is not known; the disk counts as full"
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

/// How much of a disk is used, in percent.
fn used_percent(space: Space) -> u64 {
    let used = space.total.saturating_sub(space.available);
    used.saturating_mul(100) / space.total.max(1)
}

/// How many levels a disk has reached that had reached `before`.
fn level(percent: u64, before: usize) -> usize {
    let reached = |percent: u64| FULL_PERCENT.iter().filter(|full| percent >= **full).count();
    // What was freed must be more than noise.
    reached(percent).max(before.min(reached(percent + EMPTIER_PERCENT)))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
