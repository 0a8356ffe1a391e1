//! The output of `blockyard status`, from two samples of a node.

use std::time::Duration;

use serde::Serialize;

use crate::admin::DiskView;
use crate::admin::MapView;
use crate::frontend::faults::FaultState;
use crate::node::config::Size;
use crate::types::Timestamp;

use super::samples::Samples;

/// Less than this share of a disk's space is worth a warning.
const ROOM_MIN: f64 = 0.1;
/// More than this share of the open files that are allowed is worth a warning.
const FILES_MAX: f64 = 0.8;
/// A certificate that ends within this is worth a warning.
const CERTIFICATE_MIN: Duration = Duration::from_secs(14 * 24 * 3_600);
/// Disks and warnings that are shown.
const LINES_MAX: usize = 20;

/// Counters that stay at zero in a sound node, and their meaning.
const TROUBLES: [(&str, &str); 7] = [
    ("blockyard_invariant_violations_total", "invariants were violated; see the log"),
    ("blockyard_task_panics_total", "tasks panicked; see the log"),
    ("blockyard_capacity_corrupt_frames_total", "damaged frames were found; see docs/disks.md"),
    ("blockyard_content_not_authentic_total", "reads met changed content under customer keys"),
    ("blockyard_reclaim_missing_extents", "logs or runs are missing; see the log"),
    ("blockyard_index_closed_partitions", "partitions did not open and are tried again"),
    ("blockyard_audit_log_lost_total", "lines of the audit log were lost"),
];

/// A sample of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// When, by the monotonic clock.
    pub(super) at: Duration,
    pub(super) is_ready: bool,
    /// The text of `/readyz?verbose`.
    pub(super) readiness: String,
    pub(super) samples: Samples,
    pub(super) disks: Vec<DiskView>,
    pub(super) map: MapView,
    pub(super) faults: Vec<FaultState>,
}

/// How a node is.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Status {
    /// `starting`, `standby`, `ready` or `draining`.
    pub(super) phase: String,
    pub(super) version: String,
    pub(super) uptime_seconds: f64,
    pub(super) load: Load,
    pub(super) disks: Vec<DiskView>,
    pub(super) partitions: Partitions,
    /// Warnings for the operator.
    pub(super) warnings: Vec<String>,
}

/// The load of a node. Rates are computed from the two samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Load {
    pub(super) requests_per_second: f64,
    pub(super) refused_busy_per_second: f64,
    pub(super) received_bytes_per_second: f64,
    pub(super) sent_bytes_per_second: f64,
    /// Processors in use.
    pub(super) processors: f64,
    pub(super) requests_running: u64,
    pub(super) connections: u64,
    pub(super) resident_bytes: u64,
}

/// The partitions of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Partitions {
    pub(super) count: usize,
    pub(super) hosts: usize,
    pub(super) rows: u64,
    /// Those that accept no writes.
    pub(super) stopped: usize,
    /// The longest wait of a write in a queue, microseconds.
    pub(super) queue_age_us: u64,
}

impl Status {
    /// How the node is `now`.
    pub(super) fn new(before: &Seen, now: &Seen, time: Timestamp) -> Self {
        let mut lines = now.readiness.lines();
        let phase = lines.next().unwrap_or_default().to_owned();
        let mut warnings: Vec<String> = lines.map(str::to_owned).collect();
        let load = load(before, now);
        warnings.extend(warnings_of(now, &load, time));
        let started = now.samples.sum("process_start_time_seconds");
        let uptime = time.since_unix().as_secs_f64() - started;
        Self {
            phase,
            version: now.samples.label("blockyard_build_info", "version").unwrap_or("?").to_owned(),
            uptime_seconds: if started > 0.0 { uptime.max(0.0).round() } else { 0.0 },
            load,
            disks: now.disks.clone(),
            partitions: partitions(&now.map),
            warnings,
        }
    }

