//! Metrics and logs.
//!
//! `node` makes one [`Registry`]; each role registers its metrics in it and keeps them; `admin` renders it. There is no
//! global: two nodes in one process count apart. Names of metrics stand with the role that counts.

pub mod log;

pub use log::{LogError, LogFormat};
pub use prometheus_client::registry::Registry;

/// The registry in the text form Prometheus scrapes.
///
/// # Errors
/// When a metric fails to format itself: a bug of that metric.
pub fn render(registry: &Registry) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry)?;
    Ok(text)
}
