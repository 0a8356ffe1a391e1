//! The counts of a running workload.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

/// The most reasons of failures that are counted separately.
const REASONS_MAX: usize = 20;

/// Latencies, microseconds.
pub(crate) type Latencies = Histogram<u64>;

/// Raw results of all connections together.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Latencies of operations. That of a connection's first one includes connecting.
    pub(crate) latencies: Latencies,
    /// How long connecting took.
    pub(crate) connecting: Latencies,
    /// Operations done.
    pub(crate) ops: u64,
    /// Operations that failed.
    pub(crate) errors: u64,
    /// Failures by reason.
    pub(crate) failures: BTreeMap<String, u64>,
    /// Units done.
    pub(crate) units: f64,
    /// Connections opened.
    pub(crate) connects: u64,
    /// Wall time, seconds.
    pub(crate) seconds: f64,
    /// When it began, milliseconds since 1970.
    pub(crate) began_unix_ms: u64,
    /// When it ended, milliseconds since 1970.
    pub(crate) ended_unix_ms: u64,
    /// The first number that was not taken.
    pub(crate) next: u64,
    /// Figures by the second in which an operation began; empty unless requested.
    pub(crate) each_second: Vec<Second>,
}

/// Operations that began in one second.
#[derive(Debug)]
pub(crate) struct Second {
    /// Latencies, connecting included.
    pub(crate) latencies: Latencies,
    /// Latencies without connecting.
    pub(crate) connected: Latencies,
    /// Operations that failed.
    pub(crate) errors: u64,
}

/// One operation that succeeded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    /// When it began, since the workload did.
    pub(crate) began: Duration,
    /// The time from then to its answer.
    pub(crate) took: Duration,
    /// The part of it in which the connection was opened.
    pub(crate) connecting: Duration,
    /// How many units it counts for.
    pub(crate) units: f64,
}

impl Tally {
    /// Empty counts.
    ///
    /// # Errors
    /// Never in practice: the precision of the histograms is valid.
    pub(crate) fn new() -> Result<Self, String> {
        Ok(Self {
            latencies: latencies()?,
            connecting: latencies()?,
            ops: 0,
            errors: 0,
            failures: BTreeMap::new(),
            units: 0.0,
            connects: 0,
            seconds: 0.0,
            began_unix_ms: 0,
            ended_unix_ms: 0,
            next: 0,
            each_second: Vec::new(),
        })
    }

    /// Counts of one event that is not a request, such as a wait.
    pub(crate) fn one() -> Result<Self, String> {
        Ok(Self { ops: 1, units: 1.0, ..Self::new()? })
    }

    /// Counts a success; with `each_second` also for its second.
    pub(crate) fn note(&mut self, done: Done, each_second: bool) -> Result<(), String> {
        self.ops += 1;
        self.units += done.units;
        record(&mut self.latencies, done.took)?;
        if each_second {
            let second = self.second(done.began)?;
            record(&mut second.latencies, done.took)?;
            record(&mut second.connected, done.took.saturating_sub(done.connecting))?;
        }
        Ok(())
    }

    /// Counts a failure.
    pub(crate) fn fail(
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
pub(crate) fn latencies() -> Result<Latencies, String> {
    Histogram::new(3).map_err(|e| e.to_string())
}

/// Adds a duration.
pub(crate) fn record(to: &mut Latencies, took: Duration) -> Result<(), String> {
    let micros = u64::try_from(took.as_micros()).map_err(|e| e.to_string())?;
    to.record(micros).map_err(|e| e.to_string())
}

/// The reason of a failure without details: the status and code of a refusal, or the kind of a
/// transport's error.
fn reason(error: &str) -> String {
    let end = error.find([':', ';']).unwrap_or(error.len());
    let head = error.get(..end).unwrap_or(error);
    let head = head.split_once(" for ").map_or(head, |(status, _)| status);
    match crate::target::element(error, "Code") {
        Some(code) => format!("{head} ({code})"),
        None => head.to_owned(),
    }
}
