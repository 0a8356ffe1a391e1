//! The metrics of the front end: requests here, the others in `refusals.rs`, `connections.rs`,
//! `accounts.rs` and `users.rs`. Every name is defined in one of these files.

pub(super) mod accounts;
mod connections;
mod refusals;
pub(super) mod users;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::histogram::exponential_buckets;
use prometheus_client::registry::Registry;

use crate::frontend::answers::CutOffReason;
use crate::frontend::errors;
use crate::frontend::errors::Busy;
use crate::protocol::model::Refusal;

pub(crate) use accounts::Traffic;
pub(crate) use connections::ConnectionMetrics;
pub(crate) use connections::NotServed;
use refusals::RefusalMetrics;

/// Labels of a finished request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// REST name of the operation, or `Refused` when it was not recognised or not admitted.
    pub operation: &'static str,
    /// HTTP status.
    pub status: u16,
}

/// Labels of a latency histogram.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OperationLabels {
    /// REST name of the operation.
    pub operation: &'static str,
}

/// Labels of answers and uploads that were cut off.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CutLabels {
    /// `stalled`, `slow`, or `in_the_way` when others needed its resources.
    pub reason: &'static str,
}

/// Counters of the front end.
#[derive(Debug)]
pub struct Metrics {
    requests: Family<RequestLabels, Counter>,
    seconds: Family<OperationLabels, Histogram, fn() -> Histogram>,
    running: Gauge,
    cut: Family<CutLabels, Counter>,
    uploads_cut: Family<CutLabels, Counter>,
    refusals: RefusalMetrics,
    pub(crate) connections: ConnectionMetrics,
    /// Reads of content under customer-provided keys that was not authentic.
    pub(crate) not_authentic: Counter,
    /// Last-access times written to the index.
    pub reads_noted: Counter,
    /// Last-access times lost because too many were waiting.
    pub reads_dropped: Counter,
}

fn latency_buckets() -> Histogram {
    // 50 us to 26 s, each twice the one before.
    Histogram::new(exponential_buckets(0.000_05, 2.0, 20))
}

/// A request that is being answered. Dropped when its client disconnects.
#[derive(Debug)]
pub struct RunningGauge(Gauge);

impl Drop for RunningGauge {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    /// Registers the metrics.
    pub fn register(registry: &mut Registry) -> Self {
        let requests = Family::<RequestLabels, Counter>::default();
        let seconds = Family::new_with_constructor(latency_buckets as fn() -> Histogram);
        let running = Gauge::default();
        registry.register("requests", "Requests answered", requests.clone());
        registry.register(
            "request_seconds",
            "Time from the request's head to the response's head",
            seconds.clone(),
        );
        registry.register("requests_running", "Requests being answered", running.clone());
        let cut = Family::<CutLabels, Counter>::default();
        let uploads_cut = Family::<CutLabels, Counter>::default();
        for reason in [CutOffReason::Stalled, CutOffReason::Slow, CutOffReason::Contention]
            .map(CutOffReason::as_str)
        {
            drop(cut.get_or_create(&CutLabels { reason }));
            drop(uploads_cut.get_or_create(&CutLabels { reason }));
        }
        registry.register(
            "responses_cut",
            "Responses and connections ended because the client did not take them",
            cut.clone(),
        );
        registry.register(
            "uploads_cut",
            "Uploads ended because the client did not send their bodies",
            uploads_cut.clone(),
        );
        let (reads_noted, reads_dropped) = (Counter::default(), Counter::default());
        registry.register(
            "last_access_writes",
            "Last-access times given to the index",
            reads_noted.clone(),
        );
        registry.register(
            "last_access_dropped",
            "Last-access times lost because too many were waiting",
            reads_dropped.clone(),
        );
        let not_authentic = Counter::default();
        registry.register(
            "content_not_authentic",
            "Reads of content under customer-provided keys that was damaged or changed on disk",
            not_authentic.clone(),
        );
        let refusals = RefusalMetrics::register(registry);
        let connections = ConnectionMetrics::register(registry);
        Self {
            requests,
            seconds,
            running,
            cut,
            uploads_cut,
            refusals,
            connections,
            not_authentic,
            reads_noted,
            reads_dropped,
        }
    }

    /// Counts a request as being answered.
    #[must_use]
    pub fn begin(&self) -> RunningGauge {
        self.running.inc();
        RunningGauge(self.running.clone())
    }

    /// Counts an answer that is cut off.
    pub fn cut(&self, reason: &'static str) {
        self.cut.get_or_create(&CutLabels { reason }).inc();
    }

    /// Counts an upload that is cut off.
    pub fn upload_cut(&self, reason: &'static str) {
        self.uploads_cut.get_or_create(&CutLabels { reason }).inc();
    }

    /// Counts an error answer, if it refuses the request.
    pub(crate) fn refused(&self, error: &Refusal) {
        self.refusals.refused(error);
    }

    /// Counts a request of a connection beyond the limits.
    pub(crate) fn refused_for_connections(&self) -> Refusal {
        let error = errors::busy(Busy::Connections);
        self.refused(&error);
        error
    }

    /// Counts a finished request.
    pub fn finished(&self, operation: &'static str, status: u16, seconds: f64) {
        self.requests.get_or_create(&RequestLabels { operation, status }).inc();
        self.seconds.get_or_create(&OperationLabels { operation }).observe(seconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn request_whose_client_left_is_not_answered_for_ever() {
        let metrics = Metrics::register(&mut Registry::default());
        let answer = async {
            let _running = metrics.begin();
            std::future::pending::<()>().await;
        };
        assert!(tokio::time::timeout(std::time::Duration::ZERO, answer).await.is_err());
        let running = metrics.begin();
        assert_eq!(metrics.running.get(), 1);
        drop(running);
        assert_eq!(metrics.running.get(), 0);
    }
}
