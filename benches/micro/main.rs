//! Micro benches: the cost of the parts of a request, each measured separately, on this machine's
//! disk and processor.
//!
//! One file per role; `cargo bench --bench micro -- FILTER` runs those whose names contain FILTER.
//! The figures of the load driver (`benches/load`) matter; these help to explain them.

mod bed;
mod capacity;
mod checksums;
mod flights;
mod heads;
mod index;
mod map;
mod protocol;

/// Counts allocations, so that each bench also reports how many it makes and of how many bytes.
#[global_allocator]
static ALLOCATOR: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}
