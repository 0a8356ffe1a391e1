//! The counts of a running workload.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// The most reasons of failures that are counted separately.
const REASONS_MAX: usize = 20;

/// Latencies, microseconds.
pub type Latencies = Histogram<u64>;

/// Raw results of all connections together.
#[derive(Debug)]
pub struct Tally {
    /// Latencies of operations. That of a connection's first one includes connecting.
    pub latencies: Latencies,
    /// How long connecting took.
    pub connecting: Latencies,
    /// Operations done.
    pub ops: u64,
    /// Operations that failed.
    pub errors: u64,
    /// Failures by reason.
    pub failures: BTreeMap<String, u64>,
    /// Units done.
    pub units: f64,
    /// Bytes of bodies written and read.
    pub bytes: u64,
    /// Requests sent.
    pub requests: u64,
    /// Connections opened.
    pub connects: u64,
    /// Wall time, seconds.
    pub seconds: f64,
    /// When it began, milliseconds since 1970.
    pub began_unix_ms: u64,
    /// When it ended, milliseconds since 1970.
    pub ended_unix_ms: u64,
    /// The first number that was not taken.
    pub next: u64,
    /// Figures by the second in which an operation began; empty unless requested.
    pub each_second: Vec<Second>,
}

/// Operations that began in one second.
#[derive(Debug)]
pub struct Second {
    /// Latencies, connecting included.
    pub latencies: Latencies,
    /// Latencies without connecting.
    pub connected: Latencies,
    /// Operations that failed.
    pub errors: u64,
}

/// One operation that succeeded.
#[derive(Debug, Clone, Copy)]
pub struct Done {
    /// When it began, since the workload did.
    pub began: Duration,
    /// The time from then to its answer.
    pub took: Duration,
    /// The part of it in which the connection was opened.
    pub connecting: Duration,
    /// Its worth.
    pub worth: Worth,
}

/// The units and bytes for which an operation counts.
#[derive(Debug, Clone, Copy)]
pub struct Worth {
    /// Units of its workload.
    pub units: f64,
    /// Bytes of bodies written and read.
    pub bytes: u64,
}

impl Worth {
    /// Of an operation without a body.
    pub const ONE: Self = Self { units: 1.0, bytes: 0 };
}

/// The results of a workload.
#[derive(Debug, Clone, Serialize)]
pub struct Achieved {
    /// Operations done.
    pub ops: u64,
    /// Operations that failed.
    pub errors: u64,
    /// From the first request to the last answer.
    pub seconds: f64,
    /// Operations per second.
    pub ops_per_second: f64,
    /// Latency of one operation, microseconds.
    pub p50_us: u64,
    /// Latency of one operation, microseconds.
    pub p90_us: u64,
    /// Latency of one operation, microseconds.
    pub p99_us: u64,
    /// Latency of one operation, microseconds.
    pub max_us: u64,
    /// Failures by reason.
    pub failures: BTreeMap<String, u64>,
}

impl Tally {
    /// The results.
    #[must_use]
    pub fn achieved(&self) -> Achieved {
        let at = |share| self.latencies.value_at_quantile(share);
        let rate = self.ops as f64 / self.seconds;
        Achieved {
            ops: self.ops,
            errors: self.errors,
            seconds: self.seconds,
            ops_per_second: if self.seconds > 0.0 { rate } else { 0.0 },
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            max_us: self.latencies.max(),
            failures: self.failures.clone(),
        }
    }

    /// Empty counts.
    ///
    /// # Errors
    /// Never in practice: the precision of the histograms is valid.
    pub fn new() -> Result<Self, String> {
        Ok(Self {
            latencies: latencies()?,
            connecting: latencies()?,
            ops: 0,
            errors: 0,
            failures: BTreeMap::new(),
            units: 0.0,
            bytes: 0,
            requests: 0,
            connects: 0,
            seconds: 0.0,
            began_unix_ms: 0,
            ended_unix_ms: 0,
            next: 0,
            each_second: Vec::new(),
        })
    }

    /// Counts of one event that is not a request, such as a wait.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn one() -> Result<Self, String> {
        Ok(Self { ops: 1, units: 1.0, ..Self::new()? })
    }

    /// Counts a success; with `each_second` also for its second.
    pub(in crate::cli) fn note(&mut self, done: Done, each_second: bool) -> Result<(), String> {
        self.ops += 1;
        self.units += done.worth.units;
        self.bytes += done.worth.bytes;
        record(&mut self.latencies, done.took)?;
        if each_second {
            let second = self.second(done.began)?;
            record(&mut second.latencies, done.took)?;
            record(&mut second.connected, done.took.saturating_sub(done.connecting))?;
        }
        Ok(())
    }

    /// Counts a failure.
    pub(in crate::cli) fn fail(
        &mut self,
        began: Duration,
        error: &str,
        each_second: bool,
    ) -> Result<(), String> {
        self.errors += 1;
        if each_second {
            self.second(began)?.errors += 1;
        }
        let reason = reason(error);
        if self.failures.len() < REASONS_MAX || self.failures.contains_key(&reason) {
            *self.failures.entry(reason).or_default() += 1;
        }
        Ok(())
    }

    fn second(&mut self, began: Duration) -> Result<&mut Second, String> {
        let number = began.as_secs() as usize;
        while self.each_second.len() <= number {
            let second = Second { latencies: latencies()?, connected: latencies()?, errors: 0 };
            self.each_second.push(second);
        }
        self.each_second.get_mut(number).ok_or_else(|| "no such second".to_owned())
    }
}

/// An empty histogram.
fn latencies() -> Result<Latencies, String> {
    Histogram::new(3).map_err(|e| e.to_string())
}

/// Adds a duration.
pub(super) fn record(to: &mut Latencies, took: Duration) -> Result<(), String> {
    let micros = u64::try_from(took.as_micros()).map_err(|e| e.to_string())?;
    to.record(micros).map_err(|e| e.to_string())
}

/// The reason of a failure without details: the status and code of a refusal, or the kind of a
/// transport's error.
fn reason(error: &str) -> String {
    let end = error.find([':', ';']).unwrap_or(error.len());
    let head = error.get(..end).unwrap_or(error);
    let head = head.split_once(" for ").map_or(head, |(status, _)| status);
    match super::target::element(error, "Code") {
        Some(code) => format!("{head} ({code})"),
        None => head.to_owned(),
    }
}
