//! Unix: Linux and macOS.

use std::fs::DirBuilder;
use std::fs::File;
use std::fs::Metadata;
use std::fs::OpenOptions;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::Resource;
use rustix::process::Rlimit;
use rustix::process::getrlimit;
use rustix::process::setrlimit;
use rustix::time::ClockId;
use rustix::time::clock_gettime;
use tokio::signal::unix::Signal;
use tokio::signal::unix::SignalKind;
use tokio::signal::unix::signal;

use crate::env::modes;

use super::OpenFiles;
use super::Refusal;
use super::TerminalSize;

/// A file that is made is for its user alone.
pub fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(modes::FILE)
}

/// A symbolic link is refused rather than followed.
pub(in crate::env) fn no_follow(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
}

/// A folder that is made is for its user alone.
pub(in crate::env) fn private_folder(builder: &mut DirBuilder) -> &mut DirBuilder {
    builder.mode(modes::FOLDER)
}

/// The same for all files that the process makes from now on.
pub(in crate::env) fn make_files_private() {
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
}

/// The permissions of a file.
#[must_use]
pub fn mode(file: &Metadata) -> u32 {
    file.mode() & 0o7777
}

pub(in crate::env) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Whether the file belongs to the user of this process.
pub(in crate::env) fn is_own(file: &Metadata) -> bool {
    file.uid() == rustix::process::geteuid().as_raw()
}

/// Whether the file has other names too.
pub(in crate::env) fn has_other_names(file: &Metadata) -> bool {
    file.nlink() > 1
}

/// The file system of a file.
pub(in crate::env) fn device(file: &Metadata) -> Option<u64> {
    Some(file.dev())
}

pub(in crate::env) fn inode(file: &Metadata) -> Option<u64> {
    Some(file.ino())
}

/// Seconds and nanoseconds of the last change of content or metadata.
pub(super) fn changed(file: &Metadata) -> (i64, i64) {
    (file.ctime(), file.ctime_nsec())
}

/// Bytes of disk space that a file takes.
pub(in crate::env) fn allocated(file: &Metadata) -> u64 {
    // `blocks` counts 512-byte units on every file system (stat(2)).
    file.blocks() * 512
}

/// The space of a file system, bytes.
pub(in crate::env) struct Room {
    pub(in crate::env) total: u64,
    pub(in crate::env) available: u64,
}

impl From<rustix::fs::StatVfs> for Room {
    fn from(found: rustix::fs::StatVfs) -> Self {
        Self {
            total: found.f_blocks.saturating_mul(found.f_frsize),
            available: found.f_bavail.saturating_mul(found.f_frsize),
        }
    }
}

/// The space of the file system of an open file.
pub(in crate::env) fn room(file: &File) -> io::Result<Room> {
    Ok(rustix::fs::fstatvfs(file)?.into())
}

/// The space of the file system of a folder.
pub(in crate::env) fn room_at(folder: &Path) -> io::Result<Room> {
    Ok(rustix::fs::statvfs(folder)?.into())
}

/// Makes the names in a folder durable.
///
/// # Errors
/// The system's.
#[expect(clippy::disallowed_methods, reason = "the seam")]
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

pub(in crate::env) fn kind(error: &io::Error) -> Option<Refusal> {
    match Errno::from_raw_os_error(error.raw_os_error()?) {
        Errno::BADF => Some(Refusal::ReadOnly),
        Errno::MFILE | Errno::NFILE => Some(Refusal::TooManyFiles),
        _ => None,
    }
}

/// Limits the bytes that the system takes from a connection before its client has read earlier
/// ones. Only Linux does.
#[cfg_attr(
    not(target_os = "linux"),
    expect(clippy::unnecessary_wraps, unused_variables, reason = "as on Linux")
)]
pub(in crate::env) fn limit_unsent(socket: &socket2::SockRef<'_>, bytes: u32) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    socket.set_tcp_notsent_lowat(bytes)?;
    Ok(())
}

fn cpu(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanoseconds)
}

pub(in crate::env) fn thread_cpu() -> Duration {
    cpu(ClockId::ThreadCPUTime)
}

/// The name of this machine; `None` if it has none.
#[must_use]
pub fn host_name() -> Option<String> {
    let name = rustix::system::uname().nodename().to_str().ok()?.to_owned();
    (!name.is_empty()).then_some(name)
}

/// Time since the machine was booted, with the time for which it was suspended.
#[cfg(target_os = "linux")]
pub(in crate::env) fn boot_time() -> Option<Duration> {
    Some(cpu(ClockId::Boottime))
}

#[cfg(not(target_os = "linux"))]
pub(in crate::env) const fn boot_time() -> Option<Duration> {
    None
}

pub(in crate::env) fn process_cpu() -> Duration {
    cpu(ClockId::ProcessCPUTime)
}

/// The most files that the process may have open; `None` if there is no limit.
pub(in crate::env) fn open_files_max() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Raises the limit of open files as far as the process may.
#[must_use]
pub fn raise_open_files() -> OpenFiles {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => OpenFiles { granted: maximum, refused: None },
        Err(error) => OpenFiles { granted: current, refused: Some(error.to_string()) },
    }
}

/// The size of the terminal of standard output; `None` if that is none.
#[must_use]
pub fn terminal_size() -> Option<TerminalSize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(TerminalSize { columns: size.ws_col, lines: size.ws_row })
}

/// SIGTERM and SIGINT, which end a node.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Handles the signals instead of their default action.
    ///
    /// # Errors
    /// The system refuses.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal and returns its name. Cancel safe.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_open_files_is_as_high_as_it_may_be() {
        let raised = raise_open_files();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!((current, raised.granted), (maximum, maximum));
        assert_eq!((open_files_max(), raised.refused), (maximum, None));
    }
}
