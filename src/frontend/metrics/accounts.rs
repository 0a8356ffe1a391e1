//! Requests and bytes of each account. A bounded number of accounts have counters of their own; the
//! others are counted together, so that the number of metrics is bounded too.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::EncodeMetric;
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use prometheus_client::registry::Unit;

use crate::types::AccountName;

/// The most accounts with counters of their own; others are counted as [`OTHER`].
const ACCOUNTS_MAX: usize = 100;

/// No account can have this name.
const OTHER: &str = "_other";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AccountLabels {
    account: String,
}

/// The counters of one account, or of all accounts beyond the limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic {
    /// Requests that were admitted.
    pub(crate) requests: Counter,
    /// Bytes of their bodies.
    pub(crate) received: Counter,
    /// Bytes of the bodies of their answers.
    pub(crate) sent: Counter,
}

/// The counters of all accounts; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccountMetrics(Arc<All>);

#[derive(Debug, Default)]
struct All {
    named: Mutex<BTreeMap<String, Arc<Traffic>>>,
    other: Arc<Traffic>,
}

impl AccountMetrics {
    /// Shows them in `registry`.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }

    /// The counters of an account. Callers keep them, because this takes a lock.
    pub(crate) fn of(&self, name: &AccountName) -> Arc<Traffic> {
        let mut named = self.0.named.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = named.get(name.as_str()) {
            return Arc::clone(known);
        }
        if named.len() >= ACCOUNTS_MAX {
            return Arc::clone(&self.0.other);
        }
        Arc::clone(named.entry(name.as_str().to_owned()).or_default())
    }

    /// Removes the counters of an account, which makes room for another.
    pub(crate) fn forget(&self, name: &AccountName) {
        self.0.named.lock().unwrap_or_else(PoisonError::into_inner).remove(name.as_str());
    }
}

impl Collector for AccountMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let named = self.0.named.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<(&str, &Traffic)> =
            named.iter().map(|(name, traffic)| (name.as_str(), &**traffic)).collect();
        all.push((OTHER, &self.0.other));
        type Which = fn(&Traffic) -> &Counter;
        let bytes = Some(&Unit::Bytes);
        let families: [(&str, &str, Option<&Unit>, Which); 3] = [
            ("account_requests", "Admitted requests of the account.", None, |t| &t.requests),
            ("account_received", "Bytes of bodies sent to the account.", bytes, |t| &t.received),
            ("account_sent", "Bytes of bodies sent in answers of the account.", bytes, |t| &t.sent),
        ];
        for (name, help, unit, which) in families {
            let mut metric = encoder.encode_descriptor(name, help, unit, MetricType::Counter)?;
            for (account, traffic) in &all {
                let labels = AccountLabels { account: (*account).to_owned() };
                which(traffic).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Exposition;
    use crate::telemetry::render;

    fn name(number: usize) -> AccountName {
        AccountName::new(&format!("account{number}")).unwrap()
    }

    #[test]
    fn accounts_beyond_the_limit_are_counted_together() {
        let metrics = AccountMetrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        for number in 0..ACCOUNTS_MAX + 5 {
            metrics.of(&name(number)).sent.inc_by(2);
        }
        metrics.of(&name(3)).requests.inc();
        let text = render(&registry, Exposition::Classic).unwrap();
        let lines = text.lines().filter(|line| line.starts_with("account_")).count();
        assert_eq!(lines, 3 * (ACCOUNTS_MAX + 1));
        for line in [
            "account_sent_bytes_total{account=\"account3\"} 2\n",
            "account_sent_bytes_total{account=\"_other\"} 10\n",
            "account_requests_total{account=\"account3\"} 1\n",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert!(AccountName::new(OTHER).is_err());
    }

    #[test]
    fn account_that_is_gone_makes_room() {
        let metrics = AccountMetrics::default();
        (0..ACCOUNTS_MAX).for_each(|number| drop(metrics.of(&name(number))));
        let beyond = metrics.of(&name(ACCOUNTS_MAX));
        assert!(Arc::ptr_eq(&beyond, &metrics.0.other));
        metrics.forget(&name(0));
        let now = metrics.of(&name(ACCOUNTS_MAX));
        assert!(!Arc::ptr_eq(&now, &metrics.0.other));
    }
}
