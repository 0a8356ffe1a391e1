//! The agreement on the end of an extent, step by step.

use std::sync::Arc;
use std::time::Duration;

use super::cluster::Calls;
use super::cluster::Ends;
use super::cluster::Node;
use super::*;
use crate::capacity::Error;
use crate::capacity::Extension;
use crate::capacity::ExtentState;
use crate::capacity::Member;
use crate::capacity::copies::CopyWriter;
use crate::capacity::copies::EndRecord;
use crate::capacity::copies::Members;
use crate::capacity::copies::Patience;
use crate::capacity::copies::Settling;
use crate::capacity::copies::Unsettled;
use crate::capacity::copies::settle;
use crate::capacity::member::verify;
use crate::capacity::units::index;
use crate::env::Clock;
use crate::env::clock::SimClock;
use crate::types::ExtentOffset;

async fn three() -> Vec<Arc<Node>> {
    vec![Node::start(1).await, Node::start(2).await, Node::start(3).await]
}

/// Three nodes, and the writer of an extent on them.
async fn written() -> (Vec<Arc<Node>>, CopyWriter) {
    let nodes = three().await;
    let writer = CopyWriter::new(COPY, ONE, members(&nodes));
    (nodes, writer)
}

fn members(nodes: &[Arc<Node>]) -> Members {
    nodes.iter().map(|node| Arc::clone(node) as Arc<dyn Member>).collect()
}

async fn ends(nodes: &[Arc<Node>]) -> Vec<(ExtentState, ExtentOffset)> {
    let mut ends = Vec::new();
    for node in nodes {
        let info = node.copy(ID).await.unwrap().unwrap();
        ends.push((info.state, info.end));
    }
    ends
}

fn one(seed: u64, len: usize) -> Vec<Vec<Bytes>> {
    vec![vec![payload(seed, len)]]
}

#[test]
fn append_is_answered_when_all_have_it_and_a_clean_seal_needs_no_record() {
    run(async {
        let (nodes, mut writer) = written().await;
        let first = writer.append(one(1, 70_000)).await.unwrap();
        let second = writer.append(one(2, 100)).await.unwrap();
        for (seed, len, appended) in [(1, 70_000, &first), (2, 100, &second)] {
            for node in &nodes {
                let location = appended.locations[0];
                let parts = node.read(&location, 0..len).await.unwrap();
                let read = verify(&location, &(0..len), &parts).unwrap();
                assert_eq!(read.concat(), payload(seed, index(len)));
            }
        }
        assert_eq!(writer.seal().await.unwrap(), second.end);
        assert_eq!(ends(&nodes).await, vec![(ExtentState::Sealed, second.end); 3]);
        let ends = Ends::default();
        let settled = settle(&members(&nodes), COPY, TWO, &ends).await.unwrap();
        assert_eq!((settled.end, settled.sealed), (second.end, 3));
        assert_eq!(ends.recorded(ID).await.unwrap().end, None);
    });
}

#[test]
fn writer_gives_the_extent_up_when_a_member_does_not_answer() {
    for calls in [Calls::Lost, Calls::CutAfter(0)] {
        run(async {
            let nodes = three().await;
            let mut writer = CopyWriter::new(COPY, ONE, members(&nodes));
            let answered = writer.append(one(1, 5_000)).await.unwrap();
            nodes[1].set_calls(calls);
            assert_eq!(writer.append(one(2, 5_000)).await.unwrap_err().member, Some(1));
            nodes[1].set_calls(Calls::Answered);
            writer.append(one(3, 10)).await.unwrap_err();
            assert_eq!(writer.end(), answered.end);
            writer.seal().await.unwrap_err();
            let settled = settle(&members(&nodes), COPY, TWO, &Ends::default()).await.unwrap();
            assert_eq!(settled.sealed, 3);
            assert!(settled.end >= answered.end);
            assert_eq!(ends(&nodes).await, vec![(ExtentState::Sealed, settled.end); 3]);
        });
    }
}

