//! A steady low rate of writes to existing names during a measurement.

use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::bed::Bed;
use crate::rows;

/// The time between two writes.
const EVERY: Duration = Duration::from_millis(4);

/// The running trickle.
pub(crate) struct Trickle {
    stop: CancellationToken,
    task: JoinHandle<Result<Vec<f64>, String>>,
}

impl Trickle {
    /// Begins to write to names below `count`.
    pub(crate) fn start(bed: &Bed, count: u64) -> Self {
        let stop = CancellationToken::new();
        let (stopped, router, env) = (stop.clone(), Arc::clone(&bed.router), bed.env.clone());
        let task = bed.env.tasks.spawn("trickle", async move {
            let mut taken = Vec::new();
            while !stopped.is_cancelled() {
                let start = Instant::now();
                let number = env.rand.below(count);
                rows::write(&router, number).await.map_err(|e| format!("a write failed: {e}"))?;
                taken.push(start.elapsed().as_secs_f64() * 1_000.0);
                env.clock.sleep(EVERY).await;
            }
            Ok(taken)
        });
        Self { stop, task }
    }

    /// Ends the writes. Returns the milliseconds of each.
    pub(crate) async fn end(self) -> Result<Vec<f64>, String> {
        self.stop.cancel();
        self.task.await.map_err(|e| e.to_string())?
    }
}
