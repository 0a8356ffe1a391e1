//! Finds the process that holds the lock of a file.

use std::fs;
use std::fs::File;

use crate::env::system;

/// Names the process that holds the lock (`flock`) of a file, such as `process 17 (blockyard)`, so
/// that the operator can stop it. Returns `another process` if the system does not say. Linux only
/// (proc_locks(5)).
pub(super) fn name(locked: &File) -> String {
    let unknown = "another process".to_owned();
    let (Ok(of), Ok(locks)) = (locked.metadata(), fs::read_to_string("/proc/locks")) else {
        return unknown;
    };
    let (inode, device) = (system::inode(&of), system::device(&of));
    let found = inode.zip(device).and_then(|(inode, on)| find(&locks, inode, Device::of(on)));
    found.map_or(unknown, process_name)
}

/// The name of a process for error messages, such as `process 17 (blockyard)`.
pub(super) fn process_name(process: u32) -> String {
    match fs::read_to_string(format!("/proc/{process}/comm")) {
        Ok(program) => format!("process {process} ({})", program.trim().escape_debug()),
        Err(_) => format!("process {process}"),
    }
}

/// A block device, as `/proc/locks` names it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Device {
    major: u64,
    minor: u64,
}

/// Finds the process that holds a `flock` of this file. Lines look like `1: FLOCK ADVISORY WRITE 17
/// fe:00:9978009 0 EOF`. The lines of waiting processes have an arrow. Process 0 is one of another
/// container.
fn find(locks: &str, inode: u64, on: Device) -> Option<u32> {
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", process, file, ..] = words[..] else { return None };
        let mut parts = file.split(':');
        let mut hexadecimal = || u64::from_str_radix(parts.next()?, 16).ok();
        let device = Device { major: hexadecimal()?, minor: hexadecimal()? };
        let same = parts.next()?.parse() == Ok(inode) && device == on;
        same.then(|| process.parse().ok()).flatten().filter(|process| *process > 0)
    })
}

impl Device {
    /// Splits a device number as glibc's `major` and `minor` do.
    const fn of(number: u64) -> Self {
        Self {
            major: (number >> 8 & 0xfff) | (number >> 32 & !0xfff),
            minor: (number & 0xff) | (number >> 12 & !0xff),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn device(major: u64, minor: u64) -> Device {
        Device { major, minor }
    }

    #[test]
    fn holder_is_found_among_other_locks() {
        let locks = "1: POSIX  ADVISORY  WRITE 5 fe:00:77 0 EOF\n\
            2: FLOCK  ADVISORY  WRITE 6 fe:01:77 0 EOF\n\
            3: FLOCK  ADVISORY  READ  7 fe:00:77 0 EOF\n\
            4: FLOCK  ADVISORY  WRITE 8 fe:00:77 0 EOF\n\
            4: -> FLOCK  ADVISORY  WRITE 9 fe:00:77 0 EOF\n\
            5: FLOCK  ADVISORY  WRITE 0 fe:00:78 0 EOF\n";
        assert_eq!(find(locks, 77, device(0xfe, 0)), Some(8));
        assert_eq!(find(locks, 77, device(0xfe, 1)), Some(6));
        assert_eq!(find(locks, 78, device(0xfe, 0)), None, "of another container");
        assert_eq!(find(locks, 79, device(0xfe, 0)), None);
        assert_eq!(find("nonsense\n1: FLOCK A WRITE x y\n", 77, device(0xfe, 0)), None);
    }

    #[test]
    fn devices_have_two_numbers() {
        assert!(Device::of(0xfe00) == device(0xfe, 0));
        assert!(Device::of(0x10_3412) == device(0x34, 0x112));
    }
}