    /// A screen for people.
    pub(super) fn text(&self) -> String {
        let Self { phase, version, uptime_seconds, load, disks, partitions, warnings } = self;
        let up = indicatif::HumanDuration(Duration::from_secs_f64(*uptime_seconds));
        let mut text = format!("blockyard {version}: {phase}, up {up}\n");
        text += &format!(
            "load         {:.0} requests/s, {} running, {:.0} refused as busy/s\n",
            load.requests_per_second, load.requests_running, load.refused_busy_per_second
        );
        text += &format!(
            "network      {} connections, in {}/s, out {}/s\n",
            load.connections,
            size(load.received_bytes_per_second),
            size(load.sent_bytes_per_second)
        );
        text += &format!(
            "process      {:.2} processors, {} of memory\n",
            load.processors,
            Size::new(load.resident_bytes).rounded()
        );
        text += &format!(
            "partitions   {} on {} hosts, {} rows, writes wait {:.1} ms\n",
            partitions.count,
            partitions.hosts,
            partitions.rows,
            milliseconds(partitions.queue_age_us)
        );
        for disk in disks.iter().take(LINES_MAX) {
            let number = disk.number.map_or_else(|| "?".to_owned(), |number| number.to_string());
            text += &format!(
                "disk {number:7} {}, {} live, {} of {} available, {}\n",
                disk.state,
                Size::new(disk.live_bytes).rounded(),
                Size::new(disk.available_bytes).rounded(),
                Size::new(disk.total_bytes).rounded(),
                disk.path
            );
        }
        if disks.len() > LINES_MAX {
            text += &format!("             and {} disks more\n", disks.len() - LINES_MAX);
        }
        for warning in warnings.iter().take(LINES_MAX) {
            text += &format!("WARNING      {}\n", warning.escape_debug());
        }
        if warnings.len() > LINES_MAX {
            text += &format!("             and {} warnings more\n", warnings.len() - LINES_MAX);
        }
        if warnings.is_empty() {
            text += "no warnings\n";
        }
        text
    }
}

fn partitions(map: &MapView) -> Partitions {
    let all = &map.partitions;
    Partitions {
        count: all.len(),
        hosts: map.hosts,
        rows: all.iter().map(|partition| partition.rows).sum(),
        stopped: all.iter().filter(|partition| partition.stopped.is_some()).count(),
        queue_age_us: all.iter().map(|partition| partition.queue_age_us).max().unwrap_or(0),
    }
}

fn load(before: &Seen, now: &Seen) -> Load {
    let seconds = now.at.saturating_sub(before.at).as_secs_f64();
    let rate = |name: &str| {
        let new = (now.samples.sum(name) - before.samples.sum(name)).max(0.0);
        if seconds > 0.0 { (new / seconds * 1e3).round() / 1e3 } else { 0.0 }
    };
    Load {
        requests_per_second: rate("blockyard_requests_total"),
        refused_busy_per_second: rate("blockyard_busy_answers_total"),
        received_bytes_per_second: rate("blockyard_received_bytes_total"),
        sent_bytes_per_second: rate("blockyard_sent_bytes_total"),
        processors: rate("process_cpu_seconds_total"),
        requests_running: whole(now.samples.sum("blockyard_requests_running")),
        connections: whole(now.samples.sum("blockyard_connections_open")),
        resident_bytes: whole(now.samples.sum("process_resident_memory_bytes")),
    }
}

/// Warnings for the operator, from metrics, disks and partitions.
fn warnings_of(now: &Seen, load: &Load, time: Timestamp) -> Vec<String> {
    let mut warnings = Vec::new();
    for disk in &now.disks {
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        let share = disk.available_bytes as f64 / disk.total_bytes.max(1) as f64;
        if share < ROOM_MIN {
            let room = Size::new(disk.available_bytes).rounded();
            warnings.push(format!("{}: only {room} available", disk.path));
        }
        if !["in use", "draining", "drained"].contains(&disk.state.as_str()) {
            warnings.push(format!("{}: {}; see docs/disks.md", disk.path, disk.state));
        }
    }
    for partition in &now.map.partitions {
        if let Some(why) = &partition.stopped {
            warnings.push(format!("partition {} takes no writes: {why}", partition.id));
        }
    }
    for (name, what) in TROUBLES {
        let count = whole(now.samples.sum(name));
        if count > 0 {
            warnings.push(format!("{count} {what}"));
        }
    }
    if load.refused_busy_per_second > 0.0 {
        let text = "requests are refused as busy: blockyard_busy_answers_total says what is short";
        warnings.push(text.to_owned());
    }
    let (open, allowed) = (now.samples.sum("process_open_fds"), now.samples.sum("process_max_fds"));
    if allowed > 0.0 && open > FILES_MAX * allowed {
        warnings.push(format!("{open:.0} of {allowed:.0} file descriptors are in use"));
    }
    let end = now.samples.sum("blockyard_certificate_expiry_timestamp_seconds");
    if end > 0.0 && end < time.plus(CERTIFICATE_MIN).since_unix().as_secs_f64() {
        let ends = Timestamp::from_unix(Duration::from_secs(whole(end))).to_iso_seconds();
        warnings.push(format!("the certificate ends at {ends}"));
    }
    if !now.faults.is_empty() {
        let count = now.faults.len();
        warnings.push(format!("{count} rules of the fault dial are on; `blockyard fault clear`"));
    }
    warnings
}

