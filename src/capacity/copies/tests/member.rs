//! The calls of a member, one by one.

use std::sync::Arc;

use super::cluster::Node;
use super::*;
use crate::capacity::Durability;
use crate::capacity::Encoded;
use crate::capacity::Error;
use crate::capacity::Extension;
use crate::capacity::ExtentState;
use crate::capacity::FramedAppend;
use crate::capacity::Member;
use crate::capacity::OwnedLog;
use crate::capacity::RawFrame;
use crate::capacity::disk::store::path_of;
use crate::capacity::extent::header::DATA_AT;
use crate::capacity::member::verify;
use crate::capacity::units::index;
use crate::env::Tasks;
use crate::types::ExtentOffset;

const START: ExtentOffset = ExtentOffset::START;

fn encode(copy: CopyId, epoch: Epoch, at: ExtentOffset, seeds: &[(u64, usize)]) -> Encoded {
    let payloads = seeds.iter().map(|&(seed, len)| vec![payload(seed, len)]).collect();
    FramedAppend::encode(copy, epoch, at, payloads)
}

fn added(frames: Vec<RawFrame>) -> Extension {
    Extension { frames, dead_to: None }
}

/// Appends one payload at the start of the extent. Returns where it lies and where the extent ends.
async fn first(node: &Node, copy: CopyId, len: usize) -> crate::capacity::Appended {
    let Encoded { append, appended } = encode(copy, ONE, START, &[(1, len)]);
    assert_eq!(node.append(append).await.unwrap(), appended.end);
    appended
}

#[test]
fn first_append_creates_the_copy_and_reads_are_verified_by_the_reader() {
    run(async {
        let node = Node::start(1).await;
        let sizes = [(1, 100), (2, 50_000), (3, 1_300_000)];
        let Encoded { append, appended } = encode(COPY, ONE, START, &sizes);
        assert_eq!(node.append(append).await.unwrap(), appended.end);
        for (location, (seed, len)) in appended.locations.iter().zip(sizes) {
            for range in [0..len as u64, 5..len as u64 - 7, 40..41] {
                let parts = node.read(location, range.clone()).await.unwrap();
                let read = verify(location, &range, &parts).unwrap().concat();
                let whole = payload(seed, len);
                assert_eq!(read, whole[index(range.start)..index(range.end)]);
                let mut wrong = parts.clone();
                let mut chunks = wrong[0].chunks.to_vec();
                chunks[0] ^= 1;
                wrong[0].chunks = chunks.into();
                assert!(matches!(verify(location, &range, &wrong), Err(Error::Corrupt { .. })));
                assert!(verify(location, &range, &parts[1..]).is_err(), "a part is missing");
                let more = [&parts[..], &parts[..1]].concat();
                assert!(verify(location, &range, &more).is_err(), "a part too many");
            }
        }
        let info = node.copy(ID).await.unwrap().unwrap();
        assert_eq!((info.state, info.end), (ExtentState::Open, appended.end));
        assert_eq!(node.copy(ExtentId::new(6)).await.unwrap(), None);
    });
}

#[test]
fn appends_that_do_not_fit_are_refused() {
    run(async {
        let node = Node::start(1).await;
        let later = encode(COPY, ONE, ExtentOffset::new(500), &[(1, 10)]).append;
        let refused = node.append(later).await;
        assert!(matches!(refused, Err(Error::NoSuchExtent { .. })), "{refused:?}");
        let end = first(&node, COPY, 100).await.end;

        let mut damaged = encode(COPY, ONE, end, &[(2, 100)]).append;
        let mut bytes = damaged.frames.concat();
        *bytes.last_mut().unwrap() ^= 1;
        damaged.frames = vec![bytes.into()];
        let refused = node.append(damaged).await;
        assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");

        let beyond = encode(COPY, ONE, ExtentOffset::new(end.get() + 8), &[(2, 10)]).append;
        let refused = node.append(beyond).await;
        assert!(
            matches!(refused, Err(Error::WrongOffset { expected, .. }) if expected == end),
            "{refused:?}"
        );
        assert_eq!(node.copy(ID).await.unwrap().unwrap().end, end);
    });
}

