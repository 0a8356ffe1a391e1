//! The load of all partitions together, and of the busiest one. A label for each partition would be
//! too many.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::index::load::Class;
use crate::index::load::Counts;
use crate::index::load::Load;
use crate::telemetry::Counters;

/// Updated at every sample, eight times a second.
#[derive(Debug)]
pub(super) struct LoadMetrics {
    requests: Counters,
    refused: Counter,
    cpu: Counter<f64, AtomicU64>,
    queue_age: Histogram,
    busiest_requests: Gauge<f64, AtomicU64>,
    busiest_cpu: Gauge<f64, AtomicU64>,
    busiest_log: Gauge<f64, AtomicU64>,
}

impl Default for LoadMetrics {
    fn default() -> Self {
        Self {
            requests: Counters::new("class", Class::ALL.map(Class::word)),
            refused: Counter::default(),
            cpu: Counter::default(),
            // A quarter of a millisecond to two seconds.
            queue_age: Histogram::new(exponential_buckets(0.000_25, 2.0, 14)),
            busiest_requests: Gauge::default(),
            busiest_cpu: Gauge::default(),
            busiest_log: Gauge::default(),
        }
    }
}

impl LoadMetrics {
    pub(super) fn register(&self, index: &mut Registry) {
        let help = "Requests received, by class: read (of one row or blob), write, list";
        self.requests.register(index, "requests", help);
        let help = "Writes refused because too many waited, or for too long";
        index.register("refused_writes", help, self.refused.clone());
        let help = "Processor time of commits and reads of partitions";
        index.register("cpu_seconds", help, self.cpu.clone());
        let help = "Eight times a second: the longest time that a write of any partition has \
                    waited in its queue";
        index.register("queue_age_seconds", help, self.queue_age.clone());
        let help = "Requests per second of the partition with the most requests";
        index.register("busiest_requests_per_second", help, self.busiest_requests.clone());
        let help = "Processors used by the partition that uses most: 1 is one whole processor";
        index.register("busiest_cpu", help, self.busiest_cpu.clone());
        let help = "Log bytes per second of the partition that writes most";
        index.register("busiest_log_bytes_per_second", help, self.busiest_log.clone());
    }

    /// Adds what all partitions together did since the last sample, and notes the loads of each.
    pub(super) fn sample(&self, added: &Counts, loads: impl Iterator<Item = Load>) {
        let counts = [added.reads, added.writes, added.lists];
        for (class, count) in Class::ALL.into_iter().zip(counts) {
            self.requests.add(class.word(), count);
        }
        self.refused.inc_by(added.refused);
        self.cpu.inc_by(added.cpu.as_secs_f64());
        let mut most = Load::default();
        let mut requests = 0.0_f64;
        for load in loads {
            requests = requests.max(load.requests());
            most.cpu = most.cpu.max(load.cpu);
            most.log_bytes = most.log_bytes.max(load.log_bytes);
            most.queue_age = most.queue_age.max(load.queue_age);
        }
        self.queue_age.observe(most.queue_age.as_secs_f64());
        self.busiest_requests.set(requests);
        self.busiest_cpu.set(most.cpu);
        self.busiest_log.set(most.log_bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn totals_add_up_and_the_busiest_is_the_most_of_the_last_look() {
        let metrics = LoadMetrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let cpu = Duration::from_millis(500);
        let added = Counts { reads: 3, writes: 2, lists: 1, refused: 4, cpu, ..Counts::default() };
        let loads = [
            Load { writes: 9.0, cpu: 0.25, ..Load::default() },
            Load { lists: 7.0, cpu: 0.5, log_bytes: 12.0, ..Load::default() },
        ];
        metrics.sample(&added, loads.into_iter());
        metrics.sample(&added, loads.into_iter());
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "requests_total{class=\"read\"} 6",
            "requests_total{class=\"write\"} 4",
            "requests_total{class=\"list\"} 2",
            "refused_writes_total 8",
            "cpu_seconds_total 1.0",
            "queue_age_seconds_count 2",
            "busiest_requests_per_second 9.0",
            "busiest_cpu 0.5",
            "busiest_log_bytes_per_second 12.0",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }
}