#[test]
fn greatest_end_counts_and_shorter_copies_pull() {
    run(async {
        let (nodes, mut writer) = written().await;
        let answered = writer.append(one(1, 5_000)).await.unwrap();
        nodes[0].set_calls(Calls::Lost);
        nodes[1].set_calls(Calls::Lost);
        writer.append(one(2, 300_000)).await.unwrap_err();
        nodes[0].set_calls(Calls::Answered);
        let longest = nodes[2].copy(ID).await.unwrap().unwrap().end;
        assert!(longest > answered.end);
        // One member is away: it follows the record when it is back.
        let record = Ends::default();
        let settled = settle(&members(&nodes), COPY, TWO, &record).await.unwrap();
        assert_eq!((settled.end, settled.sealed), (longest, 2));
        nodes[1].set_calls(Calls::Answered);
        let settled = settle(&members(&nodes), COPY, TWO, &record).await.unwrap();
        assert_eq!((settled.end, settled.sealed), (longest, 3));
        assert_eq!(ends(&nodes).await, vec![(ExtentState::Sealed, longest); 3]);
    });
}

/// The copies that were sealed are away. The one that is there must not settle a second end.
#[test]
fn recorded_end_counts_when_no_sealed_copy_is_reached() {
    run(async {
        let (nodes, mut writer) = written().await;
        writer.append(one(1, 5_000)).await.unwrap();
        nodes[1].set_calls(Calls::Lost);
        writer.append(one(2, 300_000)).await.unwrap_err();
        let record = Ends::default();
        let settled = settle(&members(&nodes), COPY, TWO, &record).await.unwrap();
        assert_eq!(settled.sealed, 2);
        for (node, calls) in nodes.iter().zip([Calls::Lost, Calls::Answered, Calls::Lost]) {
            node.set_calls(calls);
        }
        let unsettled = settle(&members(&nodes), COPY, TWO, &record).await;
        let is_short = matches!(unsettled, Err(Unsettled::Short { end }) if end == settled.end);
        assert!(is_short, "{unsettled:?}");
        for node in &nodes {
            node.set_calls(Calls::Answered);
        }
        settle(&members(&nodes), COPY, TWO, &record).await.unwrap();
        assert_eq!(ends(&nodes).await, vec![(ExtentState::Sealed, settled.end); 3]);
    });
}

/// A member that failed lately costs no time while enough others are there.
#[test]
fn members_that_failed_lately_are_waited_for_only_while_others_are_too_few() {
    for (expected, silent, sealed, waits) in
        [(3, &[2][..], 2, true), (2, &[2], 2, false), (1, &[1, 2], 1, true), (1, &[2], 2, false)]
    {
        run(async {
            let (nodes, mut writer) = written().await;
            writer.append(one(1, 5_000)).await.unwrap();
            for at in silent {
                nodes[*at].block();
            }
            let (record, clock) = (Ends::default(), SimClock::new());
            let patience = Some(Patience { clock: &clock, expected, enough: 2 });
            let settling = Settling { copy: COPY, epoch: TWO, record: &record, patience };
            let began = clock.monotonic();
            let settled = settling.run(&members(&nodes)).await.unwrap();
            let waited = clock.monotonic() - began >= Duration::from_secs(1);
            assert_eq!((settled.sealed, waited), (sealed, waits), "{expected} of {silent:?}");
        });
    }
}

#[test]
fn recorded_end_counts_and_a_longer_copy_is_cut() {
    run(async {
        let (nodes, mut writer) = written().await;
        let answered = writer.append(one(1, 5_000)).await.unwrap();
        nodes[0].set_calls(Calls::Lost);
        nodes[1].set_calls(Calls::Lost);
        writer.append(one(2, 300_000)).await.unwrap_err();
        nodes[0].set_calls(Calls::Answered);
        nodes[1].set_calls(Calls::Answered);
        nodes[2].set_calls(Calls::Lost);
        let record = Ends::default();
        let settled = settle(&members(&nodes), COPY, TWO, &record).await.unwrap();
        assert_eq!((settled.end, settled.sealed), (answered.end, 2));
        nodes[2].set_calls(Calls::Answered);
        settle(&members(&nodes), COPY, TWO, &record).await.unwrap();
        assert_eq!(ends(&nodes).await, vec![(ExtentState::Sealed, answered.end); 3]);
    });
}

