//! The figures of one workload, as a JSON line and as a table row.

use blockyard::cli::bench::driver::tally::Achieved;
use blockyard::cli::bench::driver::tally::Latencies;
use blockyard::cli::bench::driver::tally::Second;
use blockyard::cli::bench::driver::tally::Tally;
use blockyard::cli::bench::driver::workload::Workload;
use serde::Serialize;

use crate::procstat::Usage;

/// All figures of one workload.
#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    /// Name of the workload.
    pub(crate) workload: &'static str,
    /// What `units` counts.
    pub(crate) unit: &'static str,
    /// Operations, rates and latencies.
    #[serde(flatten)]
    pub(crate) achieved: Achieved,
    /// Completed units, by which CPU time is divided.
    pub(crate) units: f64,
    /// Connections.
    pub(crate) concurrency: usize,
    /// Connections opened again because the server closed them.
    pub(crate) reconnects: u64,
    /// What the server's processes used.
    pub(crate) server: Option<Server>,
    /// Disk syncs per operation by the server's own count.
    pub(crate) syncs_per_op: Option<f64>,
    /// When the first operation began, milliseconds since 1970.
    pub(crate) began_unix_ms: u64,
    /// When the last answer came, milliseconds since 1970.
    pub(crate) ended_unix_ms: u64,
    /// Number of the first operation that was not done.
    pub(crate) next: u64,
    /// How long opening connections took.
    pub(crate) connecting: Quantiles,
    /// Figures by the second in which operations began, if requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) each_second: Vec<EachSecond>,
}

/// What the server's processes used during the workload.
#[derive(Debug, Serialize)]
pub(crate) struct Server {
    /// CPU per unit, microseconds.
    pub(crate) cpu_us_per_unit: f64,
    /// Part of it in the kernel, microseconds.
    pub(crate) system_us_per_unit: f64,
    /// An upper bound of the bytes written to storage per operation.
    pub(crate) written_per_op: f64,
    /// Resident memory before the first operation, MiB.
    pub(crate) rss_before_mib: f64,
    /// Resident memory after the last one, MiB.
    pub(crate) rss_mib: f64,
    /// Highest resident memory over the workload, MiB.
    pub(crate) rss_peak_mib: f64,
}

/// Quantiles of latencies, microseconds.
#[derive(Debug, Serialize)]
pub(crate) struct Quantiles {
    /// The median.
    pub(crate) p50_us: u64,
    /// The 99th percentile.
    pub(crate) p99_us: u64,
    /// The longest.
    pub(crate) max_us: u64,
}

/// Operations that began in one second of the workload.
#[derive(Debug, Serialize)]
pub(crate) struct EachSecond {
    /// Operations done.
    pub(crate) ops: u64,
    /// Operations that failed.
    pub(crate) errors: u64,
    /// Latencies with the time of connecting.
    pub(crate) latency: Quantiles,
    /// Latencies without it.
    pub(crate) connected: Quantiles,
}

impl From<&Latencies> for Quantiles {
    fn from(of: &Latencies) -> Self {
        let at = |share| of.value_at_quantile(share);
        Self { p50_us: at(0.5), p99_us: at(0.99), max_us: of.max() }
    }
}

impl From<&Second> for EachSecond {
    fn from(second: &Second) -> Self {
        Self {
            ops: second.latencies.len(),
            errors: second.errors,
            latency: (&second.latencies).into(),
            connected: (&second.connected).into(),
        }
    }
}

impl Server {
    /// The difference of two readings, per unit and per operation.
    pub(crate) fn between(before: Usage, after: Usage, units: f64, ops: f64) -> Self {
        let system = after.system_us.saturating_sub(before.system_us) as f64;
        let user = after.user_us.saturating_sub(before.user_us) as f64;
        let dirtied = after.dirtied.saturating_sub(before.dirtied);
        let handed = after.handed.saturating_sub(before.handed);
        let mib = |kib: u64| kib as f64 / 1024.0;
        Self {
            cpu_us_per_unit: (user + system) / units,
            system_us_per_unit: system / units,
            // Both counts are too high, so the lower one is the better bound.
            written_per_op: dirtied.min(handed) as f64 / ops,
            rss_before_mib: mib(before.rss_kib),
            rss_mib: mib(after.rss_kib),
            rss_peak_mib: mib(after.peak_kib),
        }
    }
}

impl Figures {
    /// The figures of one workload.
    pub(crate) fn new(workload: &Workload, tally: &Tally) -> Self {
        Self {
            workload: workload.name,
            unit: workload.unit.word(),
            achieved: tally.achieved(),
            units: tally.units,
            concurrency: workload.concurrency,
            reconnects: tally.connects.saturating_sub(workload.concurrency as u64),
            server: None,
            syncs_per_op: None,
            began_unix_ms: tally.began_unix_ms,
            ended_unix_ms: tally.ended_unix_ms,
            next: tally.next,
            connecting: (&tally.connecting).into(),
            each_second: tally.each_second.iter().map(EachSecond::from).collect(),
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
            self.achieved.ops,
            self.concurrency,
            self.achieved.errors,
            self.achieved.ops_per_second,
            self.achieved.p50_us,
            self.achieved.p99_us,
            self.achieved.max_us,
            cpu,
            self.unit,
            rss,
            kib,
            syncs
        )
    }
}

/// The headings of the columns of `Figures::row`.
pub(crate) const HEAD: &str = "workload        ops    c errors     ops/s    p50 us    p99 us    max us   server CPU us   peak MiB written KiB    syncs";
