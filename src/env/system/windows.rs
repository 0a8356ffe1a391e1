//! Windows, for development: files have no modes, folders are not synced, the space of the disk is
//! not queried.

use std::fs::DirBuilder;
use std::fs::File;
use std::fs::Metadata;
use std::fs::OpenOptions;
use std::io;
use std::os::windows::fs::MetadataExt;
use std::os::windows::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use tokio::signal::windows::CtrlBreak;
use tokio::signal::windows::CtrlC;

use crate::env::modes;

use super::OpenFiles;
use super::Refusal;
use super::TerminalSize;

/// Bytes that a disk is said to have, since the standard library does not ask for its space.
const SAID: u64 = 1 << 40;

/// FILE_FLAG_OPEN_REPARSE_POINT
const OPEN_REPARSE_POINT: u32 = 0x0020_0000;

/// ERROR_TOO_MANY_OPEN_FILES
const TOO_MANY_OPEN_FILES: i32 = 4;

/// A symbolic link is opened itself.
pub(in crate::env) fn no_follow(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(OPEN_REPARSE_POINT)
}

/// The user's folders are for the user alone already.
pub const fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

pub(in crate::env) const fn private_folder(builder: &mut DirBuilder) -> &mut DirBuilder {
    builder
}

pub(in crate::env) const fn make_files_private() {}

/// The mode that a private file has elsewhere.
#[must_use]
pub const fn mode(_: &Metadata) -> u32 {
    modes::FILE
}

#[expect(clippy::unnecessary_wraps, reason = "as on Unix")]
pub(in crate::env) const fn set_mode(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

pub(in crate::env) const fn is_own(_: &Metadata) -> bool {
    true
}

pub(in crate::env) const fn has_other_names(_: &Metadata) -> bool {
    false
}

pub(in crate::env) const fn device(_: &Metadata) -> Option<u64> {
    None
}

pub(in crate::env) const fn inode(_: &Metadata) -> Option<u64> {
    None
}

/// The time of the last write, in a unit of its own.
pub(super) fn changed(file: &Metadata) -> (i64, i64) {
    (0, file.last_write_time().cast_signed())
}

pub(in crate::env) fn allocated(file: &Metadata) -> u64 {
    file.len()
}

pub(in crate::env) struct Room {
    pub(in crate::env) total: u64,
    pub(in crate::env) available: u64,
}

#[expect(clippy::unnecessary_wraps, reason = "as on Unix")]
pub(in crate::env) const fn room(_: &File) -> io::Result<Room> {
    Ok(Room { total: SAID, available: SAID })
}

#[expect(clippy::unnecessary_wraps, reason = "as on Unix")]
pub(in crate::env) const fn room_at(_: &Path) -> io::Result<Room> {
    Ok(Room { total: SAID, available: SAID })
}

/// Windows opens no folder to sync it.
///
/// # Errors
/// None.
#[expect(clippy::unnecessary_wraps, reason = "as on Unix")]
pub const fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

pub(in crate::env) fn kind(error: &io::Error) -> Option<Refusal> {
    match error.raw_os_error()? {
        TOO_MANY_OPEN_FILES => Some(Refusal::TooManyFiles),
        _ => None,
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
pub(in crate::env) const fn limit_unsent(_: &socket2::SockRef<'_>, _: u32) -> io::Result<()> {
    Ok(())
}

pub(in crate::env) const fn thread_cpu() -> Duration {
    Duration::ZERO
}

/// The name of this machine; `None` if it has none.
#[must_use]
pub fn host_name() -> Option<String> {
    std::env::var("COMPUTERNAME").ok().filter(|name| !name.is_empty())
}

pub(in crate::env) const fn boot_time() -> Option<Duration> {
    None
}

pub(in crate::env) const fn process_cpu() -> Duration {
    Duration::ZERO
}

pub(in crate::env) const fn open_files_max() -> Option<u64> {
    None
}

/// There is no limit.
#[must_use]
pub const fn raise_open_files() -> OpenFiles {
    OpenFiles { granted: None, refused: None }
}

/// Not known.
#[must_use]
pub const fn terminal_size() -> Option<TerminalSize> {
    None
}

/// Ctrl-C and Ctrl-Break, which end a node.
#[derive(Debug)]
pub struct Signals {
    interrupt: CtrlC,
    stop: CtrlBreak,
}

impl Signals {
    /// Handles the signals instead of their default action.
    ///
    /// # Errors
    /// The system refuses.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: tokio::signal::windows::ctrl_c()?,
            stop: tokio::signal::windows::ctrl_break()?,
        })
    }

    /// Waits for the next signal and returns its name. Cancel safe.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => "Ctrl-C",
            _ = self.stop.recv() => "Ctrl-Break",
        }
    }
}
