//! Figures of one workload, as a JSON line and as a table row.

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::procstat::Usage;
use crate::workloads::Workload;

/// Everything measured over one workload.
#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    /// Name of the workload.
    pub(crate) workload: &'static str,
    /// What `units` counts.
    pub(crate) unit: &'static str,
    /// Operations done.
    pub(crate) ops: u64,
    /// Operations that failed.
    pub(crate) errors: u64,
    /// Units done: what CPU is divided by.
    pub(crate) units: f64,
    /// Connections.
    pub(crate) concurrency: usize,
    /// Connections opened again because the server closed them.
    pub(crate) reconnects: u64,
    /// From the first request to the last answer.
    pub(crate) seconds: f64,
    /// Operations per second.
    pub(crate) ops_per_second: f64,
    /// Latency of one operation, microseconds.
    pub(crate) p50_us: u64,
    /// Latency of one operation, microseconds.
    pub(crate) p90_us: u64,
    /// Latency of one operation, microseconds.
    pub(crate) p99_us: u64,
    /// Latency of one operation, microseconds.
    pub(crate) max_us: u64,
    /// What the server's processes used.
    pub(crate) server: Option<Server>,
    /// Disk syncs per operation by the server's own count.
    pub(crate) syncs_per_op: Option<f64>,
    /// When the last answer came, milliseconds since 1970.
    pub(crate) ended_unix_ms: u64,
}

/// What the server's processes used over the workload.
#[derive(Debug, Serialize)]
pub(crate) struct Server {
    /// CPU per unit, microseconds.
    pub(crate) cpu_us_per_unit: f64,
    /// Part of it in the kernel, microseconds.
    pub(crate) system_us_per_unit: f64,
    /// Bytes sent to storage per operation, at most.
    pub(crate) written_per_op: f64,
    /// Resident memory before the first operation, MiB.
    pub(crate) rss_before_mib: f64,
    /// Resident memory after the last one, MiB.
    pub(crate) rss_mib: f64,
    /// Highest resident memory over the workload, MiB.
    pub(crate) rss_peak_mib: f64,
}

/// Raw results of the connections.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Latencies, microseconds.
    pub(crate) latencies: Histogram<u64>,
    /// Operations done.
    pub(crate) ops: u64,
    /// Operations that failed.
    pub(crate) errors: u64,
    /// Units done.
    pub(crate) units: f64,
    /// Connections opened.
    pub(crate) connects: u64,
    /// Wall time, seconds.
    pub(crate) seconds: f64,
    /// When it ended, milliseconds since 1970.
    pub(crate) ended_unix_ms: u64,
}

impl Server {
    /// The difference of two readings over `units` and `ops`.
    pub(crate) fn between(before: Usage, after: Usage, units: f64, ops: f64) -> Self {
        let system = after.system_us.saturating_sub(before.system_us) as f64;
        let user = after.user_us.saturating_sub(before.user_us) as f64;
        let dirtied = after.dirtied.saturating_sub(before.dirtied);
        let handed = after.handed.saturating_sub(before.handed);
        let mib = |kib: u64| kib as f64 / 1024.0;
        Self {
            cpu_us_per_unit: (user + system) / units,
            system_us_per_unit: system / units,
            // Neither count is right, both are too high: the lower one is the better bound.
            written_per_op: dirtied.min(handed) as f64 / ops,
            rss_before_mib: mib(before.rss_kib),
            rss_mib: mib(after.rss_kib),
            rss_peak_mib: mib(after.peak_kib),
        }
    }
}

impl Figures {
    /// Puts the figures of one workload together.
    pub(crate) fn new(workload: &Workload, tally: &Tally) -> Self {
        Self {
            workload: workload.name,
            unit: workload.unit.word(),
            ops: tally.ops,
            errors: tally.errors,
            units: tally.units,
            concurrency: workload.concurrency,
            reconnects: tally.connects.saturating_sub(workload.concurrency as u64),
            seconds: tally.seconds,
            ops_per_second: if tally.seconds > 0.0 {
                tally.ops as f64 / tally.seconds
            } else {
                0.0
            },
            p50_us: tally.latencies.value_at_quantile(0.5),
            p90_us: tally.latencies.value_at_quantile(0.9),
            p99_us: tally.latencies.value_at_quantile(0.99),
            max_us: tally.latencies.max(),
            server: None,
            syncs_per_op: None,
            ended_unix_ms: tally.ended_unix_ms,
        }
    }

    /// One row under `HEAD`.
    pub(crate) fn row(&self) -> String {
        let cpu =
            self.server.as_ref().map_or("n/a".to_owned(), |s| format!("{:.1}", s.cpu_us_per_unit));
        let rss =
            self.server.as_ref().map_or("n/a".to_owned(), |s| format!("{:.0}", s.rss_peak_mib));
        let kib = self
            .server
            .as_ref()
            .map_or("n/a".to_owned(), |s| format!("{:.1}", s.written_per_op / 1024.0));
        let syncs = self.syncs_per_op.map_or("n/a".to_owned(), |s| format!("{s:.3}"));
        format!(
            "{:<10} {:>8} {:>4} {:>6} {:>9.0} {:>9} {:>9} {:>9} {:>10} /{:<4} {:>8} {:>10} {:>8}",
            self.workload,
            self.ops,
            self.concurrency,
            self.errors,
            self.ops_per_second,
            self.p50_us,
            self.p99_us,
            self.max_us,
            cpu,
            self.unit,
            rss,
            kib,
            syncs
        )
    }
}

/// Heads of the columns of `Figures::row`.
pub(crate) const HEAD: &str = "workload        ops    c errors     ops/s    p50 us    p99 us    max us   server CPU us   peak MiB written KiB    syncs";
