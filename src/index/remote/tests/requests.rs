//! The running requests of all processes.

use std::sync::Arc;
use std::time::Duration;

use super::rig::Partition;
use super::rig::Process;
use super::rig::World;
use crate::index::Error;
use crate::index::IndexHost;
use crate::index::ReadReply;
use crate::index::RequestMark;
use crate::index::Running;
use crate::types::ExtentId;
use crate::types::RoutingKey;

const ONE: ExtentId = ExtentId::new(1);
const TWO: ExtentId = ExtentId::new(2);
const NOW: Duration = Duration::ZERO;

struct Three {
    world: World,
    server: Process,
    front: Process,
    other: Process,
}

fn three() -> Three {
    let world = World::new();
    let server = Process::start(&world, 1, 1);
    let (front, other) = (Process::start(&world, 2, 2), Process::start(&world, 3, 3));
    let partition = Partition::new(ReadReply::DeadContainers(Vec::new()));
    server.served.serve(partition as Arc<dyn IndexHost>);
    world.is_served_by(1);
    Three { world, server, front, other }
}

async fn runs(asker: &Process, asked: &Running) -> bool {
    asker.requests.is_running(asked.clone()).await.unwrap()
}

fn questions(before: RequestMark) -> [Running; 6] {
    [
        Running::Read { before, extents: vec![ONE] },
        Running::Read { before, extents: Vec::new() },
        Running::Layer { before, blob: RoutingKey::min() },
        Running::Change { before },
        Running::Commit { before },
        Running::CopyLookUp { before },
    ]
}

#[tokio::test(start_paused = true)]
async fn requests_of_every_process_before_a_mark_count() {
    let Three { server, front, other, .. } = three();
    for (noting, asking) in [(&front, &server), (&server, &front), (&front, &other)] {
        // Others would show what was noted in an earlier turn.
        let early = (
            noting.inflight.read(NOW),
            noting.inflight.layer(RoutingKey::min()),
            noting.inflight.change(),
            noting.inflight.commit(),
            noting.inflight.copy(),
        );
        let mark = asking.requests.mark().await.unwrap();
        for asked in questions(mark) {
            assert!(runs(asking, &asked).await, "{asked:?}");
        }
        drop(early);
        let late = (noting.inflight.read(NOW), noting.inflight.change(), noting.inflight.copy());
        for asked in questions(mark) {
            assert!(!runs(asking, &asked).await, "{asked:?}");
        }
        // After the next mark the answer is known without a question.
        asking.requests.mark().await.unwrap();
        for asked in questions(mark) {
            assert!(!runs(asking, &asked).await, "{asked:?}");
        }
        drop(late);
    }
}

#[tokio::test(start_paused = true)]
async fn read_that_has_named_its_extents_holds_those_alone() {
    let Three { server, front, .. } = three();
    let mut read = front.inflight.read(NOW);
    read.names([ONE]);
    let before = server.requests.mark().await.unwrap();
    assert!(runs(&server, &Running::Read { before, extents: vec![TWO, ONE] }).await);
    assert!(!runs(&server, &Running::Read { before, extents: vec![TWO] }).await);
    assert_eq!(server.requests.written_extents().await.unwrap().len(), 0);
    let written = front.inflight.write(TWO);
    assert_eq!(server.requests.written_extents().await.unwrap(), [TWO].into());
    drop(written);
    let oldest = server.requests.oldest_read().await.unwrap();
    assert_eq!(oldest.unwrap().number, 0);
}

#[tokio::test(start_paused = true)]
async fn process_that_does_not_answer_holds_everything_until_its_session_ends() {
    let Three { world, server, front, .. } = three();
    let note = front.inflight.read(NOW);
    let before = server.requests.mark().await.unwrap();
    let identity = front.identity;
    let asked = Running::Read { before, extents: vec![ONE] };
    assert!(runs(&server, &asked).await);
    front.cut_off();
    server.requests.mark().await.unwrap_err();
    server.requests.is_running(asked.clone()).await.unwrap_err();
    server.requests.written_extents().await.unwrap_err();
    server.requests.watch_copies().await.unwrap_err();
    world.end_session(identity);
    assert!(!runs(&server, &asked).await);
    server.requests.mark().await.unwrap();
    drop(note);
}

