//! A plan over the bytes of a blob.

use bytes::Bytes;

use crate::query::plan::Plan;
use crate::query::request::Sink;
use crate::query::request::Step;

/// A plan over the bytes of a blob.
#[derive(Debug)]
pub struct Execution {
    _plan: Plan,
}

impl Execution {
    /// The plan over a blob of this length. `now_unix_millis` is what `UTCNOW` returns.
    pub fn new(plan: Plan, _length: u64, _now_unix_millis: i64) -> Self {
        Self { _plan: plan }
    }

    /// Works on what was fed, about 1 MiB of it at most.
    pub fn step(&mut self, _sink: &mut Sink) -> Step {
        Step::Done
    }

    /// Takes the bytes that the last step asked for.
    pub fn feed(&mut self, _bytes: Bytes) {}

    /// Bytes of the blob that were read so far.
    pub fn scanned(&self) -> u64 {
        0
    }
}
