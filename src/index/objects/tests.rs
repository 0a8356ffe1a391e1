//! The machine over rows in memory.

mod blobs;
mod blocks;
mod containers;
mod golden;
mod lists;
mod support;
mod sweeps;
