//! Background work of a host: flush the largest memtables when memory or logs are long, merge runs,
//! do the chores of the partitions, renew read leases.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::capacity::OwnedLog;
use crate::capacity::ReadLeases;
use crate::env::Clock;
use crate::index::engine::Failed;
use crate::index::engine::HostContext;
use crate::index::engine::Lookups;
use crate::index::engine::Partition;
use crate::index::metrics::HostReport;
use crate::index::server::host::opened::Opened;
use crate::types::ExtentId;
use crate::types::PartitionId;

/// The interval of checks without a notification, and of tries after a failure.
const PAUSE: Duration = Duration::from_secs(1);
/// How often read leases are renewed: a quarter of the time for which they hold.
const LEASES_EVERY: Duration = Duration::from_millis(250);
/// How often it is looked whether logs hold a repair up.
const REPAIRED_EVERY: Duration = Duration::from_secs(2);
/// Logs that move in one round because they have no leases: a node that fails may have a copy of
/// all, and each of them needs a transaction of the coordinator.
const LEFT_AT_ONCE: usize = 64;

/// Starts the tasks. A compaction may be long, and chores may wait for the coordinator and
/// for disks; neither must delay flushes.
pub(super) fn start(
    context: &Arc<HostContext>,
    partitions: &Arc<Opened>,
    stop: &CancellationToken,
) -> Vec<JoinHandle<()>> {
    let of = || (Arc::clone(context), Arc::clone(partitions), stop.clone());
    let (flushing, compacting, busy) = (of(), of(), of());
    let reported = Arc::<Mutex<HostReport>>::default();
    let flusher = move || {
        let (context, partitions, stop) = flushing.clone();
        flusher(context, partitions, stop, Arc::clone(&reported))
    };
    let compactor = move || {
        let (context, partitions, stop) = compacting.clone();
        compactor(context, partitions, stop)
    };
    let chores = move || {
        let (context, _, stop) = busy.clone();
        chores(context, stop)
    };
    let env = &context.deps.env;
    let mut tasks = vec![
        env.supervise("index flusher", stop.clone(), flusher),
        env.supervise("index compactor", stop.clone(), compactor),
        env.supervise("index chores", stop.clone(), chores),
    ];
    if let Some(leases) = &context.deps.leases {
        let (leases, (context, partitions, stopping)) = (Arc::clone(leases), of());
        let keeper = move || {
            keep_leases(
                Arc::clone(&leases),
                Arc::clone(&context.deps.env.clock),
                (Arc::clone(&partitions), stopping.clone()),
            )
        };
        tasks.push(env.supervise("index leases", stop.clone(), keeper));
    }
    tasks
}

/// Renews the read leases of all open partitions. A log of which there is none, twice in a row,
/// moves to other members, so that no read has to wait for that. So does one whose group is to be
/// repaired: a partition at rest would hold that up.
async fn keep_leases(
    leases: Arc<dyn ReadLeases>,
    clock: Arc<dyn Clock>,
    (partitions, stop): (Arc<Opened>, CancellationToken),
) {
    let mut before = BTreeSet::new();
    let mut repaired_at = clock.monotonic();
    while !stop.is_cancelled() {
        let mut open = partitions.all();
        open.retain(|one| one.core.may_read().is_ok());
        let logs: Vec<OwnedLog> = open.iter().flat_map(|one| one.newest_logs()).collect();
        let named = if logs.is_empty() { Vec::new() } else { leases.ask(&logs).await };
        // Once may be a late answer, or a member that has not heard of a new epoch yet.
        let named: BTreeSet<ExtentId> = named.into_iter().collect();
        let mut left: Vec<ExtentId> = named.intersection(&before).copied().collect();
        if clock.monotonic() >= repaired_at + REPAIRED_EVERY {
            repaired_at = clock.monotonic();
            left.extend(leases.to_be_left(&logs));
        }
        let is_left =
            |one: &&Arc<Partition>| one.newest_logs().iter().any(|owned| left.contains(&owned.log));
        for partition in open.iter().filter(is_left).take(LEFT_AT_ONCE) {
            partition.leave_logs(&left);
        }
        before = named;
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = clock.sleep(LEASES_EVERY) => {}
        }
    }
}

