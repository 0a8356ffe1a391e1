//! What a start does about files of releases that kept secrets plain: rows are sealed by then, and
//! here the older values leave logs, runs and journals.

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

/// How long after a failure it is tried again; it doubles up to the longest, since each try may
/// rewrite much.
const AGAIN: Duration = Duration::from_secs(10);
const AGAIN_MAX: Duration = Duration::from_secs(600);

/// What is rewritten.
#[derive(Clone, Debug)]
pub struct Erase {
    /// Logs and runs.
    pub index: Arc<IndexServer>,
    /// Journals.
    pub capacity: Arc<CapacityNode>,
    /// Where it is remembered.
    pub coordinator: Arc<dyn Coordinator>,
    /// The ring of the store.
    pub ring: Uuid,
    /// Whether all rows are sealed: before that nothing is rewritten, since a row that is still
    /// plain would be kept.
    pub sealed: bool,
    /// Seals the rest.
    pub router: Arc<Router>,
    /// Under this ring.
    pub secrets: Secrets,
}

/// Why it is not done.
enum Left {
    /// It is tried again.
    Now(String),
    /// Only a later start can do it.
    UntilStart(&'static str),
}

impl Erase {
    /// Starts it as a task of `env`, which ends when that stops.
    pub fn start(self, env: &Env) {
        let own = env.clone();
        let erasing = move || self.clone().run(own.clone());
        drop(env.supervise("erase plain secrets", env.tasks.stopping(), erasing));
    }

    /// Runs until no file holds a plain secret and the store remembers that, or the node stops.
    /// What fails is tried again, unless a partition or disk is out of service until the next
    /// start. A start that finds it undone begins anew.
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
                    let next = "may hold plain secrets: the next start looks again";
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

    /// Rows first, then logs and runs: what they write anew goes through the journals.
    async fn once(&mut self) -> Result<(), Left> {
        if !self.sealed {
            let done = reseal(&self.router, &self.secrets).await;
            self.sealed = !done.map_err(again)?.incomplete;
        }
        if !self.sealed {
            return Err(self.left("not all rows are sealed"));
        }
        let rewritten = self.index.rewrite_secret_rows().await.map_err(again)?;
        if !self.capacity.erase_journals().await.map_err(again)? {
            return Err(Left::UntilStart("a disk"));
        }
        if !rewritten {
            return Err(self.left("not all logs and runs are rewritten"));
        }
        master_key::remember_sealed(self.coordinator.as_ref(), self.ring).await.map_err(again)
    }

    /// Why the index is not done.
    fn left(&self, what: &str) -> Left {
        if self.index.status().iter().any(|one| one.quarantined) {
            return Left::UntilStart("a partition");
        }
        Left::Now(what.to_owned())
    }
}

fn again(error: impl Display) -> Left {
    Left::Now(error.to_string())
}

#[cfg(test)]
mod tests;
