//! Tests of the engine as a whole; those of one file stand beside it.

mod ahead;
mod bounded;
mod changes;
mod extents;
mod faults;
mod hot;
mod ids;
mod invariants;
mod leases;
mod load;
mod model;
mod once;
mod partition;
mod patience;
mod refusals;
mod rest;
mod unread;
mod upgrade;
mod waits;