/// Level first, then record: afterwards the disk of the longest copy may be lost.
#[test]
fn end_is_recorded_only_when_all_that_were_reached_have_it() {
    run(async {
        let (nodes, mut writer) = written().await;
        writer.append(one(1, 5_000)).await.unwrap();
        nodes[0].set_calls(Calls::Lost);
        writer.append(one(2, 300_000)).await.unwrap_err();
        // The short copy is fenced and then cut off while it pulls.
        nodes[0].set_calls(Calls::CutAfter(3));
        let record = Ends::default();
        let unsettled = settle(&members(&nodes), COPY, TWO, &record).await;
        assert!(matches!(unsettled, Err(Unsettled::NotLevel(_))), "{unsettled:?}");
        assert_eq!(record.recorded(ID).await.unwrap().end, None);
        nodes[0].set_calls(Calls::Answered);
        assert_eq!(settle(&members(&nodes), COPY, TWO, &record).await.unwrap().sealed, 3);
    });
}

#[test]
fn incomplete_copies_do_not_decide_the_end() {
    run(async {
        let (nodes, mut writer) = written().await;
        let answered = writer.append(one(1, 5_000)).await.unwrap();
        drop(writer);
        // A new node pulls a part and is all that is reached.
        let new = Node::start(4).await;
        let frames = nodes[0].frames(ID, ExtentOffset::START, 1).await.unwrap();
        new.extend(COPY, TWO, Extension { frames, dead_to: None }).await.unwrap();
        let alone = members(std::slice::from_ref(&new));
        let unsettled = settle(&alone, COPY, TWO, &Ends::default()).await;
        assert!(matches!(unsettled, Err(Unsettled::NoWitness)), "{unsettled:?}");
        let all = [&nodes[..], &[new]].concat();
        let settled = settle(&members(&all), COPY, TWO, &Ends::default()).await.unwrap();
        assert_eq!((settled.end, settled.sealed), (answered.end, 4));
    });
}

/// A large body was appended without a sync, and all machines lost their power.
#[test]
fn if_all_members_have_incomplete_copies_the_longest_one_counts() {
    run(async {
        let (nodes, mut writer) = written().await;
        writer.append(one(1, 5_000)).await.unwrap();
        let answered = writer.append(one(2, 300)).await.unwrap();
        let frames = nodes[0].frames(ID, ExtentOffset::START, 1 << 20).await.unwrap();
        assert_eq!(frames.len(), 2);
        drop(writer);
        let new = [Node::start(4).await, Node::start(5).await, Node::start(6).await];
        for (node, count) in new.iter().zip([1, 2, 1]) {
            let frames = frames.iter().take(count).cloned().collect();
            node.extend(COPY, ONE, Extension { frames, dead_to: None }).await.unwrap();
            assert!(node.copy(ID).await.unwrap().unwrap().incomplete);
        }
        // Two of them do not say that the third one has no more.
        let unsettled = settle(&members(&new[..2]), COPY, TWO, &Ends::default()).await;
        assert!(matches!(unsettled, Err(Unsettled::NoWitness)), "{unsettled:?}");
        let changed = Ends { members_changed: true, ..Ends::default() };
        let unsettled = settle(&members(&new), COPY, TWO, &changed).await;
        assert!(matches!(unsettled, Err(Unsettled::NoWitness)), "{unsettled:?}");
        let settled = settle(&members(&new), COPY, TWO, &Ends::default()).await.unwrap();
        assert_eq!((settled.end, settled.sealed), (answered.end, 3));
    });
}

#[test]
fn nobody_reached_settles_nothing() {
    run(async {
        let nodes = three().await;
        for node in &nodes {
            node.set_calls(Calls::Lost);
        }
        let record = Ends::default();
        let unsettled = settle(&members(&nodes), COPY, TWO, &record).await;
        assert!(matches!(unsettled, Err(Unsettled::NoWitness)), "{unsettled:?}");
        record.record(ID, ExtentOffset::new(500)).await.unwrap();
        nodes[0].set_calls(Calls::Answered);
        let unsettled = settle(&members(&nodes), COPY, TWO, &record).await;
        assert!(matches!(unsettled, Err(Unsettled::Short { .. })), "{unsettled:?}");
    });
}

