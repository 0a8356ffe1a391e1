//! An invariant that is violated stops the partition, which is whole when it is opened again.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use bytes::Bytes;

use crate::index::api::Error;
use crate::index::api::Read;
use crate::index::api::ReadReply;
use crate::index::api::Write;
use crate::index::api::WriteReply;
use crate::index::engine::commands::BreakInvariant;
use crate::index::engine::commands::Command;
use crate::index::engine::commit::Committer;
use crate::index::engine::context::{Dependencies, HostContext};
use crate::index::engine::core::Status;
use crate::index::engine::edit::Edit;
use crate::index::engine::failed::Failed;
use crate::index::engine::partition::Partition;
use crate::index::engine::testing::{PARTITION, Plain, World, put};
use crate::index::invariant::Invariant;
use crate::index::rows::Family;
use crate::index::rows::Machine;
use crate::index::rows::RowBatch;
use crate::index::rows::Rows;
use crate::types::ExtentId;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::Sequence;
use crate::types::Timestamp;

impl Partition {
    /// The test violates this invariant.
    fn expect_violation(&self, id: &'static str) {
        self.core.context.deps.env.tasks.health().expect_violation(id);
    }

    /// Breaks an invariant between two batches.
    async fn break_with(&self, change: fn(&mut Committer)) {
        let change = BreakInvariant(Box::new(move |committer| {
            change(committer.downcast_mut::<Committer>().unwrap());
        }));
        self.commands.send(Command::Break(change)).await.unwrap();
    }

    fn is_stopped_by(&self, id: &str) -> bool {
        let begins = format!("invariant {id} is violated");
        let counted = self.core.context.deps.env.tasks.health().violations();
        assert!(counted.iter().any(|one| one.starts_with(&begins)), "{counted:?}");
        matches!(self.core.status(), Status::Stopped(reason) if reason.starts_with(&begins))
    }
}

/// A partition with a row, another of which is to be written.
async fn with_a_row() -> (World, Partition) {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    partition.apply(put("a", "1")).await.unwrap();
    (world, partition)
}

/// The partition takes no writes and still answers reads; opened again, it has its rows and takes
/// writes.
async fn check_stopped(world: &World, partition: Partition, id: &str) {
    assert!(partition.is_stopped_by(id), "{:?}", partition.core.status());
    assert_eq!(partition.apply(put("c", "3")).await, Err(Error::WrongPartition));
    let rows = partition.rows().await;
    assert_eq!(rows.first(), Some(&("a".into(), "1".into())));
    drop(partition);
    let partition = world.open().await.unwrap();
    assert_eq!(partition.rows().await.first(), rows.first());
    partition.apply(put("c", "3")).await.unwrap();
}

async fn check_write_stops(change: fn(&mut Committer), id: &'static str) {
    let (world, partition) = with_a_row().await;
    partition.expect_violation(id);
    partition.break_with(change).await;
    let refused = partition.apply(put("b", "2")).await;
    let named = |why: &String| why.contains(&format!("invariant {id} is violated"));
    assert!(matches!(&refused, Err(Error::Unavailable(why)) if named(why)), "{refused:?}");
    check_stopped(&world, partition, id).await;
}

#[tokio::test]
async fn a_commit_with_a_number_left_out_stops_the_partition() {
    check_write_stops(|committer| committer.sequence = committer.sequence.plus(5), "I2").await;
}

#[tokio::test]
async fn a_commit_with_a_number_used_before_stops_the_partition() {
    check_write_stops(|committer| committer.sequence = Sequence::new(0), "I2").await;
}

#[tokio::test]
async fn a_log_of_a_later_epoch_stops_the_partition() {
    let taken = |committer: &mut Committer| {
        committer.log.change_owner(committer.core.id, committer.core.epoch.next());
    };
    check_write_stops(taken, "I2").await;
}

#[tokio::test]
async fn a_log_of_another_partition_stops_the_partition() {
    let others = |committer: &mut Committer| {
        committer.log.change_owner(PartitionId::new(9), committer.core.epoch);
    };
    check_write_stops(others, "I2").await;
}

#[tokio::test]
async fn memtables_that_are_counted_wrongly_stop_the_partition() {
    check_write_stops(|committer| committer.core.context.budget.forget(), "I16").await;
}

