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
use crate::types::Timestamp;
use crate::types::TraceParent;
use crate::types::request;
use crate::types::request::CurrentRequest;
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

    /// The trace in which a request is recorded, if it is: that of its client, which says whether,
    /// or a new one.
    pub(in crate::frontend) fn sample(&self, client: Option<TraceParent>) -> Option<TraceParent> {
        let recorder = self.0.as_ref()?;
        let rand = recorder.env.rand.as_ref();
        match client {
            Some(trace) => trace.is_sampled().then_some(trace),
            None if recorder.ratio.takes_one(rand) => {
                let (high, low) = (rand.next_u64(), rand.next_u64());
                Some(TraceParent::begun(u128::from(high) << 64 | u128::from(low)))
            }
            None => None,
        }
    }

    /// Begins the span of the request that the thread works on, if it is recorded.
    pub(in crate::frontend) fn begin(
        &self,
        arrived: Timestamp,
        begun: Duration,
    ) -> Option<Box<Recording>> {
        let recorder = self.0.as_ref()?;
        let CurrentRequest { id, trace, waits, recorded } = request::current_whole()?;
        let (trace, waits) = trace.filter(|_| recorded).zip(waits)?;
        let (recorder, request_id) = (Arc::clone(recorder), id.to_string());
        // What is known if the client leaves before the answer.
        let facts = Facts { operation: "Unanswered", ..Facts::default() };
        Some(Box::new(Recording { recorder, trace, request_id, waits, arrived, begun, facts }))
    }
}

impl Recording {
    /// Notes the answer.
    pub(in crate::frontend) fn answered(&mut self, facts: Facts) {
        self.facts = facts;
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let Recorder { queue, metrics, env, .. } = self.recorder.as_ref();
        let ended = Ended {
            // An id of zeros would be none.
            id: env.rand.next_u64().max(1).to_be_bytes(),
            trace: self.trace,
            request_id: std::mem::take(&mut self.request_id),
            began: self.arrived,
            took: env.clock.monotonic().saturating_sub(self.begun),
            waited: self.waits.times(),
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
        let trace = spans.sample(None);
        let waits = Some(Arc::default());
        let request = CurrentRequest { id: Uuid::from_u128(7), trace, waits, recorded: true };
        let work = async {
            for _ in 0..3 {
                assert!(spans.begin(Timestamp::ZERO, Duration::ZERO).is_some());
            }
        };
        working_on(Some(request), work).await;
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
            let (spans, ..) = spans(ratio);
            assert_eq!((spans.sample(of("01")), spans.sample(of("00"))), (of("01"), None));
            assert_eq!(spans.sample(None).is_some(), others, "{ratio}");
            assert!(spans.begin(Timestamp::ZERO, Duration::ZERO).is_none(), "no request");
        }
        assert_eq!(Spans::default().sample(of("01")), None);
    }
}
