//! CPU time, memory and writes of the processes of a server, read from `/proc`.
//!
//! CPU time is the most reliable figure on a shared machine. It is counted for the process and all
//! its descendants, so it includes all processes of a server.

use std::collections::HashMap;
use std::fs;

/// Clock ticks per second in `/proc/PID/stat`: Linux shows 100 on every common architecture.
const TICKS_PER_SECOND: u64 = 100;

/// Totals over a process tree at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    /// CPU in user mode, microseconds.
    pub(crate) user_us: u64,
    /// CPU in the kernel, microseconds.
    pub(crate) system_us: u64,
    /// Resident memory, KiB.
    pub(crate) rss_kib: u64,
    /// Highest resident memory since the last `forget_peak`, KiB.
    pub(crate) peak_kib: u64,
    /// Bytes of pages made dirty since the process began. Whole folios are counted, up to 2 MiB for
    /// a 4 KiB write.
    pub(crate) dirtied: u64,
    /// Bytes passed to write calls since the process began, including some to sockets.
    pub(crate) handed: u64,
}

/// Reads the tree of processes under `root`. A process that has ended counts as zero.
pub(crate) fn usage(root: u32) -> Usage {
    let mut total = Usage::default();
    for pid in tree(root) {
        if let Some((user, system)) = cpu_ticks(pid) {
            total.user_us += user * (1_000_000 / TICKS_PER_SECOND);
            total.system_us += system * (1_000_000 / TICKS_PER_SECOND);
        }
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        total.rss_kib += field(&status, "VmRSS:");
        total.peak_kib += field(&status, "VmHWM:");
        let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        total.dirtied += field(&io, "write_bytes:");
        total.handed += field(&io, "wchar:");
    }
    total
}

/// Resets the peak of resident memory to the current value.
pub(crate) fn forget_peak(root: u32) {
    for pid in tree(root) {
        // Writing 5 resets the peak. If that is refused, the peak stays the older, higher one.
        if fs::write(format!("/proc/{pid}/clear_refs"), "5").is_err() {
            eprintln!("cannot reset the memory peak of {pid}: its peak counts from its start");
        }
    }
}

/// `root` and every process below it.
fn tree(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok()) {
        let parent = stat(pid).and_then(|fields| fields.get(1)?.parse().ok());
        if let Some(parent) = parent {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        found.extend(children.remove(&pid).unwrap_or_default());
        next += 1;
    }
    found
}

/// Fields of `/proc/PID/stat` from the state on (field 3 of proc(5)).
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command is in parentheses and may have spaces: fields are counted from its end.
    let (_, rest) = text.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

/// User and system ticks: fields 14 and 15.
fn cpu_ticks(pid: u32) -> Option<(u64, u64)> {
    let fields = stat(pid)?;
    Some((fields.get(11)?.parse().ok()?, fields.get(12)?.parse().ok()?))
}

/// The number after `name` in a table of `name value` lines, or 0.
fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
