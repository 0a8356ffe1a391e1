//! How far a check is.

use std::path::Path;

use indicatif::HumanBytes;
use indicatif::ProgressBar;
use indicatif::ProgressStyle;

/// Told while a check runs.
pub trait Progress: Send {
    /// So many extents of a disk are verified.
    fn extents(&mut self, disk: &Path, done: u64, total: u64, bytes: u64);

    /// So many blobs of a partition are verified.
    fn blobs(&mut self, done: u64, bytes: u64);
}

/// Shows nothing.
#[derive(Debug)]
pub struct Silent;

impl Progress for Silent {
    fn extents(&mut self, _disk: &Path, _done: u64, _total: u64, _bytes: u64) {}
    fn blobs(&mut self, _done: u64, _bytes: u64) {}
}

/// A bar on standard error, hidden when that is no terminal.
#[derive(Debug)]
pub struct Terminal {
    bar: ProgressBar,
    on_blobs: bool,
}

impl Default for Terminal {
    fn default() -> Self {
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} extents  {msg}");
        bar.set_style(style.expect("a good template"));
        Self { bar, on_blobs: false }
    }
}

impl Progress for Terminal {
    fn extents(&mut self, disk: &Path, done: u64, total: u64, bytes: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        self.bar.set_message(format!("{}  {}", HumanBytes(bytes), disk.display()));
    }

    fn blobs(&mut self, done: u64, bytes: u64) {
        if !self.on_blobs {
            self.on_blobs = true;
            let style = ProgressStyle::with_template("{spinner} {pos} blobs  {msg}");
            self.bar.set_style(style.expect("a good template"));
        }
        self.bar.set_position(done);
        self.bar.set_message(HumanBytes(bytes).to_string());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