#[test]
fn settled_extent_refuses_its_old_writer() {
    run(async {
        let (nodes, mut writer) = written().await;
        writer.append(one(1, 5_000)).await.unwrap();
        nodes[2].set_calls(Calls::Lost);
        settle(&members(&nodes), COPY, TWO, &Ends::default()).await.unwrap();
        nodes[2].set_calls(Calls::Answered);
        let refused = writer.append(one(2, 10)).await.unwrap_err();
        let stopped = matches!(refused.error, Error::Fenced { .. } | Error::Sealed { .. });
        assert!(stopped, "{refused}");
    });
}

/// Between the fence and the question another settler has sealed the copy, and cut it.
#[test]
fn copy_that_another_settler_cut_has_one_end() {
    run(async {
        let (nodes, mut writer) = written().await;
        let answered = writer.append(one(1, 5_000)).await.unwrap();
        nodes[1].set_calls(Calls::Lost);
        writer.append(one(2, 5_000)).await.unwrap_err();
        nodes[1].set_calls(Calls::Answered);
        let record = Ends::default();
        record.record(ID, answered.end).await.unwrap();
        // This settler has read the record before.
        nodes[0].seal_before_copy(TWO, answered.end);
        settle(&members(&nodes), COPY, TWO, &Ends::default()).await.unwrap();
        assert_eq!(ends(&nodes).await, vec![(ExtentState::Sealed, answered.end); 3]);
    });
}

/// A new member has no copy, which says nothing about what was answered before it was one.
#[test]
fn new_member_without_a_copy_does_not_decide_the_end() {
    run(async {
        let (nodes, mut writer) = written().await;
        let answered = writer.append(one(1, 5_000)).await.unwrap();
        let all = [&nodes[..], &[Node::start(4).await]].concat();
        for node in &nodes {
            node.set_calls(Calls::Lost);
        }
        let record = Ends { members_changed: true, ..Ends::default() };
        let unsettled = settle(&members(&all), COPY, TWO, &record).await;
        assert!(matches!(unsettled, Err(Unsettled::NoWitness)), "{unsettled:?}");
        for node in &nodes {
            node.set_calls(Calls::Answered);
        }
        let settled = settle(&members(&all), COPY, TWO, &record).await.unwrap();
        assert_eq!((settled.end, settled.sealed), (answered.end, 4));
    });
}

/// One member that cannot take the bytes does not keep the others from their end.
#[test]
fn member_that_cannot_be_completed_is_left_for_the_next_time() {
    run(async {
        let (nodes, mut writer) = written().await;
        writer.append(one(1, 5_000)).await.unwrap();
        nodes[0].set_calls(Calls::Lost);
        writer.append(one(2, 300_000)).await.unwrap_err();
        let longest = nodes[1].copy(ID).await.unwrap().unwrap().end;
        let record = Ends::default();
        record.record(ID, longest).await.unwrap();
        nodes[0].set_calls(Calls::CutAfter(3));
        let settled = settle(&members(&nodes), COPY, TWO, &record).await.unwrap();
        assert_eq!((settled.end, settled.sealed), (longest, 2));
    });
}

#[test]
fn copy_whose_last_bytes_are_dead_is_completed() {
    run(async {
        let (nodes, mut writer) = written().await;
        writer.append(one(1, 5_000)).await.unwrap();
        let last = writer.append(one(2, 70_000)).await.unwrap();
        writer.seal().await.unwrap();
        for node in &nodes {
            node.free(&last.locations).await.unwrap();
        }
        let new = Node::start(4).await;
        let all = [&nodes[..], &[Arc::clone(&new)]].concat();
        let settled = settle(&members(&all), COPY, TWO, &Ends::default()).await.unwrap();
        assert_eq!((settled.end, settled.sealed), (last.end, 4));
        new.crash(true).await;
        assert_eq!(ends(&all).await, vec![(ExtentState::Sealed, last.end); 4]);
    });
}
