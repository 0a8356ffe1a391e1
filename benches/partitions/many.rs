//! A store split into thousands of partitions, at rest and under a light load.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use blockyard::audit_log::AuditLog;
use blockyard::coordinator::Op;
use blockyard::index::Guard;
use blockyard::index::PartitionMap;
use blockyard::index::Read;
use blockyard::index::ReadBlob;
use blockyard::manager::Manager;
use blockyard::manager::PolicyConfig;
use blockyard::manager::Setup;
use blockyard::types::PartitionId;
use blockyard::types::Revision;
use blockyard::types::RoutingKey;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;
use indicatif::ProgressBar;

use crate::args::Args;
use crate::bed::Bed;
use crate::process;
use crate::report::Section;
use crate::report::quantile;
use crate::rows;

/// The folder of the store, on which the next scene starts a server.
pub(crate) const FOLDER: &str = "many";
/// The most children of a split.
const WAYS: u64 = 16;
/// Concurrent requests of the light load.
const TOGETHER: usize = 16;
/// How often each timed action is repeated.
const TIMES: u64 = 50;

/// Runs the scene.
pub(crate) async fn run(args: &Args, folder: &Path) -> Result<Section, String> {
    let folder = folder.join(FOLDER);
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let bed = Bed::open(&folder).await?;
    rows::fill(&bed, args.many_rows, "the store").await?;
    // As in a node, but only after the store is filled. Ascending names would cause stripes,
    // which are not split further.
    let manager = Manager::start(Setup {
        index: Arc::clone(&bed.index),
        env: bed.env.clone(),
        policy: Some(PolicyConfig::default()),
        audit_log: AuditLog::default(),
    });
    let about = format!(
        "One process, {} rows, 1 partition and then {}: splits into up to 16 one after the other; idle with the balancer running; \
         {} requests, half reads, {TOGETHER} at a time, each to the next of all partitions.",
        args.many_rows, args.count, args.requests
    );
    let columns = vec!["1 partition".to_owned(), format!("{} partitions", args.count)];
    let mut section = Section { about, columns, ..Section::default() };
    let one = Measured::take(args, &bed, &folder).await?;
    let start = Instant::now();
    let pauses = grow(args, &bed).await?;
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("{} partitions after {seconds:.0} s", bed.index.partitions());
    let all = Measured::take(args, &bed, &folder).await?;
    let mut row =
        |what: &str, of: &dyn Fn(&Measured) -> f64| section.row(what, &[of(&one), of(&all)]);
    row("work in the background until it is at rest, s", &|m| m.settled.0);
    row("CPU of that work, s", &|m| m.settled.1);
    row("resident memory, MiB", &|m| m.at_rest.resident);
    row("resident memory after the load, MiB", &|m| m.after.resident);
    row("open files", &|m| m.at_rest.descriptors);
    row("open files after the load", &|m| m.after.descriptors);
    row("on disk, MiB", &|m| m.disk);
    row("idle CPU, % of a core", &|m| m.idle);
    row("a coordinator transaction, p50, ms", &|m| quantile(&m.transactions, 0.5));
    row("reading the whole map, p50, ms", &|m| quantile(&m.maps, 0.5));
    row("first request after a split elsewhere, p50, ms", &|m| quantile(&m.stale, 0.5));
    row("light load, requests/s", &|m| m.rate);
    row("light load, p50, ms", &|m| quantile(&m.requests, 0.5));
    row("light load, p99, ms", &|m| quantile(&m.requests, 0.99));
    row("pause of a split, p50, ms", &|m| quantile(&m.pauses, 0.5));
    row("pause of a split, p99, ms", &|m| quantile(&m.pauses, 0.99));
    section.row("making them, s", &[0.0, seconds]);
    section.row("pause of those splits, p50, ms", &[0.0, quantile(&pauses, 0.5)]);
    section.row("pause of those splits, p99, ms", &[0.0, quantile(&pauses, 0.99)]);
    let start = Instant::now();
    manager.stop().await;
    bed.close().await;
    section.row("stopping, s", &[0.0, start.elapsed().as_secs_f64()]);
    Ok(section)
}

/// The figures of a store at rest, then under load.
struct Measured {
    settled: (f64, f64),
    at_rest: process::Usage,
    after: process::Usage,
    disk: f64,
    idle: f64,
    transactions: Vec<f64>,
    maps: Vec<f64>,
    stale: Vec<f64>,
    pauses: Vec<f64>,
    requests: Vec<f64>,
    rate: f64,
}

impl Measured {
    async fn take(args: &Args, bed: &Bed, folder: &Path) -> Result<Self, String> {
        // Waits for work in the background that the last step caused.
        let at_most = args.settle;
        let settling = move || process::settle(std::process::id(), at_most);
        let settled = bed.env.tasks.spawn_blocking("settle", settling).await;
        let settled = settled.map_err(|e| e.to_string())?;
        let at_rest = process::own();
        bed.env.clock.sleep(Duration::from_secs(args.idle)).await;
        let idle = (process::own().cpu - at_rest.cpu) / args.idle.max(1) as f64 * 100.0;
        let disk = process::disk_mib(folder);
        let coordinator = bed.storage.coordinator.as_ref();
        let (mut transactions, mut maps) = (Vec::new(), Vec::new());
        for number in 0..TIMES {
            let start = Instant::now();
            let put = Op::Put(Bytes::from_static(b"bench/probe"), number.to_string().into());
            coordinator.txn(&[], &[put]).await.map_err(|e| e.to_string())?;
            transactions.push(milliseconds(start));
            let start = Instant::now();
            PartitionMap::load(coordinator).await.map_err(|e| e.to_string())?;
            maps.push(milliseconds(start));
        }
        let (requests, rate) = light_load(args, bed).await?;
        let after = process::own();
        let (stale, pauses) = after_splits(args, bed).await?;
        Ok(Self {
            settled,
            at_rest,
            after,
            disk,
            idle,
            transactions,
            maps,
            stale,
            pauses,
            requests,
            rate,
        })
    }
}

