//! Models of protocols, checked by a walk of every interleaving of a small world.
//!
//! - `map`: splits, merges, moves and takeovers of partitions, as `src/index/engine/change/` has
//!   them.
//! - `extents`: extents with copies: appends, seals, groups, a new owner of a log, before the code
//!   of a cluster.
//! - `leases`: reads of a partition whose host may have lost it, before that code too.
//! - `once`: writes that are sent again and happen once, before that code too.

#[cfg(test)]
mod extents;
mod leases;
mod map;
mod once;
