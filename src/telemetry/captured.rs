//! Captures log lines in tests.

use std::io;
use std::io::Write;
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::Mutex;

use tracing::Dispatch;
use tracing::subscriber::DefaultGuard;
use tracing::subscriber::NoSubscriber;

use crate::telemetry::log::TextFields;

/// A second dispatcher. With only one, `tracing` may decide on another thread that no one wants a
/// log line, and then it is off for all threads.
static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));

/// The captured log lines; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl CapturedLog {
    /// Captures the log lines of this thread until the guard is dropped.
    pub(crate) fn begin(&self) -> DefaultGuard {
        LazyLock::force(&ANOTHER);
        let own = self.clone();
        let lines = tracing_subscriber::fmt().with_ansi(false).with_writer(move || own.clone());
        let lines = lines.fmt_fields(TextFields);
        tracing::subscriber::set_default(lines.finish())
    }

    /// All captured lines.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }

    /// The number of lines that contain all of these.
    pub(crate) fn lines_with(&self, parts: &[&str]) -> usize {
        let text = self.text();
        text.lines().filter(|line| parts.iter().all(|part| line.contains(part))).count()
    }
}

impl Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
