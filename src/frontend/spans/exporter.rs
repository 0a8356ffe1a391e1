//! The task that sends ended spans to the collector.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_otlp::RetryPolicy;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_otlp::WithExportConfig;
use opentelemetry_otlp::WithHttpConfig;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanData;
use opentelemetry_sdk::trace::SpanExporter as _;
use thiserror::Error;
use tokio::sync::mpsc;

use super::answer::LastAnswer;
use super::answer::Remark;
use super::metrics::Metrics;
use super::post::Post;
use super::span::Ended;
use crate::env::Env;
use crate::frontend::client::Client;

/// The most spans of a batch.
const BATCH: usize = 512;
/// How long a batch is gathered.
const GATHER: Duration = Duration::from_secs(1);
/// The longest time until the collector has taken a batch.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same for the last batch, when the node stops.
const LAST: Duration = Duration::from_secs(2);
/// The pause after a batch that the collector did not take. Meanwhile the queue fills.
const PAUSE: Duration = Duration::from_secs(5);
/// Where traces are, below a collector's address.
const TRACES: &str = "/v1/traces";

/// Why no spans can be sent.
#[derive(Debug, Error)]
#[error("spans cannot be sent: {0}")]
pub struct ExportError(String);

/// Sends the spans of a queue.
#[derive(Debug)]
struct Exporter {
    inner: SpanExporter,
    ended: mpsc::Receiver<Ended>,
    metrics: Metrics,
    env: Env,
    /// The answer of the collector to the last batch.
    answer: LastAnswer,
    /// Whether the last batch was taken. A change is logged.
    works: bool,
    /// Whether the collector remarked on the last batch that it took. A first remark is logged.
    remarks: bool,
}

/// Starts the task. It ends when the node stops, after one more batch.
pub(super) fn start(
    endpoint: &str,
    client: &Client,
    env: &Env,
    (ended, metrics): (mpsc::Receiver<Ended>, Metrics),
) -> Result<(), ExportError> {
    let answer = LastAnswer::default();
    let post = Post { client: client.clone(), tasks: env.tasks.clone(), answer: answer.clone() };
    let url = format!("{}{TRACES}", endpoint.trim_end_matches('/'));
    // A batch that fails is dropped: the crate would block the thread, and delay the next batches.
    let built = SpanExporter::builder()
        .with_http()
        .with_http_client(post)
        .with_endpoint(url)
        .with_timeout(PATIENCE)
        .with_retry_policy(RetryPolicy::disabled())
        .build();
    let mut inner = built.map_err(|error| ExportError(error.to_string()))?;
    inner.set_resource(&resource());
    let (works, remarks) = (true, false);
    let exporter = Exporter { inner, ended, metrics, env: env.clone(), answer, works, remarks };
    drop(env.tasks.spawn("spans", exporter.run()));
    Ok(())
}

fn resource() -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    Resource::builder().with_service_name("blockyard").with_attribute(version).build()
}

impl Exporter {
    async fn run(mut self) {
        let stop = self.env.tasks.stopping();
        let mut gathered = Vec::new();
        let is_over = loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break true,
                more = self.gather(&mut gathered) => if !more { break false },
            }
            let batch = std::mem::take(&mut gathered);
            let count = batch.len() as u64;
            tokio::select! {
                biased;
                () = stop.cancelled() => {
                    self.metrics.not_taken.inc_by(count);
                    break true;
                }
                () = self.send_and_rest(batch) => {}
            }
        };
        if is_over {
            while let Ok(next) = self.ended.try_recv() {
                gathered.push(next);
            }
            self.send(gathered, LAST).await;
        }
    }

    /// Gathers a batch. False if there are no more spans. Cancel safe.
    async fn gather(&mut self, gathered: &mut Vec<Ended>) -> bool {
        if self.ended.recv_many(gathered, BATCH).await == 0 {
            return false;
        }
        if gathered.len() < BATCH {
            self.env.clock.sleep(GATHER).await;
            while gathered.len() < BATCH
                && let Ok(next) = self.ended.try_recv()
            {
                gathered.push(next);
            }
        }
        true
    }

    async fn send_and_rest(&mut self, batch: Vec<Ended>) {
        self.send(batch, PATIENCE).await;
        if !self.works {
            self.env.clock.sleep(PAUSE).await;
        }
    }

    async fn send(&mut self, batch: Vec<Ended>, patience: Duration) {
        if batch.is_empty() {
            return;
        }
        let count = batch.len() as u64;
        drop(self.answer.take());
        let batch: Vec<SpanData> = batch.into_iter().map(Ended::into_data).collect();
        let exported = tokio::select! {
            biased;
            exported = self.inner.export(batch) => exported.map_err(|error| error.to_string()),
            () = self.env.clock.sleep(patience) => {
                Err(format!("no answer within {} s", patience.as_secs()))
            }
        };
        let (worked, answer) = (self.works, self.answer.take());
        self.works = exported.is_ok();
        match exported {
            Ok(()) => {
                if !worked {
                    tracing::info!("the collector takes spans again");
                }
                self.taken(count, answer.and_then(|answer| answer.remark()));
            }
            Err(reason) => {
                self.metrics.not_taken.inc_by(count);
                if worked {
                    let answer = answer.map(|answer| answer.shown());
                    tracing::warn!(
                        reason,
                        answer = %answer.as_deref().unwrap_or("none"),
                        "the collector does not take spans; they are dropped and counted"
                    );
                }
            }
        }
    }

    /// Counts a batch that was accepted, perhaps in part.
    fn taken(&mut self, count: u64, remark: Option<Remark>) {
        let rejected = remark.as_ref().map_or(0, |remark| remark.rejected.min(count));
        self.metrics.sent.inc_by(count - rejected);
        self.metrics.rejected.inc_by(rejected);
        let remarked = std::mem::replace(&mut self.remarks, remark.is_some());
        if let Some(Remark { message, .. }) = remark.filter(|_| !remarked) {
            tracing::warn!(
                rejected,
                %message,
                "the collector remarks on a batch of spans; rejected spans are counted"
            );
        }
    }
}
