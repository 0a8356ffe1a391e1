//! The metric of the age of issuers' keys.

use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::EncodeMetric;
use prometheus_client::encoding::MetricEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use prometheus_client::registry::Unit;

use crate::env::Clock;
use crate::frontend::tokens::keyring::Keyring;
use crate::frontend::tokens::metrics::IssuerLabels;

/// The age of the keys of each issuer, in seconds.
#[derive(Debug)]
pub(super) struct Ages {
    pub(super) keyrings: Vec<Arc<Keyring>>,
    pub(super) clock: Arc<dyn Clock>,
}

impl Ages {
    /// Registers the metric; the ages are read when it is scraped.
    pub(super) fn register(self, registry: &mut Registry) {
        let what = "Age of the keys in use; absent for an issuer whose keys were never fetched";
        registry.register_with_unit("issuer_keys_age", what, Unit::Seconds, self);
    }
}

impl EncodeMetric for Ages {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let now = self.clock.monotonic();
        for keyring in &self.keyrings {
            let Some(age) = keyring.age(now) else { continue };
            let labels = IssuerLabels { issuer: keyring.name().to_owned() };
            encoder.encode_family(&labels)?.encode_gauge(&age.as_secs_f64())?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }

    fn is_empty(&self) -> bool {
        self.keyrings.is_empty()
    }
}
