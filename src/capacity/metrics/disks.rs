//! Metrics of each disk. Values are computed at each scrape, not counted a second time.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Unit;

use crate::capacity::CapacityNode;
use crate::capacity::disk::store::Store;
use crate::env::DiskTimes;
use crate::telemetry::Registry;

/// The disks of a node as metrics, each labelled with its number in the store.
#[derive(Debug)]
pub struct DiskMetrics(Weak<CapacityNode>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfDisk {
    disk: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InState {
    disk: u64,
    state: &'static str,
}

/// The states a disk may be in.
const STATES: [&str; 5] = ["in use", "draining", "drained", "poisoned", OUT_OF_SERVICE];

/// The state of a disk that the node started without. Such a disk has only the series of its
/// states.
const OUT_OF_SERVICE: &str = "out of service";

/// Bytes of file systems, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    size: u64,
    available: u64,
}

impl DiskMetrics {
    /// Registers metrics of the disks of `node`. They disappear when the node is dropped.
    pub fn register(node: &Arc<CapacityNode>, registry: &mut Registry) {
        registry.register_collector(Box::new(Self(Arc::downgrade(node))));
    }
}

/// The space of all disks together. A file system that holds several disks counts once; its
/// available space is the least that one of these disks knows of.
fn sum(stores: &[Arc<Store>]) -> Sum {
    let mut seen = BTreeSet::new();
    let mut sum = Sum::default();
    for store in stores {
        let space = store.space.seen();
        if space.file_system.is_some_and(|system| !seen.insert(system)) {
            continue;
        }
        let same = |other: &&Arc<Store>| {
            let system = other.space.seen().file_system;
            Arc::ptr_eq(other, store) || (system.is_some() && system == space.file_system)
        };
        let least = stores.iter().filter(same).map(|other| other.space.available()).min();
        sum.size += space.total;
        sum.available += least.unwrap_or_default();
    }
    sum
}

fn state(node: &CapacityNode, store: &Store) -> &'static str {
    let drains = store.draining.load(Ordering::Acquire);
    match (store.health.poisoned(), drains) {
        (true, _) => "poisoned",
        (false, false) => "in use",
        (false, true) if node.holds_extents(store.place) => "draining",
        (false, true) => "drained",
    }
}

/// A metric's name and its help text.
struct Described {
    name: &'static str,
    help: &'static str,
}

const fn described(name: &'static str, help: &'static str) -> Described {
    Described { name, help }
}

/// One gauge for each disk.
fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    Described { name, help }: Described,
    stores: &[Arc<Store>],
    value: impl Fn(&Store) -> u64,
) -> fmt::Result {
    let unit = Unit::Bytes;
    let mut metric = encoder.encode_descriptor(name, help, Some(&unit), MetricType::Gauge)?;
    for store in stores {
        metric.encode_family(&OfDisk { disk: store.number as u64 })?.encode_gauge(&value(store))?;
    }
    Ok(())
}

/// One histogram for each disk.
fn histogram(
    encoder: &mut DescriptorEncoder<'_>,
    Described { name, help }: Described,
    stores: &[Arc<Store>],
    which: impl Fn(&DiskTimes) -> &Histogram,
) -> fmt::Result {
    let unit = Unit::Seconds;
    let mut metric = encoder.encode_descriptor(name, help, Some(&unit), MetricType::Histogram)?;
    for store in stores {
        let Some(times) = store.disk.times() else { continue };
        which(times).encode(metric.encode_family(&OfDisk { disk: store.number as u64 })?)?;
    }
    Ok(())
}

impl Collector for DiskMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(node) = self.0.upgrade() else { return Ok(()) };
        let (stores, to) = (node.stores(), &mut encoder);
        let total = sum(&stores);
        for (name, help, value) in [
            (
                "disks_size",
                "Size of the file systems of all disks. A shared one counts once.",
                total.size,
            ),
            (
                "disks_available",
                "Bytes available on the file systems of all disks. A shared one counts once.",
                total.available,
            ),
        ] {
            let unit = Unit::Bytes;
            to.encode_descriptor(name, help, Some(&unit), MetricType::Gauge)?
                .encode_gauge(&value)?;
        }
        let what = described("disk_size", "Size of the disk's file system.");
        gauge(to, what, &stores, |store| store.space.seen().total)?;
        let what = described("disk_available", "Bytes available on the disk's file system.");
        gauge(to, what, &stores, |store| store.space.available())?;
        let what =
            described("disk_used", "Bytes used on the disk's file system, also by other programs.");
        gauge(to, what, &stores, |store| {
            let space = store.space.seen();
            space.total.saturating_sub(store.space.available())
        })?;
        let what =
            described("disk_write", "Time of writes to files of the disk, syncs not included.");
        histogram(to, what, &stores, |times| &times.write)?;
        let what = described("disk_sync", "Time of syncs of files and folders of the disk.");
        histogram(to, what, &stores, |times| &times.sync)?;
        let help = "1 for the state the disk is in.";
        let mut metric = to.encode_descriptor("disk_state", help, None, MetricType::Gauge)?;
        let serving = stores.iter().map(|store| (store.number, state(&node, store)));
        let out = node.out_of_service().into_iter().map(|number| (number, OUT_OF_SERVICE));
        for (disk, now) in serving.chain(out) {
            for state in STATES {
                let labels = InState { disk: disk as u64, state };
                metric.encode_family(&labels)?.encode_gauge(&u64::from(state == now))?;
            }
        }
        Ok(())
    }
}
