//! Splits, moves and merges partitions as the policy says, a tick at a time.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::index::engine::Partition;
use crate::index::fleet::Fleet;
use crate::index::fleet::change::is_inside_a_table;
use crate::index::load::PartitionLoad;
use crate::index::load::Plan;
use crate::index::load::Policy;
use crate::index::load::PolicyConfig;
use crate::types::HostId;
use crate::types::PartitionId;
use crate::types::RoutingKey;

/// How often load is looked at.
const TICK: Duration = Duration::from_millis(250);

impl Fleet {
    /// Changes the map as `config` says until the fleet stops.
    pub async fn balance(self: Arc<Self>, config: PolicyConfig) {
        let Ok(parts) = self.parts() else { return };
        let clock = Arc::clone(&parts.env.clock);
        let hosts: Vec<HostId> = self.hosts.iter().map(|host| host.shared.host).collect();
        let mut policy = Policy::new(config);
        let mut look = Look { requests: BTreeMap::new(), at: clock.monotonic() };
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = clock.sleep(TICK) => {}
            }
            let now = clock.monotonic();
            let opened = self.in_key_order();
            let loads = look.again(now, &opened);
            let mut asked = BTreeSet::new();
            let plans = policy.tick(now, &hosts, &loads, &mut |id| {
                asked.insert(id);
                let load = loads.iter().zip(&opened).find(|(load, _)| load.id == id);
                load.map_or_else(Vec::new, |(load, (partition, _))| {
                    let samples = partition.meter.samples(now, load.requests);
                    samples.into_iter().filter_map(border).collect()
                })
            });
            for (partition, _) in opened.iter().filter(|(p, _)| !asked.contains(&p.core.id)) {
                partition.meter.rest();
            }
            for plan in plans {
                self.carry_out(plan).await;
            }
        }
    }

    fn in_key_order(&self) -> Vec<(Arc<Partition>, HostId)> {
        let of_host = |host: &crate::index::host::Host| {
            let id = host.shared.host;
            host.opened.all().into_iter().map(move |partition| (partition, id))
        };
        let mut all: Vec<_> = self.hosts.iter().flat_map(of_host).collect();
        all.sort_by(|(a, _), (b, _)| a.core.range.low().cmp(b.core.range.low()));
        all
    }

    async fn carry_out(self: &Arc<Self>, plan: Plan) {
        let done = match &plan {
            Plan::Split(partition, keys) => self.split(*partition, keys).await,
            Plan::Move(partition, host) => self.move_to(*partition, *host).await,
            Plan::Merge(partitions) => self.merge(partitions).await,
        };
        if let Err(error) = done {
            tracing::warn!(?plan, %error, "the partition map was not changed");
        }
    }
}

/// What was counted at the last tick.
struct Look {
    requests: BTreeMap<PartitionId, u64>,
    at: Duration,
}

impl Look {
    /// The loads since then.
    fn again(&mut self, now: Duration, opened: &[(Arc<Partition>, HostId)]) -> Vec<PartitionLoad> {
        let seconds = now.saturating_sub(self.at).as_secs_f64();
        self.at = now;
        let mut counted = BTreeMap::new();
        let mut loads = Vec::new();
        for (partition, host) in opened {
            let core = &partition.core;
            let count = partition.meter.requests();
            // A partition that moved counts from nothing again.
            let before = self.requests.get(&core.id).copied().filter(|before| *before <= count);
            let new = count - before.unwrap_or(0);
            #[expect(clippy::cast_precision_loss, reason = "requests of a quarter of a second")]
            let requests = if seconds > 0.0 { new as f64 / seconds } else { 0.0 };
            counted.insert(core.id, count);
            loads.push(PartitionLoad {
                id: core.id,
                range: core.range.as_ref().clone(),
                host: *host,
                requests,
                rows: core.run_size().0,
            });
        }
        self.requests = counted;
        loads
    }
}

/// The place before the blob a request was about; `None` where no border may be. What has no routing key in it is a
/// position between blobs.
pub(super) fn border(key: Bytes) -> Option<Bytes> {
    let key = RoutingKey::of_row(&key).unwrap_or_else(|| RoutingKey::from_bytes(key));
    (!is_inside_a_table(&key)).then(|| key.as_bytes().clone())
}
