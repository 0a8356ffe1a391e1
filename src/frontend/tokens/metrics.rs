//! Counts fetches of keys at a URL. Every name is defined here.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// The issuer of the keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct IssuerLabels {
    pub(super) issuer: String,
}

/// Counters of all issuers.
#[derive(Clone, Debug, Default)]
pub(super) struct Metrics {
    fetches: Family<IssuerLabels, Counter>,
    failures: Family<IssuerLabels, Counter>,
}

impl Metrics {
    /// Registers the metrics.
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "issuer_key_fetches",
            "Fetches of the keys of an issuer of bearer tokens by URL",
            self.fetches.clone(),
        );
        registry.register(
            "issuer_key_fetch_failures",
            "Failed fetches of the keys of an issuer",
            self.failures.clone(),
        );
    }

    /// Counts one fetch.
    pub(super) fn count_fetch(&self, issuer: &str, failed: bool) {
        let labels = IssuerLabels { issuer: issuer.to_owned() };
        self.fetches.get_or_create(&labels).inc();
        // Created in any case, so that it shows 0.
        let failures = self.failures.get_or_create(&labels);
        if failed {
            failures.inc();
        }
    }
}