#[test]
fn append_that_arrives_again_is_answered_again_only_if_its_bytes_are_the_same() {
    for durability in [Durability::Durable, Durability::Deferred] {
        run(async {
            let node = Node::start(1).await;
            for (seed, len) in [(1, 100), (2, 60_000)] {
                let at = node.copy(ID).await.unwrap().map_or(START, |info| info.end);
                let Encoded { mut append, appended } = encode(COPY, ONE, at, &[(seed, len)]);
                append.durability = durability;
                for _ in 0..3 {
                    assert_eq!(node.append(append.clone()).await.unwrap(), appended.end);
                }
                let other = encode(COPY, ONE, at, &[(seed + 10, len)]).append;
                let refused = node.append(other).await;
                assert!(matches!(refused, Err(Error::WrongOffset { .. })), "{refused:?}");
                let longer = encode(COPY, ONE, at, &[(seed, len), (9, 10)]).append;
                let refused = node.append(longer).await;
                assert!(matches!(refused, Err(Error::WrongOffset { .. })), "{refused:?}");
            }
            let again = encode(COPY, ONE, START, &[(1, 100)]).append;
            node.append(again.clone()).await.unwrap();
            node.fence(COPY, TWO).await.unwrap();
            let refused = node.append(again).await;
            assert!(matches!(refused, Err(Error::Fenced { .. })), "{refused:?}");
        });
    }
}

#[test]
fn fence_makes_everything_durable() {
    run(async {
        let node = Node::start(1).await;
        let Encoded { mut append, appended } = encode(LOG, ONE, START, &[(1, 100_000)]);
        append.durability = Durability::Deferred;
        node.append(append).await.unwrap();
        assert_eq!(node.fence(LOG, TWO).await.unwrap(), appended.end);
        node.crash(true).await;
        let info = node.copy(ID).await.unwrap().unwrap();
        assert_eq!((info.end, info.epoch, info.incomplete), (appended.end, TWO, false));
    });
    // At the epoch that the copy has, the slot is not written, whose sync would also sync the rest.
    for seed in 1..9 {
        run(async {
            let node = Node::start(seed).await;
            let Encoded { mut append, appended } = encode(LOG, ONE, START, &[(1, 100_000)]);
            append.durability = Durability::Deferred;
            node.append(append).await.unwrap();
            assert_eq!(node.fence(LOG, ONE).await.unwrap(), appended.end);
            node.crash(true).await;
            assert_eq!(node.copy(ID).await.unwrap().unwrap().end, appended.end, "seed {seed}");
        });
    }
}

#[test]
fn fence_stops_writers_of_copies_that_do_not_exist_yet() {
    run(async {
        let node = Node::start(1).await;
        let unknown = CopyId { extent: ExtentId::new(77), ..LOG };
        assert_eq!(node.fence(unknown, TWO).await.unwrap(), START);
        let late = encode(unknown, ONE, START, &[(1, 10)]).append;
        let refused = node.append(late.clone()).await;
        assert!(matches!(refused, Err(Error::Fenced { .. })), "{refused:?}");
        node.crash(true).await;
        let refused = node.append(late).await;
        assert!(matches!(refused, Err(Error::Fenced { .. })), "{refused:?}");
    });
}

#[test]
fn start_closes_open_copies_and_seals_none() {
    for power in [false, true] {
        run(async {
            let node = Node::start(1).await;
            let appended = first(&node, COPY, 70_000).await;
            for _ in 0..2 {
                node.crash(power).await;
                let info = node.copy(ID).await.unwrap().unwrap();
                assert_eq!((info.state, info.end), (ExtentState::Closed, appended.end));
                assert!(!info.incomplete);
            }
            let more = encode(COPY, ONE, appended.end, &[(2, 10)]).append;
            let refused = node.append(more).await;
            assert!(matches!(refused, Err(Error::Sealed { .. })), "{refused:?}");
            let location = appended.locations[0];
            let parts = node.read(&location, 0..70_000).await.unwrap();
            let read = verify(&location, &(0..70_000), &parts).unwrap();
            assert_eq!(read.concat(), payload(1, 70_000));
            node.seal_at(ID, ONE, appended.end).await.unwrap();
            node.seal_at(ID, ONE, appended.end).await.unwrap();
            node.crash(power).await;
            assert_eq!(node.copy(ID).await.unwrap().unwrap().state, ExtentState::Sealed);
        });
    }
}

