//! Reclaim over partitions in memory and a capacity that only keeps books.

mod audits;
mod containers;
mod fakes;
mod invariants;
mod panics;
mod races;
mod readers;
mod real;
mod rounds;
mod silent;
mod steps;
mod tags;
