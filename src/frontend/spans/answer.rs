//! The answer of the collector to a batch.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use bytes::Bytes;
use http::StatusCode;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;

/// The most characters of an answer that are logged.
const SHOWN_MAX: usize = 300;

/// The last answer of the collector, between the client that reads it and the exporter. Clones
/// share it.
#[derive(Clone, Debug, Default)]
pub(super) struct LastAnswer(Arc<Mutex<Option<Answer>>>);

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

/// The remark of the collector about an accepted batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Remark {
    /// Spans of the batch that it did not take.
    pub(super) rejected: u64,
    /// Why, or a warning, for people.
    pub(super) message: String,
}

impl LastAnswer {
    /// Keeps an answer.
    pub(super) fn keep(&self, answer: Answer) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
    }

    /// Takes the last answer, if there was one since it was last taken.
    pub(super) fn take(&self) -> Option<Answer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Answer {
    /// Its status and text, for people.
    pub(super) fn shown(&self) -> String {
        let text = shown(&String::from_utf8_lossy(&self.body));
        let text = if text.is_empty() { text } else { format!(": {text}") };
        format!("{}{text}", self.status)
    }

    /// The remark about an accepted batch, if any.
    ///
    /// Source: OTLP 1.5, Partial Success.
    pub(super) fn remark(&self) -> Option<Remark> {
        let read = ExportTraceServiceResponse::decode(self.body.as_ref()).ok()?;
        let partial = read.partial_success?;
        let rejected = u64::try_from(partial.rejected_spans).unwrap_or_default();
        let remark = Remark { rejected, message: shown(&partial.error_message) };
        (remark != Remark::default()).then_some(remark)
    }
}

/// A text of the collector, shortened and escaped.
fn shown(text: &str) -> String {
    let mut shown: String = text.trim().chars().take(SHOWN_MAX).collect();
    if shown.len() < text.trim().len() {
        shown.push_str("...");
    }
    shown.escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess;

    use super::*;

    fn answer(body: impl Into<Bytes>) -> Answer {
        Answer { status: StatusCode::BAD_REQUEST, body: body.into() }
    }

    #[test]
    fn texts_of_the_collector_are_shortened_and_escaped() {
        assert_eq!(answer("").shown(), "400 Bad Request");
        let shown = answer("no \u{1b}[2J\nroom\u{202e} \u{9b}").shown();
        assert_eq!(shown, "400 Bad Request: no \\u{1b}[2J\\nroom\\u{202e} \\u{9b}");
        let long = answer("ü".repeat(5_000)).shown();
        assert_eq!(long.chars().count(), "400 Bad Request: ".len() + SHOWN_MAX + 3);
        assert!(answer(vec![0xff, 0xfe]).shown().starts_with("400 Bad Request: "));
    }

    #[test]
    fn rejected_spans_and_warnings_are_read() {
        let of = |rejected_spans, error_message: &str| {
            let error_message = error_message.to_owned();
            let partial = ExportTracePartialSuccess { rejected_spans, error_message };
            let response = ExportTraceServiceResponse { partial_success: Some(partial) };
            answer(response.encode_to_vec()).remark()
        };
        let remark = |rejected, message: &str| Some(Remark { rejected, message: message.into() });
        assert_eq!(of(3, "too\nold"), remark(3, "too\\nold"));
        assert_eq!(of(0, "use gzip"), remark(0, "use gzip"));
        assert_eq!(of(-1, "odd"), remark(0, "odd"));
        assert_eq!(of(0, ""), None);
        for body in [&b""[..], b"{}", &[0xff; 40]] {
            assert_eq!(answer(body).remark(), None);
        }
    }
}
