//! CPU time and memory of a process, read from `/proc`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;

/// Ticks of a second in `/proc/PID/stat`: 100 on every common architecture.
const TICKS: f64 = 100.0;

/// A process is at rest if it uses about the same, low CPU time in a few windows of this length.
const WINDOW: Duration = Duration::from_secs(5);
const EVEN: f64 = 0.25;
const BUSY: f64 = 1.5;

/// A process at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// CPU so far, seconds.
    pub(crate) cpu: f64,
    /// Resident memory, MiB.
    pub(crate) resident: f64,
    /// Open descriptors.
    pub(crate) descriptors: f64,
}

/// The usage of a process.
pub(crate) fn usage(pid: u32) -> Usage {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The command is in parentheses and may have spaces: fields are counted from its end.
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .map(|(_, rest)| rest.split_whitespace().collect())
        .unwrap_or_default();
    let ticks = |n: usize| fields.get(n).and_then(|text| text.parse().ok()).unwrap_or(0.0);
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = resident.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    let open = fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    Usage {
        cpu: (ticks(11) + ticks(12)) / TICKS,
        resident: kib.unwrap_or(0.0) / 1_024.0,
        descriptors: open as f64,
    }
}

/// The usage of this process.
pub(crate) fn own() -> Usage {
    usage(std::process::id())
}

/// Waits until a process uses about the same CPU time in each of three windows of five seconds, at
/// most `at_most` seconds. Returns the seconds it took, and the CPU seconds the process used.
/// Blocks.
pub(crate) fn settle(pid: u32, at_most: u64) -> (f64, f64) {
    let begun = Instant::now();
    let first = usage(pid).cpu;
    let mut last = first;
    let mut windows: Vec<f64> = Vec::new();
    while begun.elapsed() < Duration::from_secs(at_most) {
        std::thread::sleep(WINDOW);
        let now = usage(pid).cpu;
        windows.push(now - last);
        last = now;
        if let [.., a, b, c] = windows.as_slice()
            && (a - b).abs() < EVEN
            && (b - c).abs() < EVEN
            && *c < BUSY
        {
            break;
        }
    }
    (begun.elapsed().as_secs_f64(), last - first)
}

/// The machine's load averages.
pub(crate) fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(2).collect::<Vec<_>>().join(" and ")
}

/// MiB a folder takes on its disk.
pub(crate) fn disk_mib(folder: &Path) -> f64 {
    let mut blocks = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(data) = entry.metadata() else { continue };
            if data.is_dir() {
                folders.push(entry.path());
            }
            blocks += data.blocks();
        }
    }
    blocks as f64 / 2_048.0
}
