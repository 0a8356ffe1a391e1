//! Micro benches: what the parts of a request cost, each for itself, on this machine's disk and
//! processor.
//!
//! One file per role; `cargo bench --bench micro -- FILTER` runs those whose names contain FILTER.
//! The load driver (`benches/load`) has the figures that count; these tell where they come from.

mod bed;
mod capacity;
mod checksums;
mod flights;
mod index;
mod map;
mod protocol;

/// Counts allocations, so that each bench also reports how many it makes and of how many bytes.
#[global_allocator]
static ALLOCATOR: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}
