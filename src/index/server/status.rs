//! The status of the server: its partitions now, and the latest changes of the map.

use std::time::Duration;

use crate::index::api::Error;
use crate::index::engine::Partition;
use crate::index::engine::RunSize;
use crate::index::engine::Status;
use crate::index::load::Counts;
use crate::index::server::IndexServer;
use crate::index::server::changes::ChangeEvent;
use crate::index::server::host::Closed;
use crate::index::server::host::Host;
use crate::types::Epoch;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::Stripe;

/// The status of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionStatus {
    /// The partition.
    pub id: PartitionId,
    /// Its epoch.
    pub epoch: Epoch,
    /// The host that serves it.
    pub host: HostId,
    /// The range its keys lie in.
    pub range: KeyRange,
    /// Its stripe of the range; `None` if it has all keys of the range.
    pub stripe: Option<Stripe>,
    /// Counts since it was opened here. A rate is the difference of two answers.
    pub counts: Counts,
    /// The longest wait of a write behind others, in the last tick.
    pub queue_age: Duration,
    /// Rows in its runs, old versions included, and those of former neighbours until compaction has
    /// separated them.
    pub rows: u64,
    /// Bytes of those runs, encoded.
    pub run_bytes: u64,
    /// Memory of its memtables.
    pub memtable_bytes: u64,
    /// Extents of its log.
    pub log_extents: u64,
    /// Whether it serves nothing until the next start, because its files are damaged or missing.
    pub quarantined: bool,
    /// Why it takes no writes (and, if it did not open, no reads); `None` if it serves.
    pub stopped: Option<String>,
}

/// How many requests a partition has had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionCounts {
    /// The partition.
    pub id: PartitionId,
    /// The host that serves it.
    pub host: HostId,
    /// The range its keys lie in.
    pub range: KeyRange,
    /// Its stripe of the range; `None` if it has all keys of the range.
    pub stripe: Option<Stripe>,
    /// Requests since it was opened here; 0 if it is not open.
    pub requests: u64,
}

impl IndexServer {
    /// The counts of all partitions of this process, open or not, in no order. It reads a few
    /// counters of each partition: [`Self::status`] also adds up sizes and sorts.
    #[must_use]
    pub fn counts(&self) -> Vec<PartitionCounts> {
        let of_host = |host: &Host| {
            let id = host.context.host;
            let open = host.opened.all().into_iter().map(move |partition| {
                let core = &partition.core;
                PartitionCounts {
                    id: core.id,
                    host: id,
                    range: core.range().clone(),
                    stripe: core.keys.stripe(),
                    requests: core.meter.counts().requests(),
                }
            });
            let closed = host.opened.closed().into_iter().map(move |one| PartitionCounts {
                id: one.descriptor.id,
                host: id,
                range: one.descriptor.keys.range().clone(),
                stripe: one.descriptor.keys.stripe(),
                requests: 0,
            });
            open.chain(closed)
        };
        self.hosts.iter().flat_map(of_host).collect()
    }

    /// All partitions of this process, open or not, in key order; stripes of one range by number.
    #[must_use]
    pub fn status(&self) -> Vec<PartitionStatus> {
        let of_host = |host: &Host| {
            let id = host.context.host;
            host.opened.all().into_iter().map(move |partition| status(&partition, id))
        };
        let mut all: Vec<PartitionStatus> = self.hosts.iter().flat_map(of_host).collect();
        for host in &self.hosts {
            let closed = host.opened.closed();
            all.extend(closed.iter().map(|one| out_of_service(one, host.context.host)));
        }
        all.sort_by(|a, b| (a.range.low(), a.stripe).cmp(&(b.range.low(), b.stripe)));
        all
    }

    /// The changes of the map after change `number`, oldest first; at most the latest thousand.
    #[must_use]
    pub fn changes_after(&self, number: u64) -> Vec<ChangeEvent> {
        self.changes.after(number)
    }
}

fn out_of_service(one: &Closed, host: HostId) -> PartitionStatus {
    let Closed { descriptor, error, .. } = one;
    let why = match one.is_quarantined() {
        true => format!("quarantined: {error}"),
        false => format!("does not open yet and is tried again: {error}"),
    };
    PartitionStatus {
        id: descriptor.id,
        epoch: descriptor.epoch,
        host,
        range: descriptor.keys.range().clone(),
        stripe: descriptor.keys.stripe(),
        counts: Counts::default(),
        queue_age: Duration::ZERO,
        rows: 0,
        run_bytes: 0,
        memtable_bytes: 0,
        log_extents: u64::try_from(descriptor.log.len()).unwrap_or(u64::MAX),
        quarantined: one.is_quarantined(),
        stopped: Some(why),
    }
}

fn status(partition: &Partition, host: HostId) -> PartitionStatus {
    let core = &partition.core;
    let wide = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let RunSize { rows, bytes: run_bytes } = core.run_size();
    PartitionStatus {
        id: core.id,
        epoch: core.epoch,
        host,
        range: core.range().clone(),
        stripe: core.keys.stripe(),
        counts: core.meter.counts(),
        queue_age: core.meter.queue_age(),
        rows,
        run_bytes,
        memtable_bytes: wide(core.table_bytes()),
        log_extents: wide(core.log_extents()),
        quarantined: false,
        stopped: match core.status() {
            Status::Serving => None,
            Status::Stopped(reason) => Some(reason),
            Status::ReadOnly(Error::Unavailable(reason)) => Some(reason),
            Status::ReadOnly(refusal) => Some(refusal.to_string()),
            Status::Lost => Some("another owner has it".to_owned()),
        },
    }
}
