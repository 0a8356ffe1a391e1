//! Splits partitions that are hot or large, a tick at a time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::index::engine::Partition;
use crate::index::fleet::Fleet;
use crate::index::fleet::change::is_inside_a_table;
use crate::index::load::PartitionLoad;
use crate::index::load::Policy;
use crate::index::load::PolicyConfig;
use crate::types::PartitionId;
use crate::types::RoutingKey;

/// How often load is looked at.
const TICK: Duration = Duration::from_millis(250);

impl Fleet {
    /// Splits what `config` calls hot until the fleet stops.
    pub async fn balance(self: Arc<Self>, config: PolicyConfig) {
        let Ok(parts) = self.parts() else { return };
        let clock = Arc::clone(&parts.env.clock);
        let mut policy = Policy::new(config);
        let mut counted: BTreeMap<PartitionId, u64> = BTreeMap::new();
        let mut last = clock.monotonic();
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = clock.sleep(TICK) => {}
            }
            let now = clock.monotonic();
            let opened: Vec<_> = self.hosts.iter().flat_map(|host| host.opened.all()).collect();
            let seconds = now.saturating_sub(last).as_secs_f64();
            let loads: Vec<PartitionLoad> = opened
                .iter()
                .map(|partition| {
                    let before = counted.get(&partition.core.id).copied().unwrap_or(0);
                    load(partition, before, seconds, now)
                })
                .collect();
            counted = opened.iter().map(|p| (p.core.id, p.meter.requests())).collect();
            last = now;
            for plan in policy.tick(now, &loads) {
                if let Err(error) = self.split(plan.partition, &plan.keys).await {
                    tracing::warn!(partition = %plan.partition, %error, "not split");
                }
            }
        }
    }
}

fn load(partition: &Partition, before: u64, seconds: f64, now: Duration) -> PartitionLoad {
    let new = partition.meter.requests().saturating_sub(before);
    #[expect(clippy::cast_precision_loss, reason = "requests of a quarter of a second")]
    let requests = if seconds > 0.0 { new as f64 / seconds } else { 0.0 };
    let samples = partition.meter.samples(now, requests);
    PartitionLoad {
        id: partition.core.id,
        range: partition.core.range.as_ref().clone(),
        requests,
        rows: partition.core.run_size().0,
        samples: samples.into_iter().filter_map(border).collect(),
    }
}

/// The place before the blob a request was about; `None` where no border may be. What has no routing key in it is a
/// position between blobs.
fn border(key: Bytes) -> Option<Bytes> {
    let key = RoutingKey::of_row(&key).unwrap_or_else(|| RoutingKey::from_bytes(key));
    (!is_inside_a_table(&key)).then(|| key.as_bytes().clone())
}
