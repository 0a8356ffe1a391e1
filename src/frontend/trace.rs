//! Live requests for watchers: one line for each, sent when the head of its answer is ready.
//!
//! Lines go to a bounded ring. A watcher that reads too slowly loses the oldest lines, and learns
//! how many. While there is no watcher, a request pays one atomic load.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use serde::Deserialize;
use serde::Serialize;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::filter;
use super::filter::FilterError;

/// Lines kept for watchers that have not read them yet.
const RING: usize = 4096;

/// One request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceLine {
    /// When it arrived, RFC 3339 in UTC with milliseconds.
    pub time: String,
    /// The HTTP method.
    pub method: String,
    /// REST name of the operation; `Refused` when it was not recognised or not admitted.
    pub operation: String,
    /// The account that the URL names; empty when it names none.
    pub account: String,
    /// The user of the account whose key signed it, once the request was admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The container.
    pub container: Option<String>,
    /// The blob.
    pub blob: Option<String>,
    /// The HTTP status; 0 when the fault dial closed the connection.
    pub status: u16,
    /// The error code.
    pub code: Option<String>,
    /// The kind of the fault that the fault dial injected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// From the request's head to the answer's head, milliseconds.
    pub ms: f64,
    /// Of that: until the request was admitted, its sender identified and its head parsed. None if
    /// it was not admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission_ms: Option<f64>,
    /// Of that: waiting for bytes of the request's body.
    #[serde(default)]
    pub body_ms: f64,
    /// Of that: waiting for the index, which looks rows up and commits changes of them.
    #[serde(default)]
    pub index_ms: f64,
    /// Of that: waiting until bytes of the body were durable.
    #[serde(default)]
    pub journal_ms: f64,
    /// Of that: waiting for bytes of content from the disks.
    #[serde(default)]
    pub read_ms: f64,
    /// Bytes of the request's body that were read.
    pub bytes_in: u64,
    /// Bytes of the answer's body.
    pub bytes_out: u64,
    /// The client's address.
    pub client: String,
    /// The id that the client gave its request.
    pub client_request_id: Option<String>,
    /// The id of the request, as in its answer and the log.
    pub request_id: String,
    /// The id of its trace: of the header `traceparent`, or a new one if it has a span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// `http` or `https`.
    pub scheme: String,
}

impl TraceLine {
    /// The ids by which it is known.
    fn ids(&self) -> impl Iterator<Item = &str> {
        let others = [&self.client_request_id, &self.trace_id];
        let others = others.into_iter().filter_map(|id| id.as_deref());
        std::iter::once(self.request_id.as_str()).chain(others)
    }
}

/// An event for watchers.
#[derive(Clone, Debug)]
pub enum TraceEvent {
    /// A request.
    Line(Arc<TraceLine>),
    /// The number of lines that were lost because the watcher read too slowly.
    Lost(u64),
}

/// Sends lines to all watchers; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Made for the first watcher, because the ring takes 128 KiB.
    sender: Arc<OnceLock<broadcast::Sender<Arc<TraceLine>>>>,
    watchers: Arc<AtomicUsize>,
}

/// A watcher. It gets the events after its creation.
#[derive(Debug)]
pub struct TraceWatch {
    receiver: broadcast::Receiver<Arc<TraceLine>>,
    watchers: Arc<AtomicUsize>,
}

impl Trace {
    /// Whether there is a watcher.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::Relaxed) > 0
    }

    /// Sends a line to all watchers.
    pub fn send(&self, line: TraceLine) {
        if let Some(sender) = self.sender.get() {
            // It fails only without a receiver.
            drop(sender.send(Arc::new(line)));
        }
    }

    /// A new watcher.
    #[must_use]
    pub fn watch(&self) -> TraceWatch {
        let receiver = self.sender.get_or_init(|| broadcast::Sender::new(RING)).subscribe();
        self.watchers.fetch_add(1, Ordering::Relaxed);
        TraceWatch { receiver, watchers: Arc::clone(&self.watchers) }
    }
}

impl TraceWatch {
    /// The next event; `None` when the front end is gone. Cancel safe.
    pub async fn next(&mut self) -> Option<TraceEvent> {
        match self.receiver.recv().await {
            Ok(line) => Some(TraceEvent::Line(line)),
            Err(RecvError::Lagged(lost)) => Some(TraceEvent::Lost(lost)),
            Err(RecvError::Closed) => None,
        }
    }
}

