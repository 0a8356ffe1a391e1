//! Writes with numbers: each is carried out once, however often it is sent and whoever has the
//! partition then.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use crate::capacity;
use crate::index::api::Error;
use crate::index::api::Refused;
use crate::index::api::Write;
use crate::index::api::WriteId;
use crate::index::api::WriteReply;
use crate::index::api::WriterSessions;
use crate::index::engine::answers::{Answers, KeptAnswer, Known};
use crate::index::engine::change::{hand_off, merge};
use crate::index::engine::context::{Dependencies, HostContext};
use crate::index::engine::partition::Partition;
use crate::index::engine::testing::{Fault, PARTITION, When, World, put, put_if_absent, remove};
use crate::index::engine::tests::changes::halves;
use crate::rpc::NodeIdentity;
use crate::types::HostId;
use crate::types::Incarnation;
use crate::types::NodeId;
use crate::types::PartitionId;

const EXISTS: Result<WriteReply, Error> = Err(Error::Refused(Refused::ContainerExists));
const DONE: Result<WriteReply, Error> = Ok(WriteReply::Done);

fn process(node: u64) -> NodeIdentity {
    NodeIdentity { node: NodeId::new(node), incarnation: Incarnation::new(node) }
}

/// The first attempt of a write of process 1.
fn first(number: u64, settled: u64) -> WriteId {
    WriteId { process: process(1), number, settled, is_repeated: false }
}

fn again(number: u64, settled: u64) -> WriteId {
    WriteId { is_repeated: true, ..first(number, settled) }
}

async fn send(partition: &Partition, id: WriteId, write: Write) -> Result<WriteReply, Error> {
    partition.write_once(partition.core.epoch, Some(id), Arc::new(write)).await
}

/// The number of the newest commit.
fn commits(partition: &Partition) -> u64 {
    partition.core.published().sequence.get()
}

#[tokio::test]
async fn a_repetition_gets_the_answer_and_changes_nothing() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    assert_eq!(send(&partition, first(1, 1), put_if_absent("a", "1")).await, DONE);
    assert_eq!(send(&partition, again(1, 1), put_if_absent("a", "1")).await, DONE);
    assert_eq!(commits(&partition), 1);
    assert_eq!(send(&partition, first(2, 1), put_if_absent("a", "2")).await, EXISTS);
    assert_eq!(commits(&partition), 1, "the refusal of an only attempt is a read");
    // Another process has numbers of its own.
    let other = WriteId { process: process(2), ..first(1, 1) };
    assert_eq!(send(&partition, other, put("b", "3")).await, DONE);
    assert_eq!(partition.rows().await.len(), 2);
}

#[tokio::test]
async fn attempts_that_wait_together_are_carried_out_once() {
    let world = World::new().await;
    let partition = Arc::new(world.open().await.unwrap());
    let stalled = world.capacity.stall().await;
    let tasks = &partition.core.context.deps.env.tasks;
    let wait = |id: WriteId, write| {
        let partition = Arc::clone(&partition);
        tasks.spawn("write", async move { send(&partition, id, write).await })
    };
    let busy = wait(first(9, 1), put("z", "0"));
    tokio::task::yield_now().await;
    let both = [first(1, 1), again(1, 1)].map(|id| wait(id, put_if_absent("a", "1")));
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    drop(stalled);
    assert_eq!(busy.await.unwrap(), DONE);
    for one in both {
        assert_eq!(one.await.unwrap(), DONE);
    }
    assert_eq!(commits(&partition), 2);
}

#[tokio::test]
async fn later_owners_know_the_answers_of_earlier_ones() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    assert_eq!(send(&partition, first(1, 1), put_if_absent("a", "1")).await, DONE);
    // From the record of the batch.
    let partition = world.open().await.unwrap();
    assert_eq!(send(&partition, again(1, 1), put_if_absent("a", "1")).await, DONE);
    // From a manifest: the flush removes the record.
    partition.flush().await.unwrap();
    let partition = world.open().await.unwrap();
    assert_eq!(send(&partition, again(1, 1), put_if_absent("a", "1")).await, DONE);
    assert_eq!(commits(&partition), 1);
}

