//! The one who writes: a task on a thread of its own, so that a slow disk or reader stops nobody
//! else.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::task::JoinHandle;

use crate::env;
use crate::env::DiskError;
use crate::env::Env;
use crate::env::OsDisk;
use crate::env::Tasks;

use super::file::LogFile;
use super::metrics::Metrics;
use super::queue::AuditLog;
use super::queue::Batch;
use super::queue::Queue;

/// Bytes of lines taken from the queue at a time.
const BATCH_BYTES: usize = 1 << 20;
/// The pause after a failed write: a change that waits for room has several tries.
const RETRY: Duration = Duration::from_millis(250);
/// Failures are logged no more often than this.
const WARN_EVERY: Duration = Duration::from_secs(60);
/// How long a stop waits for the lines that are left.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// Where the lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
}

/// What is written, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where; `None` is off.
    pub to: Option<Destination>,
    /// Whether every request has a line.
    pub requests: bool,
    /// Bytes of a file at most, unless it cannot be rotated.
    pub bytes_max: u64,
    /// Files kept, the one that is written included.
    pub files: u32,
}

/// Why there is no audit log.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The path is that of a folder or a device.
    #[error("it is no file; name a file, or - for standard output")]
    NoFile,
    /// Another node writes it.
    #[error("another process writes it; give each node a file of its own")]
    Taken,
    /// It cannot be opened.
    #[error("{0}")]
    Disk(DiskError),
    /// No thread.
    #[error("the system gives no thread for it: {0}")]
    Thread(std::io::Error),
}

#[derive(Debug)]
pub(super) enum Sink {
    Stdout,
    File(LogFile),
}

impl Sink {
    /// Writes lines and takes them away; those that are left after an error are to be written
    /// again.
    async fn write(&mut self, batch: &mut Batch) -> Result<(), DiskError> {
        match self {
            Self::File(file) => file.write(&mut batch.lines, batch.changes > 0).await,
            Self::Stdout => {
                while let Some(line) = batch.lines.front() {
                    env::stdout::print(line)?;
                    batch.lines.pop_front();
                }
                Ok(())
            }
        }
    }
}

/// The writer at work.
#[derive(Debug)]
pub struct Writer {
    queue: Arc<Queue>,
    tasks: Tasks,
    running: JoinHandle<()>,
}

impl Writer {
    /// Opens the log and starts to write it; `None` when it is off.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn start(
        settings: &Settings,
        env: &Env,
        metrics: Metrics,
    ) -> Result<Option<(AuditLog, Self)>, OpenError> {
        let Some(to) = &settings.to else { return Ok(None) };
        let thread = Tasks::on_own_thread("audit-log").map_err(OpenError::Thread)?;
        let tasks = thread.reporting_to(&env.tasks);
        let sink = match to {
            Destination::Stdout => Sink::Stdout,
            Destination::File(path) => Sink::File(open(path, settings, &tasks).await?),
        };
        let queue = Arc::new(Queue::new(Arc::clone(&env.clock), metrics, settings.requests));
        let (of, broken) = (Arc::clone(&queue), Arc::clone(&queue));
        // What comes after a panic is counted as dropped.
        let stop = move |_: &str| broken.close();
        let running = tasks.spawn_or_stop("audit log", run(of, sink), stop);
        Ok(Some((AuditLog::new(Arc::clone(&queue)), Self { queue, tasks, running })))
    }

    /// Writes what is left, within a time, and takes no more.
    pub async fn close(self) {
        self.queue.close();
        tokio::select! {
            biased;
            _ = self.running => self.tasks.shutdown().await,
            () = self.queue.clock.sleep(CLOSE_WAIT) => {
                tracing::error!("the audit log cannot be written; its last lines are lost");
            }
        }
    }
}

async fn open(path: &Path, settings: &Settings, tasks: &Tasks) -> Result<LogFile, OpenError> {
    let name = path.file_name().and_then(|name| name.to_str()).ok_or(OpenError::NoFile)?;
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Err(OpenError::NoFile);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| Path::new("."));
    let lock = format!("{name}.lock");
    let disk = OsDisk::open_locked_by(folder, &lock, tasks.clone());
    let disk = disk.map_err(|error| match error {
        DiskError::Locked => OpenError::Taken,
        error => OpenError::Disk(error),
    })?;
    let limits = (settings.bytes_max, settings.files);
    LogFile::open(disk, name.to_owned(), limits).await.map_err(OpenError::Disk)
}

/// Writes until the queue is closed and empty. What cannot be written is tried again, until the
/// end.
pub(super) async fn run(queue: Arc<Queue>, mut sink: Sink) {
    let mut warned: Option<Duration> = None;
    loop {
        let mut batch = queue.take(BATCH_BYTES).await;
        if batch.lines.is_empty() {
            return;
        }
        while let Err(error) = sink.write(&mut batch).await {
            queue.metrics.failed();
            let now = queue.clock.monotonic();
            if warned.is_none_or(|at| now.saturating_sub(at) >= WARN_EVERY) {
                warned = Some(now);
                tracing::error!(%error, "the audit log cannot be written; it is tried again");
            }
            if queue.is_closed() {
                return queue.dropped(batch.changes, batch.requests);
            }
            queue.clock.sleep(RETRY).await;
        }
        queue.written(batch.bytes);
    }
}
