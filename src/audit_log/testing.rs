//! A log in memory, for tests of its lines.

use std::sync::Arc;

use serde_json::Value;

use super::metrics::Metrics;
use super::queue::AuditLog;
use super::queue::Queue;
use crate::env::SimClock;

/// A log whose lines a test reads instead of a writer.
#[derive(Debug)]
pub(crate) struct Kept {
    queue: Arc<Queue>,
}

impl Kept {
    /// With lines of changes and of requests.
    pub(crate) fn new() -> Self {
        let clock = Arc::new(SimClock::new());
        Self { queue: Arc::new(Queue::new(clock, Metrics::default(), true)) }
    }

    /// The handle that adds lines.
    pub(crate) fn log(&self) -> AuditLog {
        AuditLog::new(Arc::clone(&self.queue))
    }

    /// The changes since the last call.
    pub(crate) fn changes(&self) -> Vec<Value> {
        let batch = self.queue.take_now(usize::MAX).batch;
        self.queue.written(batch.bytes);
        let lines = batch.lines.iter().map(|line| serde_json::from_slice(line));
        let all = lines.collect::<Result<Vec<Value>, _>>().unwrap();
        all.into_iter().filter(|line| line["kind"] == "change").collect()
    }
}
