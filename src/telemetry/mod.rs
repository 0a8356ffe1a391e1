//! Metrics and logs.
//!
//! `node` makes one [`Registry`]; each role registers its metrics in it and keeps them; `admin`
//! renders it. There is no global: two nodes in one process count apart. Names of metrics stand
//! with the role that counts; `docs/metrics.md` lists them all.

#[cfg(test)]
mod captured;
mod classic;
mod counters;
pub mod log;

#[cfg(test)]
pub(crate) use captured::CapturedLog;
pub use counters::Counters;
pub use log::{LogError, LogFormat};
pub use prometheus_client::registry::Registry;

/// A text form of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    /// OpenMetrics 1.0: what Prometheus asks for.
    OpenMetrics,
    /// The older form of Prometheus, version 0.0.4: what `promtool check metrics` and many agents
    /// read.
    Classic,
}

impl Exposition {
    /// The form that a request's `Accept` asks for.
    #[must_use]
    pub fn accepted(accept: Option<&str>) -> Self {
        match accept {
            Some(types) if types.contains("application/openmetrics-text") => Self::OpenMetrics,
            Some(_) | None => Self::Classic,
        }
    }

    /// Its `Content-Type`.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Classic => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// The registry in a text form that Prometheus scrapes.
///
/// # Errors
/// When a metric fails to format itself: a bug of that metric.
pub fn render(registry: &Registry, form: Exposition) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry)?;
    Ok(match form {
        Exposition::OpenMetrics => text,
        Exposition::Classic => classic::from_open_metrics(&text),
    })
}