#[tokio::test]
async fn a_manifest_with_commits_that_the_log_does_not_have_stops_the_partition() {
    let world = World::new().await;
    let partition = world.open().await.unwrap();
    partition.expect_violation("I2");
    partition.break_with(|committer| committer.flushed = Sequence::new(9)).await;
    // The first commit of an owner begins an extent with a manifest.
    let refused = partition.apply(put("a", "1")).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    assert!(partition.is_stopped_by("I2"), "{:?}", partition.core.status());
}

#[tokio::test]
async fn readers_that_would_go_back_stop_the_partition() {
    let ahead = |committer: &mut Committer| {
        let later = committer.sequence.plus(10);
        committer.core.publish(&committer.sources, later).unwrap();
    };
    check_write_stops(ahead, "I6").await;
}

#[tokio::test]
async fn a_queue_that_is_counted_wrongly_stops_the_partition() {
    let (world, partition) = with_a_row().await;
    partition.expect_violation("I16");
    let paused = partition.pause().await.unwrap();
    let (refused, ()) = tokio::join!(partition.apply(put("b", "2")), async {
        assert!(partition.queued_bytes.load(Ordering::Relaxed) > 0, "the write is queued");
        let forget = |committer: &mut Committer| committer.queued_bytes.store(0, Ordering::Relaxed);
        partition.break_with(forget).await;
        drop(paused);
    });
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    check_stopped(&world, partition, "I16").await;
}

#[tokio::test]
async fn installing_what_is_not_there_stops_the_partition() {
    let flushed = || Edit::Flushed { through: Sequence::new(9), runs: Vec::new() };
    let merged = vec![ExtentId::new(9)];
    let compacted = || Edit::Compacted { family: Family::Main, merged: merged.clone(), into: None };
    for (edit, id) in [(flushed(), "I14"), (compacted(), "I8")] {
        let (world, partition) = with_a_row().await;
        partition.expect_violation(id);
        let installed = partition.command(|answer| Command::Install(edit, answer)).await.unwrap();
        assert!(matches!(installed, Err(Failed::Other(_))), "{installed:?}");
        check_stopped(&world, partition, id).await;
    }
}

/// Finds an invariant violated in each read, and in each write of the key `broken`.
#[derive(Debug)]
struct Violating;

#[async_trait]
impl Machine for Violating {
    async fn evaluate(
        &self,
        view: &dyn Rows,
        write: &Write,
        now: Timestamp,
        out: &mut RowBatch,
    ) -> Result<WriteReply, Error> {
        let reply = Plain.evaluate(view, write, now, out).await?;
        if out.changes.iter().any(|row| row.key == "broken") {
            return Err(view.violated(Invariant::ExactBlocks.violated("a block is missing")));
        }
        Ok(reply)
    }

    async fn answer(
        &self,
        view: &dyn Rows,
        _: &KeyRange,
        _: &Read,
        _: Timestamp,
    ) -> Result<ReadReply, Error> {
        Err(view.violated(Invariant::ListOrder.violated("b follows c")))
    }
}

async fn open_violating(world: &World) -> Partition {
    let deps = Dependencies { machine: Arc::new(Violating), ..world.deps() };
    let context = HostContext::new(deps, world.config, HostId::new(0), Arc::default());
    Partition::open(&Arc::new(context), PARTITION).await.unwrap()
}

#[tokio::test]
async fn a_write_that_finds_an_invariant_violated_stops_the_partition() {
    let world = World::new().await;
    let partition = open_violating(&world).await;
    partition.apply(put("a", "1")).await.unwrap();
    partition.expect_violation("I10");
    let refused = partition.apply(put("broken", "2")).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    check_stopped(&world, partition, "I10").await;
}

#[tokio::test]
async fn a_read_that_finds_an_invariant_violated_stops_the_partition() {
    let world = World::new().await;
    let partition = open_violating(&world).await;
    partition.apply(put("a", "1")).await.unwrap();
    partition.expect_violation("I7");
    let read = Read::Garbage { from: Bytes::new(), limit: 1 };
    let answer = partition.read(partition.core.epoch, &read).await;
    assert!(matches!(&answer, Err(Error::Unavailable(why)) if why.contains("I7")), "{answer:?}");
    while partition.core.status() == Status::Serving {
        tokio::task::yield_now().await;
    }
    check_stopped(&world, partition, "I7").await;
}
