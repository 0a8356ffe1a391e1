//! Metrics and logs.
//!
//! `node` makes one [`Registry`], each role registers its metrics in it and counts, and `admin`
//! renders it. There is no global registry: two nodes in one process have separate counts. Each
//! role names its metrics; `docs/metrics.md` lists them all.

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

use prometheus_client::encoding::text::encode_eof;
use prometheus_client::encoding::text::encode_registry;

/// A text format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    /// OpenMetrics 1.0, which Prometheus requests.
    OpenMetrics,
    /// The older text format of Prometheus, version 0.0.4, which `promtool check metrics` and many
    /// agents read.
    Classic,
}

impl Exposition {
    /// The format for a request's `Accept` header.
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

/// Renders a registry in a text format.
///
/// # Errors
/// As of [`render_all`].
pub fn render(registry: &Registry, form: Exposition) -> Result<String, std::fmt::Error> {
    render_all([registry], form)
}

/// Renders registries in a text format, one behind the other.
///
/// # Errors
/// If a metric fails to format itself, which is a bug of that metric.
pub fn render_all<'a>(
    registries: impl IntoIterator<Item = &'a Registry>,
    form: Exposition,
) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for registry in registries {
        encode_registry(&mut text, registry)?;
    }
    encode_eof(&mut text)?;
    Ok(match form {
        Exposition::OpenMetrics => text,
        Exposition::Classic => classic::from_open_metrics(&text),
    })
}
