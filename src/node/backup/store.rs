//! Backups of a running node, for the admin listener, one at a time. A backup continues when its
//! client disconnects, and ends with the node.

use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use serde_json::json;
use tokio::runtime::Handle;

use crate::admin::BackupControl;
use crate::admin::BackupView;
use crate::env::Env;
use crate::telemetry::Registry;

use super::attempt::Attempt;
use super::attempt::GIVE_UP_AFTER;
use super::copy::How;
use super::copy::Pace;
use super::error::BackupError;
use super::make::backup_unless_given_up;
use super::marks::Summary;
use super::progress::Progress;
use super::progress::Step;
use super::source::Source;

const RUNNING: &str = "running";
const FAILED: &str = "failed";
/// How long a node that stops waits until its backup releases the directory.
const RELEASE_WAIT: Duration = Duration::from_secs(2);
/// The largest number of tasks of given-up backups that still wait for their directories. Each
/// occupies a thread.
const UNANSWERED_MAX: usize = 8;

/// Metrics of backups.
#[derive(Clone, Debug, Default)]
struct Metrics {
    given_up: Counter,
    unanswered: Gauge,
}

/// Makes the backups of one node; cheap to clone.
#[derive(Clone, Debug)]
pub struct NodeBackups {
    source: Source,
    env: Env,
    last: Arc<Mutex<Option<BackupView>>>,
    /// Directories for which tasks of given-up backups still wait.
    unanswered: Arc<Mutex<BTreeSet<PathBuf>>>,
    metrics: Metrics,
}

impl NodeBackups {
    /// Backups of the store of a node.
    #[must_use]
    pub fn new(source: Source, env: Env) -> Self {
        let (last, unanswered) = (Arc::default(), Arc::default());
        Self { source, env, last, unanswered, metrics: Metrics::default() }
    }

    /// The same with metrics in `registry`.
    #[must_use]
    pub fn registered(self, registry: &mut Registry) -> Self {
        let Metrics { given_up, unanswered } = &self.metrics;
        let help = "Backups given up since their directories did not answer";
        registry.register("backups_given_up", help, given_up.clone());
        let help = "Directories of backups that were given up and still do not answer";
        registry.register("backups_unanswered", help, unanswered.clone());
        self
    }

    /// Changes the view of a backup, if it is still the last one.
    fn change(&self, number: u64, change: impl FnOnce(&mut BackupView)) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(view) = last.as_mut().filter(|view| view.number == number) {
            change(view);
        }
    }

    async fn make(self, begun: Begun, attempt: Arc<Attempt>) -> Result<Summary, BackupError> {
        let Begun { number, directory } = begun;
        let shown = directory.display();
        tracing::info!(directory = %shown, "backup begins");
        let this = self.clone();
        let progress = Arc::new(move |step: Step| {
            this.change(number, |view| {
                view.extents = step.extents;
                view.extents_total = step.extents_total;
                view.copied_bytes = step.copied_bytes;
            });
        });
        let stop = self.env.tasks.stopping();
        let how = How { pace: Pace::of(&self.source), progress: progress as Progress, attempt };
        tokio::select! {
            biased;
            made = backup_unless_given_up(&self.source, &directory, &self.env, how) => made,
            () = stop.cancelled() => Err(BackupError::Stops),
        }
    }

    fn end(&self, begun: &Begun, made: Result<Summary, BackupError>) {
        let directory = begun.directory.display();
        match made {
            Ok(summary) => {
                let (extents, copied_bytes) = (summary.extents, summary.copied_bytes);
                tracing::info!(%directory, extents, copied_bytes, "backup complete");
                self.change(begun.number, |view| {
                    view.state = "complete".to_owned();
                    view.summary = Some(json!(summary));
                    view.error = None;
                });
            }
            Err(error) => {
                tracing::error!(%directory, %error, "the backup is not complete");
                self.failed(begun.number, error.to_string());
            }
        }
    }

    fn failed(&self, number: u64, error: String) {
        self.change(number, |view| {
            view.state = FAILED.to_owned();
            view.error = Some(error);
        });
    }

    /// Why a backup to a directory is refused: a given-up backup still waits for this directory, or
    /// too many wait for theirs.
    fn unanswered(&self, directory: &Path) -> Option<String> {
        let unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = unanswered.get(directory);
        let full = unanswered.first().filter(|_| unanswered.len() >= UNANSWERED_MAX);
        let silent = waits.or(full)?.display();
        Some(format!(
            "{silent} still does not answer, and a backup to it was given up: see whether its disk \
             or mount works, or restart the node"
        ))
    }

    /// Records whether the task of a given-up backup waits for its directory.
    fn waits(&self, directory: &Path, waits: bool) {
        let mut unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        if waits {
            unanswered.insert(directory.to_owned());
        } else {
            unanswered.remove(directory);
        }
        self.metrics.unanswered.set(i64::try_from(unanswered.len()).unwrap_or(i64::MAX));
    }
}