async fn flusher(
    context: Arc<HostContext>,
    partitions: Arc<Opened>,
    stop: CancellationToken,
    reported: Arc<Mutex<HostReport>>,
) {
    let clock = Arc::clone(&context.deps.env.clock);
    let mut looked = None;
    while !stop.is_cancelled() {
        // A partition that cannot be flushed now must not keep the others from being flushed.
        let mut failed = BTreeSet::new();
        let now = clock.monotonic();
        let rested = looked.is_none_or(|at| now.saturating_sub(at) >= PAUSE);
        let look = context.may_be_due() || rested;
        while let Some(partition) =
            look.then(|| due(&context, &partitions.all(), &failed)).flatten()
        {
            if stop.is_cancelled() {
                return;
            }
            if let Err(error) = partition.flush().await {
                tracing::warn!(partition = %partition.core.id, ?error, "flush failed");
                failed.insert(partition.core.id);
            }
        }
        if rested {
            report(&context, &partitions, &reported);
            looked = Some(now);
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = context.wake.notified(), if failed.is_empty() => {}
            () = clock.sleep(PAUSE) => {}
        }
    }
}

/// The partition to flush next: one with a long log, or, if half of the memory is in use, the one
/// with the most bytes.
fn due(
    context: &HostContext,
    partitions: &[Arc<Partition>],
    failed: &BTreeSet<PartitionId>,
) -> Option<Arc<Partition>> {
    let served = || {
        let may =
            |one: &&Arc<Partition>| one.core.may_write_log() && !failed.contains(&one.core.id);
        partitions.iter().filter(may)
    };
    if let Some(long) = served().find(|partition| partition.core.has_long_log()) {
        return Some(Arc::clone(long));
    }
    // Not the bytes of the budget. It also counts flushed tables that a reader still holds, and a
    // flush frees none of these.
    let bytes = || served().map(|partition| (partition.core.table_bytes(), partition));
    let all: usize = bytes().map(|(bytes, _)| bytes).sum();
    if all < context.config.memtable_bytes_max / 2 {
        return None;
    }
    bytes().max_by_key(|(bytes, _)| *bytes).map(|(_, partition)| Arc::clone(partition))
}

async fn chores(context: Arc<HostContext>, stop: CancellationToken) {
    let clock = Arc::clone(&context.deps.env.clock);
    let mut retried = clock.monotonic();
    while !stop.is_cancelled() {
        context.do_due_chores(|| stop.is_cancelled()).await;
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = context.chores.added() => {}
            () = clock.sleep(PAUSE) => {}
        }
        // Once in this time, however often chores are added.
        let now = clock.monotonic();
        if now.saturating_sub(retried) >= PAUSE {
            context.chores.retry();
            retried = now;
        }
    }
}

async fn compactor(context: Arc<HostContext>, partitions: Arc<Opened>, stop: CancellationToken) {
    let clock = Arc::clone(&context.deps.env.clock);
    let work = async {
        loop {
            for partition in &partitions.all() {
                while partition.core.may_compact() && merged(partition, partition.compact()).await {
                }
            }
            if !one_at_rest(&partitions.all(), clock.as_ref()).await {
                clock.sleep(PAUSE).await;
            }
        }
    };
    // A compaction that is dropped half-way changes nothing. Its extent is released now, or when
    // the partition opens next.
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = work => {}
    }
}

/// Merges runs of the first partition at rest that needs it. Returns whether it did: then a
/// partition that is written may need a merge by now, which goes first.
async fn one_at_rest(partitions: &[Arc<Partition>], clock: &dyn Clock) -> bool {
    for partition in partitions {
        let core = &partition.core;
        if !core.is_at_rest(clock.monotonic()) || !core.may_compact_at_rest() {
            continue;
        }
        if merged(partition, partition.compact_at_rest()).await {
            return true;
        }
        // It may have given way to a change of the map, or lacked space.
        core.rest_again(clock.monotonic());
    }
    false
}

/// Whether a compaction has merged runs.
async fn merged(
    partition: &Partition,
    compaction: impl Future<Output = Result<bool, Failed>>,
) -> bool {
    compaction.await.unwrap_or_else(|error| {
        log(partition, &error);
        false
    })
}

fn log(partition: &Partition, error: &Failed) {
    tracing::warn!(partition = %partition.core.id, ?error, "compaction failed");
}

fn report(context: &HostContext, partitions: &Opened, reported: &Mutex<HostReport>) {
    let Lookups { hits, misses } = context.cache.lookups();
    let partitions = partitions.all();
    let now = HostReport {
        hits,
        misses,
        partitions: partitions.len() as u64,
        rows: partitions.iter().map(|partition| partition.core.run_size().rows).sum(),
        memtable_bytes: context.budget.used() as u64,
    };
    let mut reported = reported.lock().unwrap_or_else(PoisonError::into_inner);
    context.deps.metrics.report(&mut reported, now);
}
