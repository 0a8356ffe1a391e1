//! The progress of a copy: counted, and shown on a terminal.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use indicatif::HumanBytes;
use indicatif::HumanDuration;
use indicatif::ProgressBar;
use indicatif::ProgressStyle;
use serde::Serialize;

use crate::cli::output::warn;

/// Counters of a copy, and a progress bar on standard error, hidden if that is no terminal.
#[derive(Debug)]
pub(super) struct Meter {
    bar: ProgressBar,
    files: AtomicU64,
    skipped: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
    reused: AtomicU64,
}

/// The result of a copy, for programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Summary {
    /// Files and blobs that were copied.
    pub(super) files: u64,
    /// Those that were equal at the target.
    pub(super) skipped: u64,
    /// Those that failed.
    pub(super) failed: u64,
    /// Bytes that were moved.
    pub(super) bytes: u64,
    /// Bytes that an earlier run had already moved.
    pub(super) reused_bytes: u64,
    /// Bytes of bodies of requests.
    pub(super) sent_bytes: u64,
    /// Bytes of bodies of answers.
    pub(super) received_bytes: u64,
    /// Requests that were sent again.
    pub(super) repeated_requests: u64,
    /// How long it took.
    pub(super) seconds: f64,
}

/// How a file ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was copied.
    Copied,
    /// It was equal at the target.
    Skipped,
}

impl Meter {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        let bar = ProgressBar::new(0);
        let template = "{bar:24} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left  {msg}";
        bar.set_style(ProgressStyle::with_template(template).expect("a good template"));
        Self {
            bar,
            files: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            reused: AtomicU64::new(0),
        }
    }

    /// So many bytes more are to be copied.
    pub(super) fn expect(&self, bytes: u64) {
        self.bar.inc_length(bytes);
    }

    /// Bytes were moved.
    pub(super) fn moved(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Relaxed);
        self.bar.inc(bytes);
    }

    /// Bytes were there already.
    pub(super) fn reused(&self, bytes: u64) {
        self.reused.fetch_add(bytes, Relaxed);
        self.bar.inc(bytes);
    }

    /// A file of `bytes` bytes ended.
    pub(super) fn ended(&self, outcome: Outcome, bytes: u64) {
        match outcome {
            Outcome::Copied => self.files.fetch_add(1, Relaxed),
            Outcome::Skipped => {
                self.bar.inc(bytes);
                self.skipped.fetch_add(1, Relaxed)
            }
        };
        self.show();
    }

    /// A file failed, which a line says.
    pub(super) fn failed(&self, line: &str) {
        self.failed.fetch_add(1, Relaxed);
        self.show();
        self.note(line);
    }

    /// Prints a line to standard error, above the bar if there is one.
    pub(super) fn note(&self, line: &str) {
        // If standard error is closed, the line is lost.
        self.bar.suspend(|| drop(warn(line)));
    }

    fn show(&self) {
        let (files, skipped) = (self.files.load(Relaxed), self.skipped.load(Relaxed));
        self.bar.set_message(format!("{} files", files + skipped));
    }

    /// Removes the bar and returns the result.
    pub(super) fn end(&self, seconds: f64) -> Summary {
        self.bar.finish_and_clear();
        Summary {
            files: self.files.load(Relaxed),
            skipped: self.skipped.load(Relaxed),
            failed: self.failed.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            reused_bytes: self.reused.load(Relaxed),
            seconds: (seconds * 1e3).round() / 1e3,
            ..Summary::default()
        }
    }
}

impl Summary {
    /// One line for people.
    pub(super) fn line(&self) -> String {
        let plural =
            |count: u64| if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
        let mut text = format!("{} copied, {}", plural(self.files), HumanBytes(self.bytes));
        let time = Duration::from_secs_f64(self.seconds);
        if self.seconds >= 1.0 {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_precision_loss,
                clippy::cast_sign_loss,
                reason = "a rate is shown in few digits"
            )]
            let rate = (self.bytes as f64 / self.seconds) as u64;
            text += &format!(" in {} ({}/s)", HumanDuration(time), HumanBytes(rate));
        }
        if self.reused_bytes > 0 {
            text += &format!(", {} taken over from an earlier run", HumanBytes(self.reused_bytes));
        }
        if self.skipped > 0 {
            text += &format!(", {} skipped as equal", plural(self.skipped));
        }
        if self.failed > 0 {
            text += &format!(", {} FAILED", plural(self.failed));
        }
        text + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_says_what_was_moved_taken_over_skipped_and_failed() {
        let meter = Meter::new();
        meter.expect(100);
        meter.moved(60);
        meter.reused(30);
        meter.ended(Outcome::Copied, 90);
        meter.ended(Outcome::Skipped, 10);
        let summary = meter.end(2.0);
        assert_eq!((summary.files, summary.skipped, summary.failed), (1, 1, 0));
        assert_eq!((summary.bytes, summary.reused_bytes), (60, 30));
        let line = summary.line();
        assert!(
            line.starts_with("1 file copied, 60 B in 2 seconds (30 B/s), 30 B taken over"),
            "{line}"
        );
        assert!(line.ends_with("1 file skipped as equal\n"), "{line}");
        let failed = Summary { failed: 2, ..Summary::default() };
        assert!(failed.line().ends_with("2 files FAILED\n"));
    }
}
