use std::collections::BTreeSet;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use serde_json::Value;
use serde_json::json;

use super::file::LogFile;
use super::line;
use super::metrics::LineCounts;
use super::metrics::Metrics;
use super::queue::AuditLog;
use super::queue::Queue;
use super::writer;
use super::writer::Sink;
use super::*;
use crate::env::Disk;
use crate::env::Fault;
use crate::env::Faults;
use crate::env::SimClock;
use crate::env::SimDisk;
use crate::env::Tasks;
use crate::types::Timestamp;

const NAME: &str = "audit.jsonl";
const MIB: u64 = 1 << 20;
/// One in a million operations, all of them.
const ALWAYS: u32 = 1_000_000;

async fn text(disk: &Arc<dyn Disk>, name: &str) -> String {
    let file = disk.open(name).await.unwrap();
    let len = usize::try_from(file.len().await.unwrap()).unwrap();
    String::from_utf8(file.read_at(0, len).await.unwrap().to_vec()).unwrap()
}

async fn open(disk: &Arc<dyn Disk>, bytes_max: u64, files: u32) -> LogFile {
    LogFile::open(Arc::clone(disk), NAME.to_owned(), bytes_max, files).await.unwrap()
}

fn lines(numbers: std::ops::Range<u32>) -> VecDeque<Bytes> {
    numbers.map(|number| Bytes::from(format!("{{\"n\":{number}}}\n"))).collect()
}

/// The numbers of all lines, oldest file first.
async fn numbers(disk: &Arc<dyn Disk>) -> Vec<u64> {
    let mut names = disk.list("").await.unwrap();
    names.sort_by_key(|name| {
        let number = name.rsplit('.').next().and_then(|end| end.parse().ok());
        std::cmp::Reverse(number.unwrap_or(0_u32))
    });
    let mut found = Vec::new();
    for name in names {
        for line in text(disk, &name).await.lines().filter(|line| !line.is_empty()) {
            let line: Value = serde_json::from_str(line).unwrap();
            found.extend(line["n"].as_u64());
        }
    }
    found
}

fn entry(operation: &'static str) -> Entry {
    Entry { operation: operation.into(), ..Entry::default() }
}

fn lost(changes: u64, requests: u64) -> LineCounts {
    LineCounts { changes, requests }
}

/// The log over a simulated disk.
struct Rig {
    log: AuditLog,
    queue: Arc<Queue>,
    metrics: Metrics,
}

impl Rig {
    async fn new(disk: &Arc<dyn Disk>) -> (Self, LogFile) {
        let metrics = Metrics::default();
        let clock = Arc::new(SimClock::new());
        let queue = Arc::new(Queue::new(clock, metrics.clone(), true));
        let log = AuditLog::new(Arc::clone(&queue));
        (Self { log, queue, metrics }, open(disk, MIB * 64, 4).await)
    }
}

#[tokio::test]
async fn last_line_that_a_crash_tore_is_ended() {
    let machine = SimDisk::new(1, 64 * MIB);
    let disk = machine.disk();
    let torn = disk.create(NAME).await.unwrap();
    torn.write_at(0, vec![Bytes::from_static(b"{\"n\":1}\n{\"n\":")]).await.unwrap();
    let mut log = open(&disk, MIB, 2).await;
    log.write(&mut lines(2..4), true).await.unwrap();
    assert_eq!(text(&disk, NAME).await, "{\"n\":1}\n{\"n\":\n{\"n\":2}\n{\"n\":3}\n");
    let mut again = open(&disk, MIB, 2).await;
    again.write(&mut lines(4..5), false).await.unwrap();
    assert!(text(&disk, NAME).await.ends_with("{\"n\":3}\n{\"n\":4}\n"));
}

#[tokio::test]
async fn durable_lines_survive_power_loss() {
    let machine = SimDisk::new(1, 64 * MIB);
    let mut log = open(&machine.disk(), MIB, 2).await;
    log.write(&mut lines(0..10), true).await.unwrap();
    let disk = machine.restart_after_power_cut();
    assert_eq!(numbers(&disk).await, (0..10).collect::<Vec<_>>());
}

