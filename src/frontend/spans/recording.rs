//! The spans of requests that run.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio::sync::mpsc;

use super::exporter;
use super::exporter::ExportError;
use super::metrics::Metrics;
use super::sampling::Ratio;
use super::span::Ended;
use super::span::Facts;
use crate::env::Env;
use crate::frontend::client::Client;
use crate::types::AccountName;
use crate::types::Timestamp;
use crate::types::TraceParent;
use crate::types::request;
use crate::types::request::CurrentRequest;
use crate::types::request::Sampling;
use crate::types::request::StageWaits;

/// Ended spans that wait to be sent. Each takes half a KiB.
const QUEUE: usize = 8_192;

/// Begins the spans of requests; cheap to clone. Without a collector there are none.
#[derive(Clone, Debug, Default)]
pub struct Spans(Option<Arc<Recorder>>);

#[derive(Debug)]
struct Recorder {
    queue: mpsc::Sender<Ended>,
    /// Of requests whose client does not say whether it records them.
    ratio: Ratio,
    metrics: Metrics,
    env: Env,
}

/// The span of a request that runs. It ends when this is dropped, also when the client disconnects.
#[derive(Debug)]
pub(in crate::frontend) struct Recording {
    recorder: Arc<Recorder>,
    trace: TraceParent,
    request_id: String,
    waits: Arc<StageWaits>,
    arrived: Timestamp,
    /// When it arrived, by the monotonic clock.
    begun: Duration,
    facts: Facts,
    sampling: Sampling,
    /// Whether its sender is authenticated and it was admitted.
    known: bool,
}

/// A request that begins.
#[derive(Clone, Copy, Debug)]
pub(in crate::frontend) struct Begun {
    /// When it arrived.
    pub(in crate::frontend) arrived: Timestamp,
    /// The same by the monotonic clock.
    pub(in crate::frontend) at: Duration,
    /// A known method, or `_OTHER`.
    pub(in crate::frontend) method: &'static str,
    pub(in crate::frontend) scheme: &'static str,
}

impl Spans {
    /// Registers the metrics, and starts to send spans if there is a collector at `endpoint`.
    ///
    /// # Errors
    /// [`ExportError`].
    pub fn start(
        collector: Option<(&str, Ratio)>,
        client: &Client,
        env: &Env,
        registry: &mut Registry,
    ) -> Result<Self, ExportError> {
        let metrics = Metrics::register(registry);
        let Some((endpoint, ratio)) = collector else { return Ok(Self(None)) };
        let (queue, ended) = mpsc::channel(QUEUE);
        exporter::start(endpoint, client, env, (ended, metrics.clone()))?;
        Ok(Self(Some(Arc::new(Recorder { queue, ratio, metrics, env: env.clone() }))))
    }

    /// Whether there is a collector.
    pub(in crate::frontend) const fn are_on(&self) -> bool {
        self.0.is_some()
    }

    /// The trace in which a request may be recorded, if it may: that of its client, or a new one.
    /// An authenticated client decides; for others the ratio decides, because they could force
    /// spans otherwise.
    pub(in crate::frontend) fn sample(
        &self,
        client: Option<TraceParent>,
    ) -> Option<(TraceParent, Sampling)> {
        let recorder = self.0.as_ref()?;
        let rand = recorder.env.rand.as_ref();
        let of_others = recorder.ratio.takes_one(rand);
        let of_known = client.map_or(of_others, |trace| trace.is_sampled());
        let sampling = Sampling { of_known, of_others };
        let trace = || {
            client.unwrap_or_else(|| {
                let (high, low) = (rand.next_u64(), rand.next_u64());
                TraceParent::begun(u128::from(high) << 64 | u128::from(low))
            })
        };
        sampling.is_possible().then(|| (trace(), sampling))
    }

    /// Begins the span of the request that the thread works on, if it is recorded.
    pub(in crate::frontend) fn begin(&self, request: Begun) -> Option<Box<Recording>> {
        let recorder = self.0.as_ref()?;
        let CurrentRequest { id, trace, waits, sampling } = request::current_whole()?;
        let (trace, waits) = trace.filter(|_| sampling.is_possible()).zip(waits)?;
        let Begun { arrived, at, method, scheme } = request;
        Some(Box::new(Recording {
            recorder: Arc::clone(recorder),
            trace,
            request_id: id.to_string(),
            waits,
            arrived,
            begun: at,
            // The facts if the client disconnects before the answer.
            facts: Facts { operation: "Unanswered", method, scheme, ..Facts::default() },
            sampling,
            known: false,
        }))
    }
}

impl Recording {
    /// Notes that the request was admitted as an operation on an account, and whether its sender is
    /// authenticated.
    pub(in crate::frontend) fn admitted(
        &mut self,
        operation: &'static str,
        account: &AccountName,
        authenticated: bool,
    ) {
        self.known = authenticated;
        self.facts.operation = operation;
        self.facts.account = Some(account.as_str().to_owned());
    }

