//! Stands in for the engine in a build without the feature `query`.

use bytes::Bytes;

use crate::query::request::Fault;
use crate::query::request::Request;
use crate::query::request::Sink;
use crate::query::request::Step;

/// There is none.
#[derive(Debug)]
pub enum Plan {}

impl Plan {
    /// Refuses the request.
    ///
    /// # Errors
    ///
    /// Always.
    #[expect(clippy::needless_pass_by_value, reason = "the signature of the engine")]
    pub fn new(_request: Request) -> Result<Self, Fault> {
        Err(Fault::fatal("NotSupported", "This build has no query engine.", 0))
    }
}

/// There is none.
#[derive(Debug)]
pub struct Execution(Plan);

impl Execution {
    /// Never called.
    pub fn new(plan: Plan, _length: u64, _now_unix_millis: i64) -> Self {
        Self(plan)
    }

    /// Never called.
    pub fn step(&mut self, _sink: &mut Sink) -> Step {
        match self.0 {}
    }

    /// Never called.
    pub fn feed(&mut self, _bytes: Bytes) {
        match self.0 {}
    }

    /// Never called.
    pub fn memory(&self) -> u64 {
        match self.0 {}
    }

    /// Never called.
    pub fn scanned(&self) -> u64 {
        match self.0 {}
    }
}