#[test]
fn seal_cuts_what_is_beyond_the_end_and_refuses_a_shorter_copy() {
    for (restart, len) in [(false, 100), (true, 100), (false, 90_000), (true, 90_000)] {
        run(async {
            let node = Node::start(1).await;
            let kept = first(&node, COPY, 40_000).await;
            let Encoded { append, appended } = encode(COPY, ONE, kept.end, &[(2, len), (3, 50)]);
            node.append(append).await.unwrap();
            if restart {
                node.crash(true).await;
            }
            let beyond = ExtentOffset::new(appended.end.get() + 1);
            let refused = node.seal_at(ID, ONE, beyond).await;
            assert!(matches!(refused, Err(Error::WrongOffset { .. })), "{refused:?}");
            node.seal_at(ID, ONE, kept.end).await.unwrap();
            let refused = node.seal_at(ID, ONE, appended.end).await;
            assert!(matches!(refused, Err(Error::WrongOffset { .. })), "{refused:?}");
            for _ in 0..2 {
                let info = node.copy(ID).await.unwrap().unwrap();
                assert_eq!((info.state, info.end), (ExtentState::Sealed, kept.end));
                let cut = node.read(&appended.locations[0], 0..1).await;
                assert!(matches!(cut, Err(Error::Corrupt { .. })), "{cut:?}");
                let parts = node.read(&kept.locations[0], 0..40_000).await.unwrap();
                verify(&kept.locations[0], &(0..40_000), &parts).unwrap();
                node.crash(true).await;
            }
        });
    }
}

#[test]
fn append_that_is_cut_off_while_it_waits_for_its_sync_is_not_answered() {
    for (len, skip) in [(100, 0), (70_000, 0), (70_000, 1)] {
        run(async {
            let node = Node::start(1).await;
            let kept = first(&node, COPY, 40_000).await;
            node.sim.stall_syncs(std::time::Duration::from_secs(5));
            let append = encode(COPY, ONE, kept.end, &[(2, len)]).append;
            let to = Arc::clone(&node);
            let waiting = Tasks::new().spawn("append", async move { to.append(append).await });
            tokio::time::sleep(std::time::Duration::from_secs(skip + 1)).await;
            node.seal_at(ID, TWO, kept.end).await.unwrap();
            let answer = waiting.await.unwrap();
            assert!(matches!(answer, Err(Error::Sealed { .. })), "{answer:?}");
            // The disk works on.
            let other = CopyId { extent: ExtentId::new(9), ..COPY };
            node.append(encode(other, ONE, START, &[(1, 10)]).append).await.unwrap();
        });
    }
}

#[test]
fn copy_is_made_from_frames_of_another_and_is_incomplete_until_it_is_sealed() {
    for crashes in [false, true] {
        run(copied(crashes));
    }
}

