//! The load driver: measures an operation of a server, on any Blob or S3 endpoint, in the same way.
//! `blockyard bench` and `benches/load` use it.
//!
//! Main path: `workload` (what is done) → `run` (prepare, distribute) → `connection` (operations in
//! order, at the pace of `shared`) → `step` (one operation; `churn` compares with earlier ones) →
//! `client` (one socket) → `target` (the request in the dialect) → `signing`. `tally` counts,
//! `data` has the bytes.
//!
//! Invariants: every answer is verified, and wrong bytes count as errors. The driver has its own
//! code for requests and signatures, so it checks the server independently. All connections are
//! polled by one task: counts need no locks.

#![expect(
    clippy::cast_possible_truncation,
    reason = "numbers drawn below small bounds on 64-bit machines"
)]

pub mod call;
mod churn;
pub mod client;
pub mod connection;
pub mod data;
pub mod run;
pub mod shared;
pub mod signing;
mod step;
pub mod tally;
pub mod target;
pub mod workload;
