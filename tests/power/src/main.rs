//! A file system in memory that loses power on command, for tests of durability.
//!
//!   power MOUNTPOINT SOCKET [CAPACITY_MIB [SYNC_MAX_MS]]
//!
//! It mounts itself on the folder MOUNTPOINT (as root, or with fusermount3) and listens on the
//! Unix socket SOCKET for lines: `forget MODE SEED` loses power, `status` counts, `unmount` ends
//! it. Exit code 77: this machine cannot mount it.
//!
//! # What is durable
//!
//! The bytes, length, room and holes of a file: after `fsync` or `fdatasync` of the file, what was
//! done before the call. Its name: after `fsync` of the folder, and of those above it. Nothing
//! else: not `close`, not `rename`, not time. `sync_file_range` and `O_DIRECT` make nothing
//! durable. A rename is atomic; it is durable after a sync of either folder. Sectors of 512 bytes
//! are written whole or not at all, and a lost overwrite leaves the old bytes.
//!
//! That is what POSIX promises and every local file system of Linux keeps. ext4, XFS and Btrfs
//! promise more: the first `fsync` of a new file makes its name durable, and changes of names reach
//! the disk in their order, whichever folder they are in. The mode `reordered` keeps the order of
//! changes of one name only, and all modes want the folder synced: a program that is safe here
//! rests on no journal. Lengths without bytes (XFS, and ext4 with data=writeback) are among what
//! `reordered` leaves. Not modelled: a disk that lies about a flush, sectors that become
//! unreadable, durability of owner, mode and times.

mod content;
mod control;
mod cut;
mod file;
mod filesystem;
mod names;
mod store;

use std::env;
use std::io;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;
use std::time::SystemTime;

use fuser::Config;
use fuser::MountOption;

use crate::filesystem::PowerFs;
use crate::store::Store;

/// The exit code of tests that did not run.
const NOT_RUN: u8 = 77;

const USAGE: &str = "usage: power MOUNTPOINT SOCKET [CAPACITY_MIB [SYNC_MAX_MS]]";

/// The command line.
struct Options {
    point: String,
    socket: String,
    capacity: u64,
    sync_max: Duration,
}

fn options() -> Result<Options, String> {
    let words: Vec<String> = env::args().skip(1).collect();
    let number = |at: usize, otherwise: u64| match words.get(at) {
        Some(word) => word.parse().map_err(|_| format!("no number: '{word}'\n{USAGE}")),
        None => Ok(otherwise),
    };
    let ([point, socket] | [point, socket, _] | [point, socket, _, _]) = words.as_slice() else {
        return Err(USAGE.to_owned());
    };
    Ok(Options {
        point: point.clone(),
        socket: socket.clone(),
        capacity: number(2, 8 << 10)? << 20,
        sync_max: Duration::from_millis(number(3, 4)?),
    })
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(usage) => {
            eprintln!("{usage}");
            return ExitCode::from(2);
        }
    };
    if let Err(error) = std::fs::File::options().read(true).write(true).open("/dev/fuse") {
        eprintln!("not run: cannot open /dev/fuse: {error}");
        return ExitCode::from(NOT_RUN);
    }
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> io::Result<()> {
    let found = std::fs::metadata(&options.point)?;
    let owner = (found.uid(), found.gid());
    let store = Arc::new(Mutex::new(Store::new(options.capacity, owner, SystemTime::now())));
    let listener = UnixListener::bind(&options.socket)?;
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("power".to_owned()), MountOption::NoExec];
    config.n_threads = Some(4);
    let filesystem = PowerFs::new(Arc::clone(&store), options.sync_max);
    let session = match fuser::spawn_mount(filesystem, &options.point, &config) {
        Ok(session) => session,
        Err(error) => {
            eprintln!("not run: cannot mount: {error}");
            std::process::exit(i32::from(NOT_RUN));
        }
    };
    println!("mounted");
    let mut asked = control::serve(&listener, &store)?;
    let ended = session.umount_and_join();
    let said = ended.as_ref().map_or_else(|error| format!("error {error}\n"), |()| "ok\n".into());
    asked.write_all(said.as_bytes())?;
    ended
}
