//! The machine behind traits: disk, clock, randomness, tasks, network. No other module touches them
//! directly, so the whole program can run in a simulation that a seed determines.
//!
//! | seam | the machine | simulation |
//! |---|---|---|
//! | [`Disk`] | `disk_os.rs` | `disk_sim.rs`: loses, tears, reorders, flips bytes; calls fail |
//! | [`Clock`] | `clock.rs` | paused tokio time from a fixed origin |
//! | [`Rand`] | `rand.rs` | a seeded generator |
//! | [`Tasks`] | `tasks.rs`: counts panics, starts tasks again | the same, on one thread |
//! | [`net`] | TCP | `net_sim.rs`: delays, blocks and cuts connections; in-memory pipes |
//!
//! `user_files.rs` has the files that commands copy, `system.rs` has the differences between Unix
//! systems and Windows.

mod boxed;
pub mod clock;
pub mod disk;
pub mod disk_os;
pub mod disk_sim;
#[cfg(test)]
mod disk_suite;
mod disk_times;
mod disk_unusable;
mod identified;
mod lock_holder;
mod modes;
pub mod net;
pub mod net_sim;
mod observed;
mod port_holder;
mod process;
pub mod rand;
pub mod stdout;
mod system;
pub mod tasks;
pub mod user_files;
mod waits;

pub use boxed::{Boxed, boxed};
pub use clock::Clock;
pub use clock::OsClock;
pub use clock::SimClock;
pub use disk::{Disk, DiskError, DiskFile, Space};
pub use disk_os::LOCK_NAME;
pub use disk_os::OsDisk;
pub use disk_os::forget_cached;
pub use disk_os::free_bytes;
pub use disk_os::make_folder;
pub use disk_sim::Fault;
pub use disk_sim::Faults;
pub use disk_sim::SimDisk;
pub use disk_times::DiskTimes;
pub use disk_unusable::UnusableDisk;
pub use identified::{Identified, Waiting, identified, waiting, working_on};
pub use modes::{Narrowed, make_files_private, narrow, narrow_file};
pub use observed::Observed;
pub use port_holder::port_holder;
pub use process::Process;
pub use rand::OsRand;
pub use rand::Rand;
pub use rand::SeededRand;
pub use system::{
    FileVersion, Signals, host_name, mode, private, raise_open_files, sync_folder, terminal_size,
};
pub use tasks::{TaskControl, TaskHealth, Tasks};
pub use waits::{Queued, Turn, Waits};

use std::sync::Arc;

/// The parts of the machine that a role uses, other than its disks. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Env {
    /// Wall and monotonic time.
    pub clock: Arc<dyn Clock>,
    /// Random numbers.
    pub rand: Arc<dyn Rand>,
    /// Named, tracked tasks.
    pub tasks: Tasks,
}
