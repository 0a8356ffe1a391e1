//! Measures the load of all partitions and splits, moves and merges them as the policy says, a tick
//! at a time.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use serde_json::json;

use crate::audit_log::Change;
use crate::audit_log::Entry;
use crate::audit_log::Principal;
use crate::audit_log::Thing;
use crate::env::Env;
use crate::index::engine::Partition;
use crate::index::load::Plan;
use crate::index::load::Policy;
use crate::index::load::PolicyConfig;
use crate::index::load::TICK;
use crate::index::server::ChangeError;
use crate::index::server::IndexServer;
use crate::index::server::change::Changed;
use crate::index::server::change::is_inside_a_table;
use crate::index::server::measure::LoadSample;
use crate::types::HostId;
use crate::types::PartitionId;
use crate::types::RoutingKey;

impl IndexServer {
    /// Begins [`Self::balance`].
    pub fn start_balance(self: Arc<Self>, config: Option<PolicyConfig>) {
        let Ok(deps) = self.deps() else { return };
        let env = Env { tasks: self.control.clone(), ..deps.env.clone() };
        let stop = self.stop.clone();
        let balance = move || Arc::clone(&self).balance(config);
        drop(env.supervise("index balancer", stop, balance));
    }

    /// Measures load, and changes the map as `config` says, until the server stops; without it
    /// nothing is changed.
    pub async fn balance(self: Arc<Self>, config: Option<PolicyConfig>) {
        let Ok(deps) = self.deps() else { return };
        let clock = Arc::clone(&deps.env.clock);
        let hosts: Vec<HostId> = self.hosts.iter().map(|host| host.context.host).collect();
        let mut policy = config.map(Policy::new);
        let mut sample = LoadSample::new(clock.monotonic());
        // Thousands of partitions are put in order only when they have changed.
        let mut known = None;
        let mut warm = BTreeSet::new();
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = clock.sleep(TICK) => {}
            }
            let now = clock.monotonic();
            let versions: Vec<u64> = self.hosts.iter().map(|host| host.opened.version()).collect();
            if known.as_ref() != Some(&versions) {
                sample.follow(self.in_key_order());
                known = Some(versions);
            }
            sample.take(now, &self.claims.taken());
            deps.metrics.sample(&sample.added, sample.loads().iter().map(|load| load.load));
            let Some(policy) = &mut policy else { continue };
            let mut asked = BTreeSet::new();
            let plans = policy.tick(now, &hosts, sample.loads(), &mut |id| {
                asked.insert(id);
                let found = sample.of(id);
                let samples = found.map(|(of, meter)| meter.samples(now, of.load.requests()));
                samples.into_iter().flatten().filter_map(border).collect()
            });
            for cooled in warm.difference(&asked) {
                if let Some((_, meter)) = sample.of(*cooled) {
                    meter.rest();
                }
            }
            warm = asked;
            for plan in plans {
                // Looking goes on: a burst does not wait for a merge.
                let change = Arc::clone(&self).carry_out(plan);
                drop(self.control.spawn("partition change", change));
            }
        }
    }

    fn in_key_order(&self) -> Vec<(Arc<Partition>, HostId)> {
        let of_host = |host: &crate::index::server::host::Host| {
            let id = host.context.host;
            host.opened.all().into_iter().map(move |partition| (partition, id))
        };
        let mut all: Vec<_> = self.hosts.iter().flat_map(of_host).collect();
        all.sort_by_cached_key(|(one, _)| (one.core.range().low().clone(), one.core.keys.stripe()));
        all
    }

    pub(super) async fn carry_out(self: Arc<Self>, plan: Plan) {
        let done = match &plan {
            Plan::Split(partition, keys) => self.split(*partition, keys).await,
            Plan::SplitEvenly(partition, ways) => self.split_evenly(*partition, *ways).await,
            Plan::Stripe(partition, range, stripes) => {
                self.stripe_part(*partition, range.clone(), *stripes).await
            }
            Plan::Move(partition, host) => self.move_to(*partition, *host).await,
            Plan::Merge(partitions) => self.merge(partitions).await,
        };
        match done {
            Ok(_) => self.tell_of(&plan, None),
            Err(error) => {
                tracing::warn!(?plan, %error, "the partition map was not changed as planned");
                // It may have been all the same.
                if matches!(error, ChangeError::Failed(_)) {
                    self.tell_of(&plan, Some("unknown"));
                } else if matches!(error, ChangeError::PartlyDone(_)) {
                    self.tell_of(&plan, Some("partly"));
                }
            }
        }
    }

    /// Tells the audit log what was done, or may have been: without an outcome all of it was done.
    fn tell_of(&self, plan: &Plan, outcome: Option<&str>) {
        let Some(log) = self.audit_log.get().filter(|log| log.is_on()) else { return };
        let one = |partition: &PartitionId| partition.get().to_string();
        let (operation, resource, mut detail) = match plan {
            Plan::Split(id, keys) => ("SplitPartition", one(id), json!({ "ways": keys.len() + 1 })),
            Plan::SplitEvenly(id, ways) => ("SplitPartition", one(id), json!({ "ways": ways })),
            Plan::Stripe(id, _, stripes) => {
                ("StripePartition", one(id), json!({ "stripes": stripes }))
            }
            Plan::Move(id, host) => ("MovePartition", one(id), json!({ "host": host.get() })),
            Plan::Merge(ids) => {
                let all: Vec<String> = ids.iter().map(one).collect();
                ("MergePartitions", all.join(","), Value::Null)
            }
        };
        if let Some(outcome) = outcome {
            detail["outcome"] = outcome.into();
        }
        let entry = Entry {
            principal: Principal::Node { task: "index balancer" },
            operation: operation.into(),
            resource: Some(resource),
            ..Entry::default()
        };
        log.change_now(&entry, &Change { of: Thing::PartitionMap, detail });
    }

    /// Splits a partition into as many parts with about the same number of rows.
    async fn split_evenly(
        self: &Arc<Self>,
        partition: PartitionId,
        ways: usize,
    ) -> Result<Changed, ChangeError> {
        let keys = self.row_cuts(partition, ways).await?;
        self.split(partition, &keys).await
    }
}

/// The place before the blob a request was about; `None` where no border may be. What has no
/// routing key in it is a position between blobs.
pub(super) fn border(key: Bytes) -> Option<Bytes> {
    let key = RoutingKey::of_row(&key).unwrap_or_else(|| RoutingKey::from_bytes(key));
    (!is_inside_a_table(&key)).then(|| key.as_bytes().clone())
}
