//! The writer: a task on a thread of its own, so that a slow disk or a slow reader of standard
//! output delays nothing else.

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
/// The pause after a failed write. Short, so that a change that waits for room sees several tries.
const RETRY: Duration = Duration::from_millis(250);
/// The shortest time between two log lines about failures.
const WARN_EVERY: Duration = Duration::from_secs(60);
/// How long [`Writer::close`] waits for the lines that are left.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// Where the lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
}

/// The settings of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The destination; with `None` the log is off.
    pub to: Option<Destination>,
    /// Whether every request has a line.
    pub requests: bool,
    /// The most bytes of a file; it grows further only while it cannot be rotated.
    pub bytes_max: u64,
    /// Files kept, including the one that is being written.
    pub files: u32,
}

/// Why the audit log cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The path names a folder or a device.
    #[error("it is not a file; name a file, or - for standard output")]
    NoFile,
    /// Another node writes it.
    #[error("it is written by {by}; give each node a file of its own with --audit-log")]
    Taken {
        /// The process.
        by: String,
    },
    /// It cannot be opened.
    #[error("{0}; give another file with --audit-log")]
    Disk(DiskError),
    /// The system refused a thread.
    #[error("the operating system refuses a thread for it: {0}")]
    Thread(std::io::Error),
}

#[derive(Debug)]
pub(super) enum Sink {
    Stdout,
    File(LogFile),
}

impl Sink {
    /// Writes lines and removes the written ones from the batch. The caller writes those that are
    /// left after an error again.
    async fn write(&mut self, batch: &mut Batch) -> Result<(), DiskError> {
        match self {
            Self::File(file) => file.write(&mut batch.lines, batch.has_changes).await,
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

/// The running writer.
#[derive(Debug)]
pub struct Writer {
    queue: Arc<Queue>,
    tasks: Tasks,
    running: JoinHandle<()>,
}

/// A log that was opened.
#[derive(Debug)]
pub struct StartedLog {
    /// Adds lines.
    pub log: AuditLog,
    /// Writes them.
    pub writer: Writer,
}

impl Writer {
    /// Opens the log and starts its writer; `None` when the log is off.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn start(
        settings: &Settings,
        env: &Env,
        metrics: Metrics,
    ) -> Result<Option<StartedLog>, OpenError> {
        let Some(to) = &settings.to else { return Ok(None) };
        let thread = Tasks::on_own_thread("audit-log").map_err(OpenError::Thread)?;
        let tasks = thread.reporting_to(&env.tasks);
        let sink = match to {
            Destination::Stdout => Sink::Stdout,
            Destination::File(path) => Sink::File(open(path, settings, &tasks).await?),
        };
        let queue = Arc::new(Queue::new(Arc::clone(&env.clock), metrics, settings.requests));
        let (of, broken) = (Arc::clone(&queue), Arc::clone(&queue));
        // After a panic nothing is written any more.
        let stop = move |_: &str| broken.abandon();
        let running = tasks.spawn_or_stop("audit log", run(of, sink), stop);
        let log = AuditLog::new(Arc::clone(&queue));
        Ok(Some(StartedLog { log, writer: Self { queue, tasks, running } }))
    }

    /// Refuses further lines and writes those that are left, for at most `CLOSE_WAIT`.
    pub async fn close(self) {
        self.queue.close();
        tokio::select! {
            biased;
            _ = self.running => self.tasks.shutdown().await,
            () = self.queue.clock.sleep(CLOSE_WAIT) => {
                tracing::error!("the audit log cannot be written; its last lines are lost");
                self.queue.abandon();
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
        DiskError::Locked { by } => OpenError::Taken { by },
        error @ (DiskError::NotFound { .. }
        | DiskError::Full
        | DiskError::TooManyFiles { .. }
        | DiskError::Io { .. }) => OpenError::Disk(error),
    })?;
    let opened = LogFile::open(disk, name.to_owned(), settings.bytes_max, settings.files);
    opened.await.map_err(OpenError::Disk)
}

/// Writes until the queue is closed and empty. A failed write is tried again until the queue is
/// closed; then all lines that are left are dropped and counted.
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
                tracing::error!(
                    %error,
                    "the audit log cannot be written; the write is tried again"
                );
            }
            if queue.is_closed() {
                return queue.abandon();
            }
            queue.clock.sleep(RETRY).await;
        }
        queue.written(batch.bytes);
    }
}
