//! Figures of the operating system about this process, for `/metrics`.

use std::fs;
use std::time::Duration;

use crate::env::system;

/// Figures of this process. A figure that the system does not report is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Processor time of all threads, user and system.
    pub cpu: Duration,
    /// Memory that is in RAM, bytes.
    pub resident_bytes: Option<u64>,
    /// Address space, bytes.
    pub virtual_bytes: Option<u64>,
    /// Open file descriptors.
    pub open_files: Option<u64>,
    /// The most file descriptors that it may have open; `None` if there is no limit.
    pub open_files_max: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
}

impl Process {
    /// Asks the system with a few reads of `/proc`, which never wait for a device.
    #[must_use]
    pub fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        Self {
            cpu: system::process_cpu(),
            resident_bytes: field(&status, "VmRSS:").map(|kilobytes| kilobytes * 1024),
            virtual_bytes: field(&status, "VmSize:").map(|kilobytes| kilobytes * 1024),
            open_files: fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as u64),
            open_files_max: system::open_files_max(),
            threads: field(&status, "Threads:"),
        }
    }
}

/// The number of a line of `/proc/self/status` (proc(5)).
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests arrange files")]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_process() {
        let before = Process::now();
        let file = fs::File::open("/proc/self/status").unwrap();
        let mut memory = vec![1_u8; 64 << 20];
        memory.iter_mut().step_by(4096).for_each(|byte| *byte = byte.wrapping_add(1));
        let after = Process::now();
        assert!(after.cpu > before.cpu, "{before:?} {after:?}");
        assert!(after.resident_bytes.unwrap() > memory.len() as u64, "{after:?}");
        assert!(after.virtual_bytes >= after.resident_bytes, "{after:?}");
        assert!(after.open_files.unwrap() >= 4 && after.threads.unwrap() >= 1, "{after:?}");
        assert!(after.open_files_max.is_none_or(|most| most > after.open_files.unwrap()));
        drop(file);
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let status = "Name:\tVmRSS: 9\nVmRSSx:\t 8 kB\nVmRSS:\t  7 kB\nThreads:\t3\n";
        assert_eq!((field(status, "VmRSS:"), field(status, "Threads:")), (Some(7), Some(3)));
        assert_eq!(field(status, "VmSize:"), None);
    }
}