async fn copied(crashes: bool) {
    let (from, to) = (Node::start(1).await, Node::start(2).await);
    let mut end = START;
    let mut locations = Vec::new();
    for (seed, len) in [(1, 10), (2, 50_000), (3, 1_100_000), (4, 33), (5, 200_000)] {
        let Encoded { append, appended } = encode(COPY, ONE, end, &[(seed, len)]);
        from.append(append).await.unwrap();
        (end, locations) = (appended.end, [locations, appended.locations].concat());
    }
    from.seal_at(ID, ONE, end).await.unwrap();
    from.free(&locations[2..3]).await.unwrap();
    let (mut at, mut calls) = (START, 0);
    while at < end {
        let frames = from.frames(ID, at, 20_000).await.unwrap();
        at = to.extend(COPY, TWO, added(frames)).await.unwrap();
        calls += 1;
        if crashes {
            to.crash(true).await;
        }
        let info = to.copy(ID).await.unwrap().unwrap();
        assert_eq!((info.end, info.incomplete), (at, true));
    }
    assert!(calls > 1, "the test copies in one call");
    to.seal_at(ID, TWO, end).await.unwrap();
    let info = to.copy(ID).await.unwrap().unwrap();
    assert_eq!((info.state, info.incomplete), (ExtentState::Sealed, false));
    for location in [&locations[..2], &locations[3..]].concat() {
        let range = 0..location.len.get();
        let parts = to.read(&location, range.clone()).await.unwrap();
        verify(&location, &range, &parts).unwrap();
    }
    let freed = to.read(&locations[2], 0..1).await;
    let read = freed.and_then(|parts| verify(&locations[2], &(0..1), &parts));
    assert!(matches!(read, Err(Error::Corrupt { .. })), "it was freed before: {read:?}");
    // The simulated node has no catalog, and forgets at a start what was freed.
    if !crashes {
        assert_eq!(to.dead(ID).await.unwrap(), from.dead(ID).await.unwrap());
    }
    let refused = to.extend(COPY, TWO, added(Vec::new())).await;
    assert!(matches!(refused, Err(Error::Sealed { .. })), "{refused:?}");
}

#[test]
fn frames_that_do_not_fit_are_not_added() {
    run(async {
        let (from, to) = (Node::start(1).await, Node::start(2).await);
        first(&from, COPY, 50_000).await;
        let frames = from.frames(ID, START, 1).await.unwrap();
        let mut bytes = frames[0].bytes.to_vec();
        bytes[30_000] ^= 1;
        let damaged = vec![RawFrame { bytes: bytes.into(), ..frames[0].clone() }];
        let refused = to.extend(COPY, TWO, added(damaged)).await;
        assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
        let end = to.extend(COPY, TWO, added(frames.clone())).await.unwrap();
        let refused = to.extend(COPY, TWO, added(frames)).await;
        let again = matches!(refused, Err(Error::WrongOffset { expected, .. }) if expected == end);
        assert!(again, "{refused:?}");
        let far = Extension { frames: Vec::new(), dead_to: Some(ExtentOffset::new(u64::MAX)) };
        let refused = to.extend(COPY, TWO, far).await;
        assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
        let refused = to.extend(COPY, ONE, added(Vec::new())).await;
        assert!(matches!(refused, Err(Error::Fenced { .. })), "{refused:?}");
        assert_eq!(to.copy(ID).await.unwrap().unwrap().end, end);
    });
}

/// Its node has started again and has lost bytes that were not synced.
#[test]
fn flush_of_a_copy_that_lost_bytes_is_refused() {
    run(async {
        let node = Node::start(1).await;
        let kept = first(&node, COPY, 40_000).await;
        let Encoded { mut append, appended } = encode(COPY, ONE, kept.end, &[(2, 100_000)]);
        append.durability = Durability::Deferred;
        node.append(append).await.unwrap();
        node.crash(true).await;
        let refused = node.flush(ID, ONE, appended.end).await;
        let refused = matches!(refused, Err(Error::Sealed { .. } | Error::WrongOffset { .. }));
        assert!(refused, "a closed copy flushes nothing");
        let other = CopyId { extent: ExtentId::new(6), ..COPY };
        let Encoded { mut append, appended } = encode(other, ONE, START, &[(2, 100_000)]);
        append.durability = Durability::Deferred;
        node.append(append).await.unwrap();
        let beyond = ExtentOffset::new(appended.end.get() + 1);
        let refused = node.flush(other.extent, ONE, beyond).await;
        assert!(matches!(refused, Err(Error::WrongOffset { .. })), "{refused:?}");
        node.flush(other.extent, ONE, appended.end).await.unwrap();
        node.crash(true).await;
        assert_eq!(node.copy(other.extent).await.unwrap().unwrap().end, appended.end);
    });
}