#[tokio::test]
async fn full_files_are_moved_aside_and_the_oldest_is_removed() {
    let machine = SimDisk::new(1, 64 * MIB);
    let disk = machine.disk();
    let mut log = open(&disk, 100, 4).await;
    for number in 0..100 {
        log.write(&mut lines(number..number + 1), false).await.unwrap();
    }
    let names = disk.list("").await.unwrap();
    let wanted = ["", ".1", ".2", ".3"].map(|end| format!("{NAME}{end}"));
    assert_eq!(names, wanted);
    for name in &names {
        assert!(text(&disk, name).await.len() <= 100);
    }
    let kept = numbers(&disk).await;
    let first = *kept.first().unwrap();
    assert_eq!(kept, (first..100).collect::<Vec<_>>(), "the newest, in order, without a gap");
    assert!(first > 0 && kept.len() > 20, "{first}");
}

#[tokio::test(start_paused = true)]
async fn each_line_is_there_once_whatever_fails_on_the_way() {
    for fault in [Fault::WriteError, Fault::Full, Fault::SyncError] {
        let mut struck = 0;
        loop {
            let machine = SimDisk::new(struck, 64 * MIB);
            let disk = machine.disk();
            let mut log = open(&disk, 100, 20).await;
            machine.fail_once(fault, struck);
            for number in 0..60 {
                let mut batch = lines(number..number + 1);
                while log.write(&mut batch, number % 5 == 0).await.is_err() {}
            }
            let wanted: Vec<u64> = (0..60).collect();
            assert_eq!(numbers(&disk).await, wanted, "{fault:?} after {struck}");
            if machine.faults_left() > 0 {
                break;
            }
            struck += 1;
        }
        assert!(struck > 10, "{fault:?} struck at {struck} places");
    }
}

#[tokio::test(start_paused = true)]
async fn lines_whose_sync_failed_are_written_again() {
    // A failed sync may lose what it should have written, although later syncs succeed.
    for bytes_max in [MIB, 100] {
        for seed in 0..40 {
            let machine = SimDisk::new(seed, 64 * MIB);
            let mut log = open(&machine.disk(), bytes_max, 20).await;
            log.write(&mut lines(0..3), true).await.unwrap();
            machine.fail_once(Fault::SyncError, 0);
            let mut batch = lines(3..23);
            let failed = log.write(&mut batch, true).await.is_err();
            assert_eq!(failed, !batch.is_empty(), "a line is kept until it is durable");
            while log.write(&mut batch, true).await.is_err() {}
            let disk = machine.restart_after_power_cut();
            let found: BTreeSet<u64> = numbers(&disk).await.into_iter().collect();
            assert_eq!(found, (0..23).collect(), "seed {seed}, files of {bytes_max}");
        }
    }
}

#[tokio::test]
async fn file_that_others_cut_is_followed() {
    let machine = SimDisk::new(1, 64 * MIB);
    let disk = machine.disk();
    let mut log = open(&disk, MIB, 2).await;
    log.write(&mut lines(0..5), false).await.unwrap();
    disk.open(NAME).await.unwrap().set_len(0).await.unwrap();
    log.write(&mut lines(5..7), false).await.unwrap();
    assert_eq!(text(&disk, NAME).await, "{\"n\":5}\n{\"n\":6}\n");
}

#[tokio::test(start_paused = true)]
async fn full_disk_stops_nobody_and_dropped_lines_are_counted_in_the_log() {
    let machine = SimDisk::new(1, 64 * MIB);
    let disk = machine.disk();
    let (rig, file) = Rig::new(&disk).await;
    machine.set_faults(Faults { full: ALWAYS, ..Faults::default() });
    let tasks = Tasks::new();
    let run = writer::run(Arc::clone(&rig.queue), Sink::File(file));
    let writing = tasks.spawn("audit log", run);
    let long = Entry { resource: Some("x".repeat(8000)), ..entry("GetBlob") };
    let sent = 3000;
    for _ in 0..sent {
        rig.log.request(&long);
    }
    let requests = rig.metrics.lines_lost().requests;
    assert!(requests > 1000 && requests < sent, "{requests}");
    // Room that requests cannot take: changes need not wait yet.
    let change = Change { of: Thing::Container, detail: Value::Null };
    let before = rig.queue.clock.monotonic();
    let elapsed = || rig.queue.clock.monotonic() - before;
    rig.log.change(&entry("CreateContainer"), &change).await;
    assert_eq!(elapsed(), Duration::ZERO);
    let big = Entry { resource: Some("y".repeat(100_000)), ..entry("DeleteContainer") };
    for _ in 0..20 {
        rig.log.change(&big, &change).await;
    }
    assert!(elapsed() >= CHANGE_WAIT, "some waited");
    let lost = rig.metrics.lines_lost();
    assert_eq!(lost.requests, requests);
    assert!(lost.changes > 0 && lost.changes < 20, "{lost:?}");
    // A change that waits gets the room that is made meanwhile.
    let log = rig.log.clone();
    let work = async move { log.change(&big, &change).await };
    let waiting = tasks.spawn("change", work);
    tokio::time::sleep(CHANGE_WAIT / 4).await;
    machine.set_faults(Faults::default());
    waiting.await.unwrap();
    rig.queue.close();
    writing.await.unwrap();
    assert_eq!(rig.metrics.lines_lost(), lost);
    let text = text(&disk, NAME).await;
    let all: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |kind: &str| all.iter().filter(|line| line["kind"] == kind).count() as u64;
    assert_eq!(count("request"), sent - requests);
    assert_eq!(count("change"), 22 - lost.changes);
    let losses: Vec<_> = all.iter().filter(|line| line["kind"] == "lost").collect();
    let sum = |what: &str| losses.iter().filter_map(|line| line[what].as_u64()).sum::<u64>();
    assert_eq!(LineCounts { changes: sum("changes"), requests: sum("requests") }, lost);
}