impl BackupControl for NodeBackups {
    fn begin(&self, directory: PathBuf) -> Option<BackupView> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref().is_some_and(|last| last.state == RUNNING) {
            return None;
        }
        let error = self.unanswered(&directory);
        let refused = error.is_some();
        let view = BackupView {
            number: last.as_ref().map_or(0, |last| last.number) + 1,
            directory: directory.display().to_string(),
            state: if refused { FAILED } else { RUNNING }.to_owned(),
            extents: 0,
            extents_total: 0,
            copied_bytes: 0,
            summary: None,
            error,
        };
        *last = Some(view.clone());
        drop(last);
        if !refused {
            let begun = Begun { number: view.number, directory };
            let this = self.clone();
            drop(self.env.tasks.spawn("backup", async move { this.watched(begun).await }));
        }
        Some(view)
    }

    fn last(&self) -> Option<BackupView> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A backup that was begun.
#[derive(Clone, Debug)]
struct Begun {
    number: u64,
    directory: PathBuf,
}

impl NodeBackups {
    /// Makes a backup. One whose task panics has failed too. A node that stops waits for it for at
    /// most [`RELEASE_WAIT`]: its directory may be on a mount that does not answer. While the node
    /// serves, such a backup is given up, and its holds are released.
    async fn watched(self, begun: Begun) {
        let (stop, clock) = (self.env.tasks.stopping(), Arc::clone(&self.env.clock));
        let attempt = Attempt::new(Arc::clone(&clock));
        let (this, own, shared) = (self.clone(), begun.clone(), Arc::clone(&attempt));
        // On a thread of its own: the compiler does not see that the future may change threads, and
        // files of the directory are read and written on it.
        let runtime = Handle::current();
        let work = move || runtime.block_on(this.make(own, shared));
        let mut task = self.env.tasks.spawn_blocking("backup", work);
        let hangs = async {
            stop.cancelled().await;
            clock.sleep(RELEASE_WAIT).await;
        };
        tokio::pin!(hangs);
        tokio::select! {
            biased;
            ended = &mut task => match ended {
                Ok(made) => self.end(&begun, made),
                Err(_) => {
                    let directory = begun.directory.display();
                    tracing::error!(%directory, "the backup's task panicked");
                    let why = "its task panicked: the server's log says why";
                    self.failed(begun.number, why.to_owned());
                }
            },
            () = &mut hangs => self.end(&begun, Err(BackupError::Stops)),
            () = attempt.give_up_after(GIVE_UP_AFTER) => {
                self.metrics.given_up.inc();
                self.waits(&begun.directory, true);
                self.end(&begun, Err(BackupError::GivenUp));
                tokio::select! {
                    biased;
                    ended = task => self.answered(&begun, ended.ok()),
                    () = hangs => {}
                }
            }
        }
    }

    /// The directory of a backup that was given up answers again.
    fn answered(&self, begun: &Begun, made: Option<Result<Summary, BackupError>>) {
        let directory = begun.directory.display();
        tracing::info!(%directory, "the directory of a backup that was given up answers again");
        self.waits(&begun.directory, false);
        // Everything was copied; only the mark was left.
        if let Some(made @ Ok(_)) = made {
            self.end(begun, made);
        }
    }
}
