//! What a start does about files of releases that kept secrets plain: rows are sealed by then, and
//! here the older values leave logs, runs and journals.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::capacity::CapacityNode;
use crate::coordinator::Coordinator;
use crate::env::Env;
use crate::index::Fleet;

use super::master_key;

/// How long after a failure it is tried again.
const AGAIN: Duration = Duration::from_secs(10);

/// What is rewritten.
#[derive(Debug)]
pub struct Erase {
    /// Logs and runs.
    pub fleet: Arc<Fleet>,
    /// Journals.
    pub capacity: Arc<CapacityNode>,
    /// Where it is remembered.
    pub coordinator: Arc<dyn Coordinator>,
    /// The ring of the store.
    pub ring: Uuid,
}

impl Erase {
    /// Runs until no file holds a plain secret and the store remembers that, or the node stops. A
    /// start that finds it undone begins anew.
    pub async fn run(self, env: Env) {
        let stopping = env.tasks.stopping();
        while !stopping.is_cancelled() {
            match self.once().await {
                Ok(true) => {
                    tracing::info!("logs, runs and journals hold no plain secret any more");
                    return;
                }
                Ok(false) => {
                    tracing::warn!(
                        "a partition or disk is out of service and may hold plain secrets: the \
                         next start looks again"
                    );
                    return;
                }
                Err(error) => tracing::warn!(%error, "plain secrets may be left in files"),
            }
            tokio::select! {
                biased;
                () = stopping.cancelled() => return,
                () = env.clock.sleep(AGAIN) => {}
            }
        }
    }

    /// Logs and runs first: what they write anew goes through the journals.
    async fn once(&self) -> Result<bool, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let rewritten = self.fleet.rewrite_secret_rows().await.map_err(|error| text(&error))?;
        if !(self.capacity.erase_journals().await && rewritten) {
            return Ok(false);
        }
        let done = master_key::remember_sealed(self.coordinator.as_ref(), self.ring).await;
        done.map_err(|error| text(&error)).map(|()| true)
    }
}