#[tokio::test(start_paused = true)]
async fn changes_do_not_wait_for_a_writer_that_has_stopped() {
    let (rig, _file) = Rig::new(&SimDisk::new(1, 64 * MIB).disk()).await;
    rig.queue.close();
    let before = rig.queue.clock.monotonic();
    let change = Change { of: Thing::Container, detail: Value::Null };
    for _ in 0..3 {
        rig.log.change(&entry("CreateContainer"), &change).await;
    }
    assert_eq!(rig.queue.clock.monotonic() - before, Duration::ZERO);
    assert_eq!(rig.metrics.lines_lost(), lost(3, 0));
}

/// A client that leaves takes the future of its request with it, and the change has happened.
#[tokio::test(start_paused = true)]
async fn change_whose_client_leaves_while_it_waits_is_written_or_counted() {
    let change = Change { of: Thing::Container, detail: Value::Null };
    let big = Entry { resource: Some("y".repeat(100_000)), ..entry("DeleteContainer") };
    for has_room in [false, true] {
        let (rig, _file) = Rig::new(&SimDisk::new(1, 64 * MIB).disk()).await;
        let mut sent = 0;
        // Nothing is written: the queue fills up.
        while rig.metrics.lines_lost().changes == 0 {
            rig.log.change_now(&big, &change);
            sent += 1;
        }
        let mut waiting = Box::pin(rig.log.change(&big, &change));
        assert!(waiting.as_mut().now_or_never().is_none(), "it waits");
        if has_room {
            rig.queue.written(1 << 20);
        }
        drop(waiting);
        let wanted = if has_room { 1 } else { 2 };
        assert_eq!(rig.metrics.lines_lost(), lost(wanted, 0), "room: {has_room}");
        let batch = rig.queue.take_now(usize::MAX).batch;
        let sized = batch.lines.iter().filter(|line| line.len() > 100_000).count();
        assert_eq!(sized, sent + 1 - usize::try_from(wanted).unwrap(), "room: {has_room}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_line_that_is_never_written_is_counted() {
    let machine = SimDisk::new(1, 64 * MIB);
    let (rig, file) = Rig::new(&machine.disk()).await;
    let change = Change { of: Thing::Container, detail: Value::Null };
    let long = Entry { resource: Some("x".repeat(100_000)), ..entry("GetBlob") };
    // More than the writer takes at a time.
    for _ in 0..30 {
        rig.log.request(&long);
        rig.log.change(&entry("CreateContainer"), &change).await;
    }
    machine.set_faults(Faults { sync_error: ALWAYS, ..Faults::default() });
    rig.queue.close();
    writer::run(Arc::clone(&rig.queue), Sink::File(file)).await;
    assert_eq!(rig.metrics.lines_lost(), lost(30, 30));
}

#[tokio::test(start_paused = true)]
async fn stalled_disk_delays_no_request() {
    let machine = SimDisk::new(1, 64 * MIB);
    let (rig, file) = Rig::new(&machine.disk()).await;
    machine.stall(Duration::from_secs(3600));
    let tasks = Tasks::new();
    let run = writer::run(Arc::clone(&rig.queue), Sink::File(file));
    let writing = tasks.spawn("audit log", run);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = rig.queue.clock.monotonic();
    let elapsed = || rig.queue.clock.monotonic() - before;
    for _ in 0..100 {
        rig.log.request(&entry("GetBlob"));
        let change = Change { of: Thing::Fault, detail: Value::Null };
        rig.log.change(&entry("SetFault"), &change).await;
    }
    assert_eq!((elapsed(), rig.metrics.lines_lost()), (Duration::ZERO, lost(0, 0)));
    rig.queue.close();
    writing.await.unwrap();
    let written = text(&machine.disk(), NAME).await;
    assert_eq!(written.lines().count(), 200);
}

/// An entry of a request of the blob listener.
fn blob(operation: &'static str, principal: Principal) -> Entry {
    Entry {
        account: Some("photos".to_owned()),
        principal,
        address: Some("192.0.2.7:40112".to_owned()),
        operation: operation.into(),
        resource: Some("album".to_owned()),
        status: Some(201),
        request_id: Some("0f8fad5b-d9cb-469f-a165-70867728950e".to_owned()),
        ms: 1.25,
        ..Entry::default()
    }
}

/// An entry of a request of the admin listener.
fn admin(operation: &'static str, resource: &str) -> Entry {
    Entry {
        account: None,
        resource: Some(resource.to_owned()),
        status: Some(200),
        ..blob(operation, Principal::AdminToken)
    }
}

/// An entry of a request of the admin listener that changes an account.
fn of_account(operation: &'static str) -> Entry {
    Entry { account: Some("photos".to_owned()), resource: None, ..admin(operation, "") }
}

fn subject() -> Subject {
    Subject { issuer: "https://login.example/t".into(), subject: "8f0c".into() }
}

/// Lines of changes.
fn changes(time: Timestamp) -> Vec<Vec<u8>> {
    let change = |entry: Entry, of, detail| line::change(time, &entry, &Change { of, detail });
    let balancer = Entry {
        principal: Principal::Node { task: "index balancer" },
        operation: "SplitPartition".into(),
        resource: Some("1".to_owned()),
        ..Entry::default()
    };
    let created = Entry { status: Some(201), ..of_account("CreateAccount") };
    let acl = Entry { status: Some(200), ..blob("SetContainerAcl", Principal::Bearer(subject())) };
    let role = json!({ "kind": "subject", "principal": "8f0c", "role": "reader" });
    let session = Entry {
        status: Some(204),
        resource: None,
        account: None,
        ..blob("OpenSession", Principal::Console)
    };
    let [private, public] = ["private", "blob"].map(|access| json!({ "public_access": access }));
    vec![
        change(blob("CreateContainer", Principal::SharedKey), Thing::Container, private),
        change(acl, Thing::Policy, public),
        change(created, Thing::Account, json!({ "anonymous": false })),
        change(of_account("RotateKey"), Thing::Key, json!({ "key": "key1" })),
        change(of_account("GrantRole"), Thing::Grant, role),
        change(admin("ClearFault", "3"), Thing::Fault, Value::Null),
        change(balancer, Thing::PartitionMap, json!({ "ways": 2 })),
        change(admin("DrainDisk", "/data/2"), Thing::Disk, Value::Null),
        change(session, Thing::Session, Value::Null),
    ]
}

/// Lines of requests.
fn requests(time: Timestamp) -> Vec<Vec<u8>> {
    let sas = Principal::Sas { policy: Some("upload".to_owned()), delegator: None };
    let delegated = Principal::Sas { policy: None, delegator: Some(subject()) };
    let read = Entry {
        resource: Some("album/a b.jpg".to_owned()),
        status: Some(206),
        bytes_out: 65_536,
        trace_id: Some("4bf92f3577b34da6a3ce929d0e0e4736".to_owned()),
        cut: true,
        ..blob("GetBlob", delegated)
    };
    let refused = Entry {
        status: Some(403),
        code: Some("AuthenticationFailed".to_owned()),
        bytes_out: 310,
        ..blob("Refused", Principal::Unknown)
    };
    [blob("PutBlob", sas), read, refused].iter().map(|entry| line::request(time, entry)).collect()
}

/// Every line that the documentation shows is written like that.
#[test]
fn lines_are_those_of_the_documentation() {
    let time = Timestamp::from_unix(Duration::from_millis(1_795_334_400_045));
    let shown = changes(time).into_iter().chain(requests(time)).chain([line::lost(time, 0, 412)]);
    let documentation = include_str!("../../docs/audit-log.md");
    for line in shown {
        let line = String::from_utf8(line).unwrap();
        assert!(documentation.contains(&line), "docs/audit-log.md lacks\n{line}");
    }
}
