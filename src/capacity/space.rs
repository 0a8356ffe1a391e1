//! Space of one disk: a cheap answer to "may this still be written", without asking the file system each time.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::capacity::CapacityConfig;
use crate::capacity::Error;
use crate::capacity::ExtentKind;
use crate::capacity::metrics::CapacityMetrics;
use crate::env::{Disk, Env, Space};

/// After this much allocation the file system is asked again, bytes.
const REFRESH_BYTES: u64 = 64 * 1024 * 1024;

/// After this much time the file system is asked again.
const REFRESH_AFTER: Duration = Duration::from_secs(1);

/// The last answer of the file system and what was allocated since.
#[derive(Debug)]
pub(crate) struct SpaceWatch {
    seen: Mutex<Seen>,
    metrics: CapacityMetrics,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    space: Space,
    at: Duration,
    allocated: u64,
}

impl SpaceWatch {
    /// Starts with an answer of the file system.
    pub(crate) fn new(space: Space, at: Duration, metrics: CapacityMetrics) -> Self {
        metrics.available_bytes.inc_by(space.available);
        Self { seen: Mutex::new(Seen { space, at, allocated: 0 }), metrics }
    }

    /// What is available, as last seen.
    pub(crate) fn available(&self) -> u64 {
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.space.available.saturating_sub(seen.allocated)
    }

    /// Counts `len` bytes of allocation, or refuses them when less than the kind's floor would remain. A refusal is
    /// always given on a fresh answer, so that writes resume as soon as space is back.
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
            tracing::warn!(%error, "space of the disk unknown, taken as full");
            Error::Full
        })?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        self.metrics.available_bytes.dec_by(seen.space.available);
        self.metrics.available_bytes.inc_by(space.available);
        *seen = Seen { space, at: env.clock.monotonic(), allocated: 0 };
        if !fits(&seen) {
            return Err(Error::Full);
        }
        seen.allocated += len;
        Ok(())
    }
}
