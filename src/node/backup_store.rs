//! Backups of a running node, for the admin listener: one at a time. A backup goes on when whoever
//! asked for it has gone, and ends with the node.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use serde_json::json;
use tokio::runtime::Handle;

use crate::admin::BackupControl;
use crate::admin::BackupView;
use crate::env::Env;

use super::backup;
use super::backup::BackupError;
use super::backup::Source;
use super::backup::Step;
use super::backup::Summary;

const RUNNING: &str = "running";
/// How long a node that stops waits for its backup to let go of the directory.
const LET_GO: Duration = Duration::from_secs(2);

/// Makes the backups of one node; cheap to clone.
#[derive(Clone, Debug)]
pub struct NodeBackups {
    source: Source,
    env: Env,
    last: Arc<Mutex<Option<BackupView>>>,
}

impl NodeBackups {
    /// Backups of the store of a node.
    #[must_use]
    pub fn new(source: Source, env: Env) -> Self {
        Self { source, env, last: Arc::default() }
    }

    fn change(&self, change: impl FnOnce(&mut BackupView)) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(view) = last.as_mut() {
            change(view);
        }
    }

    async fn make(self, directory: PathBuf) {
        let shown = directory.display();
        tracing::info!(directory = %shown, "backup begins");
        let this = self.clone();
        let progress = Arc::new(move |step: Step| {
            this.change(|view| {
                view.extents = step.extents;
                view.extents_total = step.extents_total;
                view.copied_bytes = step.copied_bytes;
            });
        });
        let stop = self.env.tasks.stopping();
        let made = tokio::select! {
            biased;
            made = backup::backup(&self.source, &directory, &self.env, progress) => made,
            () = stop.cancelled() => Err(BackupError::Stops),
        };
        self.end(&directory.display().to_string(), made);
    }

    fn end(&self, directory: &str, made: Result<Summary, BackupError>) {
        match made {
            Ok(summary) => {
                let (extents, copied_bytes) = (summary.extents, summary.copied_bytes);
                tracing::info!(directory, extents, copied_bytes, "backup complete");
                self.change(|view| {
                    view.state = "complete".to_owned();
                    view.summary = Some(json!(summary));
                });
            }
            Err(error) => {
                tracing::error!(directory, %error, "the backup is not complete");
                self.failed(error.to_string());
            }
        }
    }

    fn failed(&self, error: String) {
        self.change(|view| {
            view.state = "failed".to_owned();
            view.error = Some(error);
        });
    }
}

impl BackupControl for NodeBackups {
    fn begin(&self, directory: PathBuf) -> Option<BackupView> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref().is_some_and(|last| last.state == RUNNING) {
            return None;
        }
        let view = BackupView {
            number: last.as_ref().map_or(0, |last| last.number) + 1,
            directory: directory.display().to_string(),
            state: RUNNING.to_owned(),
            extents: 0,
            extents_total: 0,
            copied_bytes: 0,
            summary: None,
            error: None,
        };
        *last = Some(view.clone());
        drop(last);
        let (this, env) = (self.clone(), self.env.clone());
        drop(env.tasks.spawn("backup", async move { this.watched(directory).await }));
        Some(view)
    }

    fn last(&self) -> Option<BackupView> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl NodeBackups {
    /// Makes a backup; one whose task panics has failed too. When the node stops it is not waited
    /// for beyond [`LET_GO`]: its directory may be on a mount that does not answer any more.
    async fn watched(self, directory: PathBuf) {
        let (this, shown) = (self.clone(), directory.display().to_string());
        // On a thread of its own: the compiler does not see that the future may change threads, and
        // files of the directory are read and written on it.
        let runtime = Handle::current();
        let work = move || runtime.block_on(this.make(directory));
        let task = self.env.tasks.spawn_blocking("backup", work);
        let (stop, clock) = (self.env.tasks.stopping(), Arc::clone(&self.env.clock));
        let hangs = async {
            stop.cancelled().await;
            clock.sleep(LET_GO).await;
        };
        tokio::select! {
            biased;
            ended = task => if ended.is_err() {
                self.failed("its task panicked: the server's log says why".to_owned());
                tracing::error!(directory = shown, "the backup's task panicked");
            },
            () = hangs => self.end(&shown, Err(BackupError::Stops)),
        }
    }
}
