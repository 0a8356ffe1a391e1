//! The content of a span, in OpenTelemetry's terms.

use std::borrow::Cow;
use std::time::Duration;

use opentelemetry::InstrumentationScope;
use opentelemetry::KeyValue;
use opentelemetry::trace::SpanContext;
use opentelemetry::trace::SpanId;
use opentelemetry::trace::SpanKind;
use opentelemetry::trace::Status;
use opentelemetry::trace::TraceFlags;
use opentelemetry::trace::TraceId;
use opentelemetry::trace::TraceState;
use opentelemetry_sdk::trace::SpanData;
use opentelemetry_sdk::trace::SpanEvents;
use opentelemetry_sdk::trace::SpanLinks;

use crate::types::Timestamp;
use crate::types::TraceParent;
use crate::types::request::StageTimes;

/// The facts of a request when its answer is ready.
#[derive(Debug, Default)]
pub(in crate::frontend) struct Facts {
    pub(in crate::frontend) operation: &'static str,
    /// A known method, or `_OTHER`: clients may send any text, and spans wait in memory.
    pub(in crate::frontend) method: &'static str,
    pub(in crate::frontend) scheme: &'static str,
    pub(in crate::frontend) account: Option<String>,
    pub(in crate::frontend) container: Option<String>,
    /// `None` if the connection was cut in place of an answer.
    pub(in crate::frontend) status: Option<u16>,
    pub(in crate::frontend) code: Option<String>,
    pub(in crate::frontend) bytes_in: u64,
    /// The length of the answer, if it is known when its head is sent.
    pub(in crate::frontend) bytes_out: Option<u64>,
    pub(in crate::frontend) admission: Option<Duration>,
    pub(in crate::frontend) body: Duration,
}

/// A span that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) id: [u8; 8],
    pub(super) trace: TraceParent,
    pub(super) request_id: String,
    pub(super) began: Timestamp,
    pub(super) took: Duration,
    pub(super) waited: StageTimes,
    pub(super) facts: Facts,
}

impl Ended {
    /// The span for the encoder.
    pub(super) fn into_data(self) -> SpanData {
        let Self { id, trace, began, took, .. } = &self;
        let flags = TraceFlags::SAMPLED;
        let trace_id = TraceId::from_bytes(trace.trace());
        let state = TraceState::default();
        let span_context = SpanContext::new(trace_id, SpanId::from_bytes(*id), flags, false, state);
        let parent = trace.parent();
        let start_time = began.to_system_time();
        SpanData {
            span_context,
            parent_span_id: parent.map_or(SpanId::INVALID, SpanId::from_bytes),
            parent_span_is_remote: parent.is_some(),
            span_kind: SpanKind::Server,
            name: Cow::Borrowed(self.facts.operation),
            start_time,
            end_time: start_time + *took,
            status: self.status(),
            attributes: self.attributes(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            instrumentation_scope: InstrumentationScope::builder("blockyard").build(),
        }
    }

    /// Only failures of the server are errors, not refusals.
    fn status(&self) -> Status {
        match self.facts.status {
            Some(..500) => Status::Unset,
            Some(_) => Status::error(self.facts.code.clone().unwrap_or_default()),
            None => Status::error("the client got no answer"),
        }
    }

    fn attributes(self) -> Vec<KeyValue> {
        let Self { request_id, waited, facts, .. } = self;
        let count = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let mut all = vec![
            KeyValue::new("http.request.method", facts.method),
            KeyValue::new("url.scheme", facts.scheme),
            KeyValue::new("http.request.body.size", count(facts.bytes_in)),
            KeyValue::new("blockyard.request_id", request_id),
        ];
        let texts = [
            ("error.type", facts.code),
            ("blockyard.account", facts.account),
            ("blockyard.container", facts.container),
        ];
        let texts = texts.into_iter().filter_map(|(name, text)| Some((name, text?)));
        all.extend(texts.map(|(name, text)| KeyValue::new(name, text)));
        let status = facts.status.map(|status| ("http.response.status_code", i64::from(status)));
        all.extend(status.map(|(name, status)| KeyValue::new(name, status)));
        let length = facts.bytes_out.map(count);
        all.extend(length.map(|bytes| KeyValue::new("http.response.body.size", bytes)));
        let stages = [
            ("blockyard.admission_ms", facts.admission.unwrap_or_default()),
            ("blockyard.body_ms", facts.body),
            ("blockyard.index_ms", waited.index),
            ("blockyard.journal_ms", waited.journal),
            ("blockyard.read_ms", waited.read),
        ];
        all.extend(stages.map(|(name, time)| KeyValue::new(name, time.as_secs_f64() * 1e3)));
        all
    }
}
