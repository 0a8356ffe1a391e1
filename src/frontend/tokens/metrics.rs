//! What is counted of issuers whose keys are asked for by URL. Every name stands here.

use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::EncodeMetric;
use prometheus_client::encoding::MetricEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use prometheus_client::registry::Unit;

use crate::env::Clock;
use crate::frontend::tokens::keyring::Keyring;

/// Whose keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct IssuerLabels {
    issuer: String,
}

/// Counters of all issuers.
#[derive(Clone, Debug, Default)]
pub(super) struct Metrics {
    fetches: Family<IssuerLabels, Counter>,
    failures: Family<IssuerLabels, Counter>,
}

impl Metrics {
    /// Registers the metrics; the issuers' ages are read when they are scraped.
    pub(super) fn register(&self, registry: &mut Registry, ages: Ages) {
        registry.register(
            "issuer_key_fetches",
            "Times the keys of an issuer of bearer tokens were asked for by URL",
            self.fetches.clone(),
        );
        registry.register(
            "issuer_key_fetch_failures",
            "Those that brought no keys",
            self.failures.clone(),
        );
        let what =
            "Time since the keys in use were had; nothing of an issuer whose keys were never had";
        registry.register_with_unit("issuer_keys_age", what, Unit::Seconds, ages);
    }

    /// Counts one asking.
    pub(super) fn asked(&self, issuer: &str, failed: bool) {
        let labels = IssuerLabels { issuer: issuer.to_owned() };
        self.fetches.get_or_create(&labels).inc();
        // Made either way, so that it shows 0.
        let failures = self.failures.get_or_create(&labels);
        if failed {
            failures.inc();
        }
    }
}

/// How old the keys of each issuer are, seconds.
#[derive(Debug)]
pub(super) struct Ages {
    pub(super) keyrings: Vec<Arc<Keyring>>,
    pub(super) clock: Arc<dyn Clock>,
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