impl Drop for TraceWatch {
    fn drop(&mut self) {
        self.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The lines that a watcher wants. All parts that are set must match; case is ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TraceFilter {
    /// This operation.
    pub operation: Option<String>,
    /// This account.
    pub account: Option<String>,
    /// This container.
    pub container: Option<String>,
    /// This status, or a class of them such as `5xx`.
    pub status: Option<String>,
    /// This id: of the request, of its client, or of its trace.
    pub id: Option<String>,
    /// At least this slow, milliseconds.
    pub slow_ms: Option<u32>,
}

impl TraceFilter {
    /// Checks that requests can match.
    ///
    /// # Errors
    /// [`FilterError`].
    pub fn check(&self) -> Result<(), FilterError> {
        self.operation.as_deref().map_or(Ok(()), filter::operation)?;
        self.account.as_deref().map_or(Ok(()), filter::account)?;
        self.container.as_deref().map_or(Ok(()), filter::container)?;
        self.status.as_deref().map_or(Ok(()), filter::status)
    }

    /// Whether a line matches.
    #[must_use]
    pub fn wants(&self, line: &TraceLine) -> bool {
        let same = |wanted: &Option<String>, value: &str| {
            wanted.as_ref().is_none_or(|wanted| same_text(wanted, value))
        };
        same(&self.operation, &line.operation)
            && same(&self.account, &line.account)
            && same(&self.container, line.container.as_deref().unwrap_or(""))
            && self.status.as_ref().is_none_or(|wanted| is_status(wanted, line.status))
            && self.id.as_ref().is_none_or(|wanted| line.ids().any(|id| same_text(wanted, id)))
            && self.slow_ms.is_none_or(|least| line.ms >= f64::from(least))
    }
}

fn same_text(wanted: &str, value: &str) -> bool {
    wanted.eq_ignore_ascii_case(value)
}

/// Whether `wanted`, such as `404` or `4xx`, means `status`.
fn is_status(wanted: &str, status: u16) -> bool {
    match wanted.strip_suffix("xx").or_else(|| wanted.strip_suffix("XX")) {
        Some(class) => class.parse() == Ok(status / 100),
        None => wanted.parse() == Ok(status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(operation: &str, status: u16, ms: f64) -> TraceLine {
        TraceLine {
            time: "2026-11-21T08:00:00.000Z".to_owned(),
            method: "PUT".to_owned(),
            operation: operation.to_owned(),
            account: "acct".to_owned(),
            user: None,
            container: Some("photos".to_owned()),
            blob: None,
            status,
            code: None,
            fault: None,
            ms,
            admission_ms: None,
            body_ms: 0.0,
            index_ms: 0.0,
            journal_ms: 0.0,
            read_ms: 0.0,
            bytes_in: 0,
            bytes_out: 0,
            client: "127.0.0.1:1".to_owned(),
            client_request_id: Some("mine".to_owned()),
            request_id: "r".to_owned(),
            trace_id: Some("0af7".to_owned()),
            scheme: "http".to_owned(),
        }
    }

    #[test]
    fn every_part_of_a_filter_must_hold() {
        let slow = line("PutBlob", 503, 12.0);
        let filter = |pairs: &str| serde_json::from_str::<TraceFilter>(pairs).unwrap();
        let wanted = [
            "{}",
            r#"{"operation":"putblob"}"#,
            r#"{"status":"503","container":"photos"}"#,
            r#"{"status":"5xx","slow_ms":12,"account":"acct"}"#,
            r#"{"id":"r"}"#,
            r#"{"id":"mine","operation":"putblob"}"#,
            r#"{"id":"0AF7"}"#,
        ];
        for text in wanted {
            assert!(filter(text).wants(&slow), "{text}");
        }
        let unwanted = [
            r#"{"operation":"GetBlob"}"#,
            r#"{"status":"50"}"#,
            r#"{"status":"4xx"}"#,
            r#"{"slow_ms":13}"#,
            r#"{"id":"other"}"#,
            r#"{"id":""}"#,
            r#"{"operation":"PutBlob","container":"other"}"#,
        ];
        for text in unwanted {
            assert!(!filter(text).wants(&slow), "{text}");
        }
    }

    #[tokio::test]
    async fn slow_watchers_get_the_number_of_lost_events() {
        let trace = Trace::default();
        assert!(!trace.is_watched());
        let mut watch = trace.watch();
        assert!(trace.is_watched());
        let lost = 3;
        for _ in 0..RING + lost {
            trace.send(line("PutBlob", 201, 1.0));
        }
        assert!(matches!(watch.next().await, Some(TraceEvent::Lost(n)) if n == lost as u64));
        assert!(matches!(watch.next().await, Some(TraceEvent::Line(_))));
        drop(watch);
        assert!(!trace.is_watched());
    }
}