#[tokio::test]
async fn the_refusal_of_a_repetition_holds_for_earlier_attempts() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    partition.apply(put("a", "there")).await.unwrap();
    assert_eq!(send(&partition, again(1, 1), put_if_absent("a", "1")).await, EXISTS);
    partition.apply(remove("a")).await.unwrap();
    let partition = world.open().await.unwrap();
    assert_eq!(send(&partition, first(1, 1), put_if_absent("a", "1")).await, EXISTS);
    assert!(partition.rows().await.is_empty());
}

#[tokio::test]
async fn settled_numbers_are_refused_and_forgotten() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    assert_eq!(send(&partition, first(1, 1), put("a", "1")).await, DONE);
    assert_eq!(send(&partition, first(3, 2), put("b", "2")).await, DONE);
    let is_over = |answer| matches!(answer, Err(Error::NoAnswer(_)));
    assert!(is_over(send(&partition, again(1, 1), put("a", "1")).await));
    let partition = world.open().await.unwrap();
    assert!(is_over(send(&partition, again(1, 1), put("a", "1")).await));
    partition.flush().await.unwrap();
    let partition = world.open().await.unwrap();
    assert!(is_over(send(&partition, again(1, 1), put("a", "1")).await));
    assert_eq!(commits(&partition), 2);
    // One between settled ones and the highest is as good as new.
    assert_eq!(send(&partition, again(2, 2), put("c", "3")).await, DONE);
}

#[tokio::test]
async fn an_answer_is_kept_only_with_its_commit() {
    let silent = || capacity::Error::NoAnswer { reason: "no answer".into() };
    for fault in [Fault::Refused(silent()), Fault::Lied(silent()), Fault::Torn(silent())] {
        // The record is there, or not, or in part. The next extent begins with a manifest, and the
        // record may be lost after that.
        let fails = (0..5).flat_map(|call| [When::Once(call), When::From(call)]);
        // The log of a partition just opened takes no append before it has rolled: the manifest is
        // written with the answer at hand.
        for (fails, is_open) in fails.flat_map(|fails| [(fails, true), (fails, false)]) {
            let world = World::new().await;
            let mut partition = world.open().await.unwrap();
            assert_eq!(send(&partition, first(1, 1), put("a", "1")).await, DONE);
            if !is_open {
                partition = world.open().await.unwrap();
            }
            world.capacity.fail(fails, fault.clone());
            let answer = send(&partition, first(2, 1), put_if_absent("b", "2")).await;
            drop(answer);
            let partition = world.open().await.unwrap();
            let answer = send(&partition, again(2, 1), put_if_absent("b", "2")).await;
            assert_eq!(answer, DONE, "{fails:?} {fault:?}");
            let rows = partition.rows().await;
            assert_eq!(rows.len(), 2, "{fails:?} {fault:?}: the answer is that of a row");
        }
    }
}

#[tokio::test]
async fn answers_go_with_the_keys_through_changes_of_the_map() {
    let world = World::new().await;
    let parent = Arc::new(world.open().await.unwrap());
    assert_eq!(send(&parent, first(1, 1), put_if_absent("a", "1")).await, DONE);
    assert_eq!(send(&parent, first(2, 1), put_if_absent("x", "2")).await, DONE);
    let context = Arc::clone(&parent.core.context);
    let children = parent.split(halves(b"m")).await.unwrap().children;
    parent.abandon().await;
    assert_eq!(send(&children[0], again(1, 1), put_if_absent("a", "1")).await, DONE);
    assert_eq!(send(&children[1], again(2, 1), put_if_absent("x", "2")).await, DONE);
    assert_eq!(send(&children[1], first(3, 1), put_if_absent("y", "3")).await, DONE);
    let children: Vec<_> = children.into_iter().map(Arc::new).collect();
    let merged = merge(&context, PartitionId::new(4), &children).await.unwrap().partition;
    for child in &children {
        child.abandon().await;
    }
    for (number, key) in [(1, "a"), (2, "x"), (3, "y")] {
        assert_eq!(send(&merged, again(number, 1), put_if_absent(key, "0")).await, DONE);
    }
    let merged = Arc::new(merged);
    let to = Arc::new(HostContext::new(world.deps(), world.config, HostId::new(1), Arc::default()));
    let moved = hand_off(&merged, &to).await.unwrap().partition;
    merged.abandon().await;
    for (number, key) in [(1, "a"), (2, "x"), (3, "y")] {
        assert_eq!(send(&moved, again(number, 1), put_if_absent(key, "0")).await, DONE);
    }
    // And in the log of each.
    let id = PartitionId::new(4);
    let context =
        Arc::new(HostContext::new(world.deps(), world.config, HostId::new(1), Arc::default()));
    let opened = Partition::open(&context, id).await.unwrap();
    for (number, key) in [(1, "a"), (2, "x"), (3, "y")] {
        assert_eq!(send(&opened, again(number, 1), put_if_absent(key, "0")).await, DONE);
    }
}

