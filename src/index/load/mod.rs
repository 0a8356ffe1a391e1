//! The load of a partition.
//!
//! 1. `meter.rs`: counts requests by class (`class.rs`), log bytes and refusals, measures waits and
//!    processor time (`cpu.rs`), and samples the keys of some requests, waiting ones included.
//! 2. `rates.rs`: turns the counts of a tick into rates a second.
//!
//! Invariant: most requests cost one atomic addition.
//!
//! Not here: reports of load (`server/reports.rs`), and decisions from it (the manager).

mod class;
mod cpu;
mod meter;
mod rates;

pub use class::Class;
pub use meter::Meter;
pub use rates::{Counts, Load};
