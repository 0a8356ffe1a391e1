//! The state that requests use: routes, stores of bytes, budgets, limits, counters. It does not
//! depend on the code of the requests.

use std::sync::Arc;

use http::HeaderMap;
use http::header::HeaderName;
use prometheus_client::metrics::counter::Counter;
use uuid::Builder;
use uuid::Uuid;

use crate::audit_log::AuditLog;
use crate::capacity::Capacity;
use crate::coordinator::IdAllocator;
use crate::env::Env;
use crate::frontend::accounts::Accounts;
use crate::frontend::answers::CutOffReason;
use crate::frontend::config::FrontEndConfig;
use crate::frontend::copies::Copies;
use crate::frontend::faults::Faults;
use crate::frontend::last_access::LastAccess;
use crate::frontend::load::LoadLimits;
use crate::frontend::metrics::ConnectionMetrics;
use crate::frontend::metrics::Metrics;
use crate::frontend::refusals::Refusals;
use crate::frontend::rows::RowAccess;
use crate::frontend::spans::Spans;
use crate::frontend::tokens::Tokens;
use crate::frontend::trace::Trace;
use crate::frontend::write::WritePool;
use crate::index::Containers;
use crate::index::InFlight;
use crate::index::Router;
use crate::index::RunningRequests;
use crate::protocol::model::Refusal;
use crate::types::TraceParent;
use crate::types::request::CurrentRequest;
use crate::types::request::Sampling;

/// The header of W3C Trace Context.
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");

/// The parts of the node that a front end uses.
#[derive(Debug)]
pub struct Dependencies {
    /// Routes to partitions.
    pub router: Arc<Router>,
    /// Reads and writes extents.
    pub capacity: Arc<dyn Capacity>,
    /// Stores bodies.
    pub pool: WritePool,
    /// The accounts served.
    pub accounts: Accounts,
    /// The issuers whose bearer tokens are trusted.
    pub tokens: Tokens,
    /// Reads, writes and copies in progress, which reclaim must wait for.
    pub inflight: InFlight,
    /// The requests of all processes, for the deletion of containers that must be empty.
    pub requests: Arc<dyn RunningRequests>,
    /// Clock, randomness and tasks.
    pub env: Env,
    /// Issues container ids.
    pub container_ids: Arc<IdAllocator>,
    /// Counters.
    pub metrics: Metrics,
    /// Sends lines to watchers of live requests.
    pub trace: Trace,
    /// Records requests for a collector.
    pub spans: Spans,
    /// The fault dial.
    pub faults: Faults,
    /// Records changes and requests.
    pub audit_log: AuditLog,
}

/// A front end. Stateless but for caches and running requests.
#[derive(Debug)]
pub struct FrontEnd {
    /// Access to rows: all that look-ups and commits use.
    pub(crate) rows: RowAccess,
    pub(crate) capacity: Arc<dyn Capacity>,
    pub(crate) pool: WritePool,
    pub(crate) env: Env,
    pub(crate) container_ids: Arc<IdAllocator>,
    pub(crate) accounts: Accounts,
    pub(crate) tokens: Tokens,
    pub(super) trace: Trace,
    pub(super) spans: Spans,
    pub(super) faults: Faults,
    pub(super) audit_log: AuditLog,
    pub(crate) config: FrontEndConfig,
    /// Copies that outlive their request.
    pub(crate) copies: Arc<Copies>,
    /// Last-access notes, when last access is tracked.
    pub(crate) last_access: Option<LastAccess>,
    /// The limits of requests and of their memory.
    pub(crate) load: LoadLimits,
    /// Error answers that are being sent.
    pub(super) refusals: Refusals,
    pub(super) metrics: Metrics,
}

impl FrontEnd {
    /// A front end with these dependencies.
    #[must_use]
    pub fn new(dependencies: Dependencies, mut config: FrontEndConfig) -> Self {
        config.dialects.s3.access_keys = dependencies.accounts.access_keys();
        let Dependencies { router, inflight, requests, .. } = dependencies;
        let containers = Arc::new(Containers {
            router: Arc::clone(&router),
            inflight: inflight.clone(),
            requests,
            clock: Arc::clone(&dependencies.env.clock),
        });
        let rows = RowAccess {
            router,
            inflight,
            containers,
            tasks: dependencies.env.tasks.clone(),
            retention_day: config.retention_day,
        };
        Self {
            load: LoadLimits::new(&config, &dependencies.env.clock),
            rows,
            refusals: Refusals::default(),
            capacity: dependencies.capacity,
            pool: dependencies.pool,
            env: dependencies.env,
            container_ids: dependencies.container_ids,
            accounts: dependencies.accounts,
            tokens: dependencies.tokens,
            trace: dependencies.trace,
            spans: dependencies.spans,
            faults: dependencies.faults,
            audit_log: dependencies.audit_log,
            copies: Arc::default(),
            last_access: config.last_access.then(|| LastAccess::new(&dependencies.metrics)),
            metrics: dependencies.metrics,
            config,
        }
    }

    /// Counts an error that is answered, if it refuses its request.
    pub(crate) fn count_refused(&self, error: &Refusal) {
        self.metrics.refused(error);
    }

    /// The metrics of connections.
    pub(super) const fn connection_metrics(&self) -> &ConnectionMetrics {
        &self.metrics.connections
    }

    /// Counts content under customer-provided keys that differs from the stored content.
    pub(super) fn not_authentic(&self) -> Counter {
        self.metrics.not_authentic.clone()
    }

    /// Counts an answer that is cut.
    pub(super) fn count_cut_off(&self, fault: CutOffReason) {
        self.metrics.cut(fault.as_str());
    }

    /// Counts an upload that is cut.
    pub(super) fn count_upload_cut_off(&self, fault: CutOffReason) {
        self.metrics.upload_cut(fault.as_str());
    }

    /// Its limits.
    pub(crate) const fn config(&self) -> &FrontEndConfig {
        &self.config
    }

    /// A request that arrives: its id, the trace that its client names or that begins with it, and,
    /// if it is watched or recorded, where its waits are noted.
    pub(super) fn arriving(&self, head: &HeaderMap) -> CurrentRequest {
        let mut named = head.get_all(TRACE_PARENT).iter();
        let trace = match (named.next(), named.next()) {
            (Some(value), None) => TraceParent::parse(value.as_bytes()),
            // A request has one place in one trace.
            (None, _) | (Some(_), Some(_)) => None,
        };
        let recorded = self.spans.sample(trace);
        let waits = (recorded.is_some() || self.trace.is_watched()).then(Arc::default);
        let (trace, sampling) = match recorded {
            Some((trace, sampling)) => (Some(trace), sampling),
            None => (trace, Sampling::default()),
        };
        CurrentRequest { id: self.request_id(), trace, waits, sampling }
    }

    /// A fresh GUID.
    pub(crate) fn request_id(&self) -> Uuid {
        let mut bytes = [0; 16];
        let (high, low) = (self.env.rand.next_u64(), self.env.rand.next_u64());
        bytes[..8].copy_from_slice(&high.to_be_bytes());
        bytes[8..].copy_from_slice(&low.to_be_bytes());
        Builder::from_random_bytes(bytes).into_uuid()
    }
}