    /// Notes the answer.
    pub(in crate::frontend) fn answered(&mut self, facts: Facts) {
        self.facts = facts;
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let Sampling { of_known, of_others } = self.sampling;
        if !(if self.known { of_known } else { of_others }) {
            return;
        }
        let Recorder { queue, metrics, env, .. } = self.recorder.as_ref();
        let now = env.clock.monotonic();
        let ended = Ended {
            // An id of zeros is invalid.
            id: env.rand.next_u64().max(1).to_be_bytes(),
            trace: self.trace,
            request_id: std::mem::take(&mut self.request_id),
            began: self.arrived,
            took: now.saturating_sub(self.begun),
            waited: self.waits.times(now),
            facts: std::mem::take(&mut self.facts),
        };
        if queue.try_send(ended).is_err() {
            metrics.queue_full.inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::env::SeededRand;
    use crate::env::SimClock;
    use crate::env::Tasks;
    use crate::env::working_on;
    use crate::types::request::Stage;

    const BEGUN: Begun =
        Begun { arrived: Timestamp::ZERO, at: Duration::ZERO, method: "PUT", scheme: "https" };

    fn request(trace: Option<TraceParent>, sampling: Sampling) -> CurrentRequest {
        CurrentRequest { id: Uuid::from_u128(7), trace, waits: Some(Arc::default()), sampling }
    }

    fn spans(ratio: Ratio) -> (Spans, Metrics, mpsc::Receiver<Ended>) {
        let (clock, rand) = (Arc::new(SimClock::new()), Arc::new(SeededRand::new(1)));
        let env = Env { clock, rand, tasks: Tasks::new() };
        let (queue, ended) = mpsc::channel(1);
        let metrics = Metrics::register(&mut Registry::default());
        let recorder = Recorder { queue, ratio, metrics: metrics.clone(), env };
        (Spans(Some(Arc::new(recorder))), metrics, ended)
    }

    #[tokio::test]
    async fn a_span_that_finds_the_queue_full_is_dropped_and_counted() {
        let (spans, metrics, mut ended) = spans(Ratio::ALL);
        let (trace, sampling) = spans.sample(None).unwrap();
        let trace = Some(trace);
        let work = async {
            for _ in 0..3 {
                assert!(spans.begin(BEGUN).is_some());
            }
        };
        working_on(Some(request(trace, sampling)), work).await;
        let first = ended.try_recv().unwrap();
        assert_eq!((Some(first.trace), metrics.queue_full.get()), (trace, 2));
        assert_eq!(first.request_id, Uuid::from_u128(7).to_string());
    }

    #[tokio::test]
    async fn a_client_decides_about_its_trace_and_the_ratio_about_others() {
        let of = |flags: &str| {
            let text = format!("00-{}-{}-{flags}", "1".repeat(32), "2".repeat(16));
            TraceParent::parse(text.as_bytes())
        };
        for (ratio, others) in [(Ratio::ALL, true), ("0".parse().unwrap(), false)] {
            // What the client says, and who has a span: the authenticated, and others.
            for (client, known) in [(of("01"), true), (of("00"), false), (None, others)] {
                for (authenticated, expected) in
                    [(Some(true), known), (Some(false), others), (None, others)]
                {
                    let (spans, _, mut ended) = spans(ratio);
                    let Some((trace, sampling)) = spans.sample(client) else {
                        assert!(!expected, "{ratio} {client:?} {authenticated:?}");
                        continue;
                    };
                    assert!(client.is_none_or(|client| client == trace));
                    let work = async {
                        let mut span = spans.begin(BEGUN).unwrap();
                        if let Some(authenticated) = authenticated {
                            span.admitted(
                                "PutBlob",
                                &AccountName::new("acct").unwrap(),
                                authenticated,
                            );
                        }
                    };
                    working_on(Some(request(Some(trace), sampling)), work).await;
                    let found = ended.try_recv().ok();
                    assert_eq!(found.is_some(), expected, "{ratio} {client:?} {authenticated:?}");
                }
            }
            assert!(spans(ratio).0.begin(BEGUN).is_none(), "no request");
        }
        assert_eq!(Spans::default().sample(of("01")), None);
    }

    #[tokio::test]
    async fn span_of_a_client_that_leaves_has_what_was_known() {
        let (spans, _, mut ended) = spans(Ratio::ALL);
        let (trace, sampling) = spans.sample(None).unwrap();
        let request = request(Some(trace), sampling);
        let waits = request.waits.clone().unwrap();
        let work = async {
            let mut span = spans.begin(BEGUN).unwrap();
            span.admitted("PutBlob", &AccountName::new("acct").unwrap(), true);
            waits.begin(Stage::Index, Duration::ZERO);
            tokio::time::advance(Duration::from_secs(2)).await;
        };
        tokio::time::pause();
        working_on(Some(request), work).await;
        let Ended { facts, waited, .. } = ended.try_recv().unwrap();
        let known = (facts.operation, facts.method, facts.scheme, facts.account.as_deref());
        assert_eq!(known, ("PutBlob", "PUT", "https", Some("acct")));
        assert_eq!((facts.status, waited.index.as_secs()), (None, 2), "the wait had not ended");
    }
}
