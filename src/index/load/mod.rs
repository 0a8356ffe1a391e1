//! What partitions note of their load.
//!
//! 1. `meter.rs`: what a partition notes: requests by `class.rs`, the keys of some of them (waiting
//!    ones too), log bytes, waits, refusals, and by `cpu.rs` the processor time of its work.
//! 2. `rates.rs`: that by the second, a tick at a time.
//!
//! Invariant: the hot path pays one atomic addition for most requests.
//!
//! Not here: reports of load (`server/reports.rs`), and what follows from them (the manager).

mod class;
mod cpu;
mod meter;
mod rates;

pub use class::Class;
pub use meter::Meter;
pub use rates::{Counts, Load};
