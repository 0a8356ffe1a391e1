//! Differences between Unix systems and Windows, for the modules of this layer and the few others
//! that need them. Stores are supported on Linux. On macOS and Windows the program is for
//! development.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as own;
#[cfg(windows)]
use windows as own;

pub use own::Signals;
pub use own::host_name;
pub use own::mode;
pub use own::private;
pub use own::raise_open_files;
pub use own::sync_folder;
pub use own::terminal_size;
pub(super) use own::{
    Room, allocated, boot_time, device, has_other_names, inode, is_own, kind, limit_unsent,
    make_files_private, no_follow, open_files_max, private_folder, process_cpu, room, room_at,
    set_mode, thread_cpu,
};

use std::fs::Metadata;

/// Why the operating system refuses a call, where [`std::io::ErrorKind`] does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The file was opened for reading only.
    #[cfg_attr(windows, expect(dead_code, reason = "a code that has other meanings there"))]
    ReadOnly,
    /// The process or the system has too many files open.
    TooManyFiles,
}

/// The limit of open files of this process.
#[derive(Clone, Debug)]
pub struct OpenFiles {
    /// Files; `None` is no limit.
    pub granted: Option<u64>,
    /// Why the limit was not raised.
    pub refused: Option<String>,
}

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug)]
pub struct TerminalSize {
    /// Columns.
    pub columns: u16,
    /// Lines.
    pub lines: u16,
}

/// Distinguishes a file from its replacement and from an earlier state of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileVersion {
    device: Option<u64>,
    inode: Option<u64>,
    size: u64,
    changed_seconds: i64,
    changed_nanos: i64,
}

impl FileVersion {
    /// The version that this metadata is of.
    #[must_use]
    pub fn of(file: &Metadata) -> Self {
        let (changed_seconds, changed_nanos) = own::changed(file);
        let (device, inode) = (device(file), inode(file));
        Self { device, inode, size: file.len(), changed_seconds, changed_nanos }
    }
}