/// Processes that have ended.
#[derive(Debug, Default)]
struct Ended {
    processes: Mutex<BTreeSet<NodeIdentity>>,
    /// Whether it cannot be found out which have ended.
    is_unknown: AtomicBool,
}

#[async_trait::async_trait]
impl WriterSessions for Ended {
    fn has_ended(&self, process: NodeIdentity) -> bool {
        self.processes.lock().unwrap().contains(&process)
    }

    async fn catch_up(&self) -> Result<(), Error> {
        let is_unknown = self.is_unknown.load(Ordering::Relaxed);
        if is_unknown { Err(Error::Unavailable("etcd is away".to_owned())) } else { Ok(()) }
    }
}

/// The owner before may have forgotten the answers to a process that has ended.
#[tokio::test]
async fn partition_is_not_served_before_it_is_known_which_processes_have_ended() {
    let world = World::new().await;
    let ended = Arc::new(Ended::default());
    let writers = Some(Arc::clone(&ended) as Arc<dyn WriterSessions>);
    let deps = Dependencies { writers, ..world.deps() };
    let context = Arc::new(HostContext::new(deps, world.config, HostId::new(0), Arc::default()));
    ended.is_unknown.store(true, Ordering::Relaxed);
    let refused = Partition::open(&context, PARTITION).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))));
    ended.is_unknown.store(false, Ordering::Relaxed);
    Partition::open(&context, PARTITION).await.unwrap();
}

#[tokio::test]
async fn nothing_is_kept_for_processes_that_have_ended() {
    let world = World::new().await;
    let ended = Arc::new(Ended::default());
    let open = async || {
        let writers = Some(Arc::clone(&ended) as Arc<dyn WriterSessions>);
        let deps = Dependencies { writers, ..world.deps() };
        let context = HostContext::new(deps, world.config, HostId::new(0), Arc::default());
        Partition::open(&Arc::new(context), PARTITION).await.unwrap()
    };
    let partition = open().await;
    let of = |node| WriteId { process: process(node), ..first(1, 1) };
    for node in [1, 2] {
        assert_eq!(send(&partition, of(node), put("a", "1")).await, DONE);
    }
    ended.processes.lock().unwrap().insert(process(1));
    partition.flush().await.unwrap();
    let kept = partition.hold().await.unwrap();
    assert_eq!(kept.answers.processes(), [process(2)]);
    kept.resume();
}

/// Others go on.
#[test]
fn process_that_settles_nothing_is_refused_in_the_end() {
    let (mut answers, mut number) = (Answers::default(), 0);
    let id = |node, number| WriteId { process: process(node), ..first(number, 1) };
    while !matches!(answers.look_up(&id(1, number + 1)), Known::TooMany) {
        number += 1;
        answers.keep(KeptAnswer::of(&id(1, number), &DONE).unwrap());
    }
    assert!(number > 10_000, "{number} answers");
    assert!(matches!(answers.look_up(&id(1, number)), Known::Answered(Ok(WriteReply::Done))));
    assert!(matches!(answers.look_up(&id(2, 1)), Known::Nothing));
    let settling = WriteId { settled: number, ..id(1, number + 1) };
    assert!(matches!(answers.look_up(&settling), Known::Nothing));
}