/// A checkpoint waits for a sync while a seal cuts the copy.
#[test]
fn checkpoint_beside_a_seal_that_cuts_does_not_stop_the_disk() {
    for wait in [1, 2, 4, 6] {
        run(async {
            let node = Node::start(1).await;
            let kept = first(&node, COPY, 40_000).await;
            let Encoded { append, .. } = encode(COPY, ONE, kept.end, &[(2, 500)]);
            node.append(append).await.unwrap();
            node.sim.stall_syncs(std::time::Duration::from_secs(5));
            let inner = Arc::clone(&node);
            let checkpoint =
                Tasks::new().spawn("checkpoint", async move { inner.checkpoint().await });
            tokio::time::sleep(std::time::Duration::from_secs(wait)).await;
            node.seal_at(ID, TWO, kept.end).await.unwrap();
            checkpoint.await.unwrap().unwrap();
            let other = CopyId { extent: ExtentId::new(9), ..COPY };
            node.append(encode(other, ONE, START, &[(1, 10)]).append).await.unwrap();
        });
    }
}

/// The journal has records of the copy that was removed when the next one is made.
#[test]
fn copy_made_anew_gets_no_records_of_the_removed_one() {
    run(async {
        let node = Node::start(1).await;
        let source = Node::start(2).await;
        first(&node, COPY, 100).await;
        let other = encode(COPY, ONE, START, &[(7, 100)]);
        source.append(other.append).await.unwrap();
        node.remove(ID).await.unwrap();
        let frames = source.frames(ID, START, 1).await.unwrap();
        node.extend(COPY, TWO, added(frames)).await.unwrap();
        node.crash(false).await;
        node.seal_at(ID, TWO, other.appended.end).await.unwrap();
        let location = other.appended.locations[0];
        let parts = node.read(&location, 0..100).await.unwrap();
        assert_eq!(verify(&location, &(0..100), &parts).unwrap().concat(), payload(7, 100));
    });
}

/// The journal proves that the copy had more, and it is released by the same start. The next start
/// must still know.
#[test]
fn copy_that_lost_durable_bytes_stays_incomplete() {
    run(async {
        let node = Node::start(1).await;
        let kept = first(&node, COPY, 40_000).await;
        // The second append goes to the file, the third through the journal.
        let second = encode(COPY, ONE, kept.end, &[(2, 50_000)]);
        node.append(second.append).await.unwrap();
        let third = encode(COPY, ONE, second.appended.end, &[(3, 100)]);
        node.append(third.append).await.unwrap();
        let damaged = DATA_AT + kept.end.get() + 30_000;
        assert!(node.sim.flip(&path_of(ID), damaged));
        for _ in 0..3 {
            node.crash(false).await;
            let info = node.copy(ID).await.unwrap().unwrap();
            assert_eq!((info.end, info.incomplete), (kept.end, true));
        }
    });
}

#[test]
fn logs_that_their_owner_may_not_serve_from_are_named() {
    run(async {
        let node = Node::start(1).await;
        let log = |id| CopyId { extent: ExtentId::new(id), ..LOG };
        for id in 1..=4 {
            node.append(encode(log(id), ONE, START, &[(1, 10)]).append).await.unwrap();
        }
        let end = node.copy(ExtentId::new(1)).await.unwrap().unwrap().end;
        node.fence(log(2), TWO).await.unwrap();
        node.seal_at(ExtentId::new(3), ONE, end).await.unwrap();
        let ask = |epoch| {
            (1..=5).map(|id| OwnedLog { log: ExtentId::new(id), epoch }).collect::<Vec<_>>()
        };
        let named = |ids: &[u64]| ids.iter().map(|&id| ExtentId::new(id)).collect::<Vec<_>>();
        assert_eq!(node.fenced(&ask(ONE)).await.unwrap(), named(&[2, 3, 5]));
        assert_eq!(node.fenced(&ask(TWO)).await.unwrap(), named(&[1, 3, 4, 5]));
        node.crash(false).await;
        assert_eq!(node.fenced(&ask(ONE)).await.unwrap(), named(&[1, 2, 3, 4, 5]));
    });
}
