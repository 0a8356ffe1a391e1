//! Whether a disk still takes writes. After a failed write or sync the content of the file is
//! unknown: the system may have dropped the dirty pages and marked them clean. A second sync could
//! then succeed, and lost bytes would be acknowledged.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::capacity::Error;
use crate::capacity::metrics::CapacityMetrics;
use crate::env::{Disk, DiskError, TaskHealth};

/// How log lines name a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiskName {
    /// Its number in the store.
    pub(crate) number: usize,
    /// Its directory; empty for a simulated disk.
    pub(crate) path: String,
}

impl DiskName {
    /// The name of the disk with this number.
    pub(crate) fn of(disk: &dyn Disk, number: usize) -> Self {
        let path = disk.root().map(|root| root.display().to_string()).unwrap_or_default();
        Self { number, path }
    }
}

/// The health of one disk. It changes once, from good to poisoned.
#[derive(Debug)]
pub(crate) struct Health {
    name: DiskName,
    poisoned: AtomicBool,
    metrics: CapacityMetrics,
    /// Where violated invariants are counted.
    pub(crate) tasks: TaskHealth,
}

impl Health {
    /// A good disk.
    pub(crate) fn new(name: DiskName, metrics: CapacityMetrics, tasks: TaskHealth) -> Self {
        Self { name, poisoned: AtomicBool::new(false), metrics, tasks }
    }

    /// Whether a write or sync failed.
    pub(crate) fn poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }

    /// [`Error::Poisoned`] if a write or sync failed.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.poisoned() { Err(self.error()) } else { Ok(()) }
    }

    /// The error of every write to a poisoned disk.
    pub(crate) fn error(&self) -> Error {
        Error::Poisoned { disk: self.name.number }
    }

    /// Poisons the disk because a task that writes depend on has panicked or ended.
    pub(crate) fn stop(&self, task: &'static str, why: &str) {
        if !self.poisoned.swap(true, Ordering::AcqRel) {
            self.metrics.poisoned_disks.inc();
            let DiskName { number, path } = &self.name;
            tracing::error!(
                disk = number,
                path,
                task,
                why,
                "a task failed; the disk is poisoned and takes no writes until a restart"
            );
        }
    }

    /// Poisons the disk because an invariant does not hold; see `docs/invariants.md`.
    pub(crate) fn broken(&self, invariant: &'static str, what: &'static str) -> Error {
        // Logged each time, also on a poisoned disk: each line names another cause.
        let DiskName { number, path } = &self.name;
        tracing::error!(
            disk = number,
            path,
            invariant,
            what,
            "an invariant is broken; the disk is poisoned and takes no writes until a restart"
        );
        self.tasks.violated(invariant, &format!("disk {number}: {what}"));
        if !self.poisoned.swap(true, Ordering::AcqRel) {
            self.metrics.poisoned_disks.inc();
        }
        self.error()
    }

    /// Poisons the disk because a write, a sync or another operation on it failed.
    pub(crate) fn poison(&self, doing: &'static str, error: &DiskError) -> Error {
        if !self.poisoned.swap(true, Ordering::AcqRel) {
            self.metrics.poisoned_disks.inc();
            let DiskName { number, path } = &self.name;
            tracing::error!(
                disk = number, path, doing, %error,
                "an operation failed; the disk is poisoned and takes no writes until a restart"
            );
        }
        self.error()
    }
}
