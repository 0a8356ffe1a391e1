//! Spans of requests for a collector of OpenTelemetry, if one is configured.
//!
//! Main path: `recording.rs` begins the span of a request that is sampled (`sampling.rs`), and ends
//! it when the answer is sent. `exporter.rs` takes ended spans from a bounded queue and sends them
//! in batches: OpenTelemetry's crates encode them (`span.rs`), the front end's HTTP client sends
//! them (`post.rs`), and `answer.rs` reads the answer of the collector.
//!
//! Invariants: a request never waits for a span: a span that finds the queue full is dropped and
//! counted. While no collector is configured, a request pays one branch for its span; its
//! `traceparent` is read in any case, for log lines. A span has no key, signature, query, header,
//! body or name of a blob.

mod answer;
mod exporter;
mod metrics;
mod post;
mod recording;
mod sampling;
mod span;

pub use exporter::ExportError;
pub(in crate::frontend) use recording::Begun;
pub(in crate::frontend) use recording::Recording;
pub use recording::Spans;
pub use sampling::Ratio;
pub(in crate::frontend) use span::Facts;