/// The register of a later life knows nothing of the requests of an earlier one.
#[tokio::test(start_paused = true)]
async fn later_life_of_a_node_does_not_answer_for_the_earlier_one() {
    let Three { world, server, front, .. } = three();
    let note = front.inflight.read(NOW);
    let before = server.requests.mark().await.unwrap();
    let asked = Running::Read { before, extents: vec![ONE] };
    assert!(runs(&server, &asked).await);
    let earlier = front.identity;
    front.kill();
    let _later = Process::start(&world, 2, 9);
    // The connection to the earlier life is known to be lost by then.
    world.sleep(1_000).await;
    let refused = server.requests.is_running(asked.clone()).await.unwrap_err();
    let by_later = matches!(&refused, Error::NoAnswer(why) if why.contains("this is incarnation"));
    assert!(by_later, "{refused}");
    world.end_session(earlier);
    assert!(!runs(&server, &asked).await);
    drop(note);
}

#[tokio::test(start_paused = true)]
async fn process_that_came_after_a_mark_looks_up_after_it() {
    let Three { world, server, front, .. } = three();
    world.end_session(front.identity);
    let before = server.requests.mark().await.unwrap();
    world.begin_session(front.identity);
    let note = front.inflight.read(NOW);
    assert!(!runs(&server, &Running::Read { before, extents: vec![ONE] }).await);
    let before = server.requests.mark().await.unwrap();
    assert!(runs(&server, &Running::Read { before, extents: vec![ONE] }).await);
    drop(note);
}

#[tokio::test(start_paused = true)]
async fn watch_of_copies_covers_all_processes_that_are_there_throughout() {
    let Three { world, server, front, other } = three();
    let since = server.requests.watch_copies().await.unwrap();
    let named = |extent| Running::Copy { since, extent };
    assert!(!runs(&server, &named(ONE)).await);
    front.inflight.copy().met([ONE]);
    assert!(runs(&server, &named(ONE)).await && !runs(&server, &named(TWO)).await);
    assert!(server.requests.has_seen_all(since).await.unwrap());
    world.end_session(other.identity);
    let seen_all = server.requests.has_seen_all(since).await.unwrap();
    assert!(!seen_all, "what that process has copied is not known");
    world.begin_session(other.identity);
    let seen_all = server.requests.has_seen_all(since).await.unwrap();
    assert!(!seen_all, "one that came and went may have copied too");
    server.requests.end_watch(since);
    world.sleep(1_000).await;
    assert!(!server.requests.has_seen_all(since).await.unwrap());
    assert!(runs(&server, &named(TWO)).await, "nobody knows any more");
}

#[tokio::test(start_paused = true)]
async fn hold_of_one_process_holds_all() {
    let Three { server, front, .. } = three();
    let hold = crate::index::Hold::begin(&front.requests, "a backup".to_owned()).await.unwrap();
    let before = server.requests.mark().await.unwrap();
    let asked = Running::Read { before, extents: vec![TWO] };
    assert!(runs(&server, &asked).await);
    drop(hold);
    assert!(!runs(&server, &asked).await);
}

/// A mark that is forgotten is taken for a later one.
#[tokio::test(start_paused = true)]
async fn forgotten_mark_holds_more_and_an_unknown_one_everything() {
    let Three { server, front, .. } = three();
    let first = server.requests.mark().await.unwrap();
    let note = front.inflight.read(NOW);
    for _ in 0..4_097 {
        server.requests.mark().await.unwrap();
    }
    assert!(runs(&server, &Running::Read { before: first, extents: vec![ONE] }).await);
    drop(note);
    assert!(!runs(&server, &Running::Read { before: first, extents: vec![ONE] }).await);
    let before = RequestMark { reads: 1 << 40, changes: 1 << 40, copies: 1 << 40 };
    assert!(runs(&server, &Running::Change { before }).await);
}
