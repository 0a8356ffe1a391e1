//! Erases plain secrets that older releases left in files. The rows are already sealed; logs, runs
//! and journals with the older values are rewritten here.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::capacity::CapacityNode;
use crate::coordinator::Coordinator;
use crate::env::Env;
use crate::frontend::Secrets;
use crate::index::IndexServer;
use crate::index::Router;

use super::master_key;
use super::reseal::reseal;

/// The pause after a failure. It doubles up to the longest, because each try may rewrite many
/// bytes.
const AGAIN: Duration = Duration::from_secs(10);
const AGAIN_MAX: Duration = Duration::from_secs(600);

/// The parts of the store that are rewritten.
#[derive(Clone, Debug)]
pub struct Erase {
    /// Logs and runs.
    pub index: Arc<IndexServer>,
    /// Journals.
    pub capacity: Arc<CapacityNode>,
    /// Where completion is recorded.
    pub coordinator: Arc<dyn Coordinator>,
    /// The ring of the store.
    pub ring: Uuid,
    /// Whether all rows are sealed. Before that nothing is rewritten: plain rows would be written
    /// again.
    pub sealed: bool,
    /// Seals the remaining rows.
    pub router: Arc<Router>,
    /// The ring that seals them.
    pub secrets: Secrets,
}

/// Why plain secrets may be left.
enum Left {
    /// It is tried again.
    Now(String),
    /// Only a later start can complete it.
    UntilStart(&'static str),
}

impl Erase {
    /// Starts it as a task of `env`, which ends when that stops.
    pub fn start(self, env: &Env) {
        let own = env.clone();
        let erasing = move || self.clone().run(own.clone());
        drop(env.supervise("erase plain secrets", env.tasks.stopping(), erasing));
    }

    /// Runs until no file has a plain secret and that is recorded, or until the node stops.
    /// Failures are tried again, unless a partition or disk is out of service until the next start.
    /// A start after an incomplete run begins again.
    async fn run(mut self, env: Env) {
        let stopping = env.tasks.stopping();
        let mut pause = AGAIN;
        while !stopping.is_cancelled() {
            match self.once().await {
                Ok(()) => {
                    tracing::info!("logs, runs and journals hold no plain secret any more");
                    return;
                }
                Err(Left::UntilStart(what)) => {
                    let next = "may hold plain secrets: the next start checks again";
                    return tracing::warn!("{what} is out of service and {next}");
                }
                Err(Left::Now(error)) => {
                    tracing::warn!(error, ?pause, "plain secrets may be left in files");
                }
            }
            tokio::select! {
                biased;
                () = stopping.cancelled() => return,
                () = env.clock.sleep(pause) => {}
            }
            pause = (pause * 2).min(AGAIN_MAX);
        }
    }

    /// Rows first, then logs and runs, which write through the journals; journals last.
    async fn once(&mut self) -> Result<(), Left> {
        if !self.sealed {
            let done = reseal(&self.router, &self.secrets).await;
            self.sealed = !done.map_err(retryable)?.incomplete;
        }
        if !self.sealed {
            return Err(self.left("not all rows are sealed"));
        }
        let rewritten = self.index.rewrite_secret_rows().await.map_err(retryable)?;
        if !self.capacity.erase_journals().await.map_err(retryable)? {
            return Err(Left::UntilStart("a disk"));
        }
        if !rewritten {
            return Err(self.left("not all logs and runs are rewritten"));
        }
        master_key::remember_sealed(self.coordinator.as_ref(), self.ring).await.map_err(retryable)
    }

    /// Why the index may still have plain secrets.
    fn left(&self, what: &str) -> Left {
        if self.index.status().iter().any(|one| one.quarantined) {
            return Left::UntilStart("a partition");
        }
        Left::Now(what.to_owned())
    }
}

fn retryable(error: impl Display) -> Left {
    Left::Now(error.to_string())
}

#[cfg(test)]
mod tests;