/// Splits until there are enough partitions. Returns the pauses, milliseconds.
async fn grow(args: &Args, bed: &Bed) -> Result<Vec<f64>, String> {
    let bar = ProgressBar::new(args.count);
    let mut queue: VecDeque<(PartitionId, u64, u64)> = VecDeque::new();
    let status = bed.index.status();
    // The blobs of each existing partition; the first measurement may have split it.
    let borders: Vec<u64> = status.iter().map(|p| blob_at(args, p.range.low())).collect();
    for (place, partition) in status.iter().enumerate() {
        let (from, to) = (borders.get(place).copied(), borders.get(place + 1).copied());
        queue.push_back((partition.id, from.unwrap_or(0), to.unwrap_or(args.many_rows)));
    }
    let mut pauses = Vec::new();
    let mut count = queue.len() as u64;
    while count < args.count {
        let (partition, from, to) = queue.pop_front().ok_or("nothing to split")?;
        let ways = WAYS.min(args.count - count + 1).min(to - from);
        if ways < 2 {
            queue.push_back((partition, from, to));
            continue;
        }
        let bound = |part: u64| from + (to - from) * part / ways;
        let keys: Vec<RoutingKey> = (1..ways).map(|part| rows::border(bound(part))).collect();
        let split = bed.index.split(partition, &keys).await;
        let split = split.map_err(|e| format!("a split failed: {e}"))?;
        pauses.push(split.pause.as_secs_f64() * 1_000.0);
        let children = split.partitions.iter().zip(0..);
        queue.extend(children.map(|(id, part)| (*id, bound(part), bound(part + 1))));
        count += ways - 1;
        bar.set_position(count);
    }
    bar.finish_and_clear();
    Ok(pauses)
}

/// The first blob at or after a key.
fn blob_at(args: &Args, key: &RoutingKey) -> u64 {
    let (mut low, mut high) = (0, args.many_rows);
    while low < high {
        let middle = low.midpoint(high);
        if rows::border(middle) < *key { low = middle + 1 } else { high = middle }
    }
    low
}

/// Reads and writes over all partitions. Returns the milliseconds of each, and the requests per
/// second.
async fn light_load(args: &Args, bed: &Bed) -> Result<(Vec<f64>, f64), String> {
    // The step does not divide the number of rows, so consecutive requests have distant keys.
    let step = args.many_rows / 1_618 * 1_000 + 1;
    let request = |number: u64| async move {
        let start = Instant::now();
        let blob = number.wrapping_mul(step) % args.many_rows;
        if number.is_multiple_of(2) {
            rows::write(&bed.router, blob).await.map_err(|e| format!("a write failed: {e}"))?;
        } else {
            let key = rows::key(blob);
            let routing = RoutingKey::blob(&key);
            let read = ReadBlob {
                key,
                revision: Revision::Current,
                guard: Guard::default(),
                range: None,
                pieces: true,
            };
            let read = bed.router.read(routing.as_bytes(), Read::Blob(read)).await;
            read.map_err(|e| format!("a read failed: {e}"))?;
        }
        Ok::<f64, String>(milliseconds(start))
    };
    let start = Instant::now();
    let done: Vec<Result<f64, String>> =
        stream::iter(0..args.requests).map(request).buffer_unordered(TOGETHER).collect().await;
    let rate = args.requests as f64 / start.elapsed().as_secs_f64();
    Ok((done.into_iter().collect::<Result<_, _>>()?, rate))
}

/// Splits a partition and immediately writes to it, a few times. Returns the milliseconds of the
/// writes, which find a stale map, and the pauses.
async fn after_splits(args: &Args, bed: &Bed) -> Result<(Vec<f64>, Vec<f64>), String> {
    let (mut taken, mut pauses) = (Vec::new(), Vec::new());
    // A blob at which the store was not split before.
    let beside = if bed.index.partitions() > 1 { 4 } else { 3 };
    for time in 0..TIMES {
        let blob = args.many_rows * (2 * time + 1) / (2 * TIMES) + beside;
        let status = bed.index.status();
        let owner = status.iter().find(|p| p.range.contains(rows::border(blob).as_bytes()));
        let owner = owner.ok_or("a blob without a partition")?;
        if *owner.range.low() == rows::border(blob) {
            continue;
        }
        let split = bed.index.split(owner.id, &[rows::border(blob)]).await;
        let split = split.map_err(|e| format!("a split failed: {e}"))?;
        pauses.push(split.pause.as_secs_f64() * 1_000.0);
        let start = Instant::now();
        rows::write(&bed.router, blob).await.map_err(|e| e.to_string())?;
        taken.push(milliseconds(start));
    }
    Ok((taken, pauses))
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1_000.0
}
