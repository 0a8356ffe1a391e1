//! Whether a disk still takes writes. After one failed write or sync nobody knows what the file
//! holds: the system may have dropped the pages and called them clean, so trying again could
//! acknowledge bytes that are gone.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::capacity::Error;
use crate::capacity::metrics::CapacityMetrics;
use crate::env::{Disk, DiskError, TaskHealth};

/// What log lines call a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its number in the store.
    pub(crate) number: usize,
    /// Its directory; empty where it has none.
    pub(crate) path: String,
}

impl Place {
    /// Of the disk with this number.
    pub(crate) fn of(disk: &dyn Disk, number: usize) -> Self {
        let path = disk.root().map(|root| root.display().to_string()).unwrap_or_default();
        Self { number, path }
    }
}

/// The state of one disk; changes once, from good to poisoned.
#[derive(Debug)]
pub(crate) struct Health {
    place: Place,
    poisoned: AtomicBool,
    metrics: CapacityMetrics,
    /// Where violated invariants are counted.
    pub(crate) tasks: TaskHealth,
}

impl Health {
    /// A good disk.
    pub(crate) fn new(place: Place, metrics: CapacityMetrics, tasks: TaskHealth) -> Self {
        Self { place, poisoned: AtomicBool::new(false), metrics, tasks }
    }

    /// Whether a write or sync failed.
    pub(crate) fn poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }

    /// [`Error::Poisoned`] if a write or sync failed.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.poisoned() { Err(self.error()) } else { Ok(()) }
    }

    /// The answer to every write from now on.
    pub(crate) fn error(&self) -> Error {
        Error::Poisoned { disk: self.place.number }
    }

    /// Stops all writes to the disk because a task that they need has panicked.
    pub(crate) fn stop(&self, task: &'static str, why: &str) {
        if !self.poisoned.swap(true, Ordering::AcqRel) {
            self.metrics.poisoned_disks.inc();
            let Place { number, path } = &self.place;
            tracing::error!(disk = number, path, task, why, "disk poisoned: no more writes");
        }
    }

    /// Stops all writes to the disk because an invariant does not hold; see `docs/invariants.md`.
    pub(crate) fn broken(&self, invariant: &'static str, what: &'static str) -> Error {
        // Not only the first time: each line names another cause.
        let Place { number, path } = &self.place;
        tracing::error!(
            disk = number,
            path,
            invariant,
            what,
            "an invariant is broken; disk poisoned: no more writes"
        );
        self.tasks.violated(invariant, &format!("disk {number}: {what}"));
        if !self.poisoned.swap(true, Ordering::AcqRel) {
            self.metrics.poisoned_disks.inc();
        }
        self.error()
    }

    /// Stops all writes to the disk.
    pub(crate) fn poison(&self, doing: &'static str, error: &DiskError) -> Error {
        if !self.poisoned.swap(true, Ordering::AcqRel) {
            self.metrics.poisoned_disks.inc();
            let Place { number, path } = &self.place;
            tracing::error!(disk = number, path, doing, %error, "disk poisoned: no more writes");
        }
        self.error()
    }
}