/// A sample that is a count.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float becomes the nearest whole number in range"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

fn size(bytes: f64) -> String {
    Size::new(whole(bytes)).rounded()
}

#[expect(clippy::cast_precision_loss, reason = "shown in few digits")]
fn milliseconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::PartitionView;

    fn time() -> Timestamp {
        Timestamp::from_iso("2026-11-21T05:00:00Z").unwrap()
    }

    fn seen(second: u64, metrics: &str) -> Seen {
        let partition = PartitionView { id: 3, rows: 7, ..PartitionView::default() };
        Seen {
            at: Duration::from_secs(second),
            is_ready: true,
            readiness: "ready\n".to_owned(),
            samples: Samples::parse(metrics),
            disks: vec![DiskView {
                number: Some(0),
                path: "/data".to_owned(),
                state: "in use".to_owned(),
                extents: 2,
                live_bytes: 20 << 20,
                total_bytes: 100 << 30,
                available_bytes: 50 << 30,
            }],
            map: MapView { hosts: 1, partitions: vec![partition], ..MapView::default() },
            faults: Vec::new(),
        }
    }

    #[test]
    fn load_is_what_was_counted_between_two_looks() {
        let before = seen(1, "blockyard_requests_total{operation=\"GetBlob\"} 10\n");
        let metrics = "blockyard_requests_total{operation=\"GetBlob\"} 30\n\
            blockyard_requests_total{operation=\"PutBlob\"} 20\n\
            blockyard_requests_running 3\nblockyard_build_info{version=\"1.2\"} 1\n";
        let status = Status::new(&before, &seen(5, metrics), time());
        assert_eq!(status.load.requests_per_second, 10.0);
        assert_eq!((status.load.requests_running, status.version.as_str()), (3, "1.2"));
        let text = status.text();
        assert!(text.starts_with("blockyard 1.2: ready, up "), "{text}");
        assert!(text.contains("10 requests/s, 3 running"), "{text}");
        assert!(
            text.contains("disk 0       in use, 20MiB live, 50GiB of 100GiB available"),
            "{text}"
        );
        assert!(text.ends_with("no warnings\n"), "{text}");
        assert!(text.lines().count() <= 24, "one screen");
    }

    #[test]
    fn what_somebody_should_look_at_is_a_warning() {
        let metrics = "blockyard_task_panics_total{task=\"x\"} 2\nprocess_open_fds 90\n\
            process_max_fds 100\nblockyard_certificate_expiry_timestamp_seconds 1795237200\n\
            blockyard_busy_answers_total{reason=\"memory\"} 5\n";
        let mut now = seen(5, metrics);
        now.readiness = "ready\ndisk 0: 96 % full\n".to_owned();
        now.disks[0].available_bytes = 1 << 30;
        now.disks[0].state = "poisoned".to_owned();
        now.map.partitions[0].stopped = Some("closing\u{1b}".to_owned());
        let status = Status::new(&seen(1, ""), &now, time());
        for wanted in [
            "96 % full",
            "/data: only 1024MiB available",
            "/data: poisoned",
            "partition 3 takes no writes",
            "2 tasks panicked",
            "refused as busy",
            "90 of 100 file descriptors",
            "the certificate ends at 2026-11-21",
        ] {
            assert!(status.warnings.iter().any(|w| w.contains(wanted)), "{wanted}: {status:?}");
        }
        assert_eq!(status.partitions.stopped, 1);
        assert!(!status.text().contains('\u{1b}'));
    }
}
