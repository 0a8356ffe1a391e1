//! The status of the server: its partitions now, and the latest changes of the map.

use std::time::Duration;

use crate::index::api::ChangeEvent;
use crate::index::api::Error;
use crate::index::api::PartitionCounts;
use crate::index::api::PartitionStatus;
use crate::index::engine::Partition;
use crate::index::engine::RunSize;
use crate::index::engine::Status;
use crate::index::load::Counts;
use crate::index::server::IndexServer;
use crate::index::server::host::Closed;
use crate::index::server::host::Host;
use crate::types::HostId;

impl IndexServer {
    /// The counts of all partitions of this process, open or not, in no order. It reads a few
    /// counters of each partition: [`Self::status`] also adds up sizes and sorts.
    #[must_use]
    pub fn counts(&self) -> Vec<PartitionCounts> {
        let of_host = |host: &Host| {
            let id = host.context.host;
            let open = host.opened.all().into_iter().map(move |partition| {
                let core = &partition.core;
                let counts = core.meter.counts();
                PartitionCounts {
                    id: core.id,
                    host: id,
                    range: core.range().clone(),
                    stripe: core.keys.stripe(),
                    requests: counts.requests(),
                    cpu: counts.cpu,
                }
            });
            let closed = host.opened.closed().into_iter().map(move |one| PartitionCounts {
                id: one.descriptor.id,
                host: id,
                range: one.descriptor.keys.range().clone(),
                stripe: one.descriptor.keys.stripe(),
                requests: 0,
                cpu: Duration::ZERO,
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
