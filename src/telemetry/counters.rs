//! Counters of one name with one label, whose values are known beforehand.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// A counter for each value of a label. Each counter exists from the start, with 0, so that a
/// monitor sees the first increase. Clones share the counters.
#[derive(Clone, Debug)]
pub struct Counters {
    label: &'static str,
    family: Family<[(&'static str, &'static str); 1], Counter>,
}

impl Counters {
    /// Counters for these values of `label`.
    #[must_use]
    pub fn new(label: &'static str, values: impl IntoIterator<Item = &'static str>) -> Self {
        let made = Self { label, family: Family::default() };
        values.into_iter().for_each(|value| made.add(value, 0));
        made
    }

    /// Registers them in `registry`. The exposed name ends in `_total`.
    pub fn register(&self, registry: &mut Registry, name: &str, help: &str) {
        registry.register(name, help, self.family.clone());
    }

    /// Adds to the counter of one value.
    pub fn add(&self, value: &'static str, count: u64) {
        self.family.get_or_create(&[(self.label, value)]).inc_by(count);
    }

    /// The count of one value.
    #[must_use]
    pub fn get(&self, value: &'static str) -> u64 {
        self.family.get_or_create(&[(self.label, value)]).get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Exposition;
    use crate::telemetry::render;

    #[test]
    fn every_value_shows_from_the_start_and_counts() {
        let counters = Counters::new("kind", ["one", "two"]);
        let mut registry = Registry::default();
        counters.register(&mut registry, "things", "Things");
        let shown = || render(&registry, Exposition::Classic).unwrap();
        assert!(shown().contains("things_total{kind=\"one\"} 0\n"), "{}", shown());
        counters.clone().add("two", 3);
        assert!(shown().contains("things_total{kind=\"two\"} 3\n"), "{}", shown());
        assert_eq!((counters.get("one"), counters.get("two")), (0, 3));
    }
}
