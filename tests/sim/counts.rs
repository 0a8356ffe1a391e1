//! Counts of events in the histories. A simulation without a flush proves nothing about flushes.

use std::collections::BTreeMap;
use std::sync::Mutex;

use blockyard::telemetry::Registry;
use prometheus_client::encoding::text::encode;

/// Sums over sessions and seeds, by name.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<BTreeMap<String, u64>>);

impl Counts {
    pub(crate) fn add(&self, name: &str, count: u64) {
        *self.0.lock().unwrap().entry(name.to_owned()).or_default() += count;
    }

    /// Adds the counters of a session's metrics.
    pub(crate) fn add_metrics(&self, registry: &Registry) {
        let mut text = String::new();
        encode(&mut text, registry).unwrap();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some((name, value)) = line.split_once("_total ") {
                self.add(name, value.parse().unwrap_or(0));
            }
        }
    }

    /// The names of events that never happened.
    pub(crate) fn missing<'a>(&self, names: &[&'a str]) -> Vec<&'a str> {
        let counts = self.0.lock().unwrap();
        names.iter().filter(|name| counts.get(**name).is_none_or(|n| *n == 0)).copied().collect()
    }
}
