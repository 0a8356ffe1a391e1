//! The calls, one by one.

use std::time::Duration;

use super::*;
use crate::capacity::ExtentState;
use crate::capacity::copies::tests::cluster::Calls;
use crate::capacity::groups;
use crate::env::Fault;

#[test]
fn what_was_appended_is_read_from_any_member() {
    run(async {
        let cluster = Cluster::new(1).await;
        let extent = cluster.group(ExtentKind::Data).await.record.id().first();
        let writer = cluster.process(Some(1)).await;
        writer.create(extent, ExtentKind::Data, ONE).await.unwrap();
        let (mut end, mut written) = (ExtentOffset::START, Vec::new());
        for len in [1, 5_000, 70_000, 1_300_000] {
            let bytes = payload(len, len);
            let appended = append(&writer, extent, end, &bytes).await.unwrap();
            end = appended.end;
            written.push((appended.locations[0], bytes));
        }
        for first in 1..=3 {
            // Without the members before it, which it would ask first.
            let (reader, other) = (cluster.process(Some(first)).await, cluster.process(None).await);
            for (location, bytes) in &written {
                assert_eq!(read(&reader, location).await.unwrap(), bytes);
                assert_eq!(read(&other, location).await.unwrap(), bytes);
            }
            cluster.node(first).set_calls(Calls::Lost);
        }
        let (location, _) = &written[0];
        let error = read(&writer, location).await.unwrap_err();
        assert!(matches!(error, Error::NoAnswer { .. }), "{error}");
    });
}

#[test]
fn small_read_is_sent_to_the_next_member_when_one_takes_longer_than_usual() {
    run(async {
        let cluster = Cluster::new(4).await;
        let extent = cluster.group(ExtentKind::Data).await.record.id().first();
        let writer = cluster.process(None).await;
        writer.create(extent, ExtentKind::Data, ONE).await.unwrap();
        let bytes = [payload(1, 3_000), payload(2, 90_000)];
        let small = append(&writer, extent, ExtentOffset::START, &bytes[0]).await.unwrap();
        let large = append(&writer, extent, small.end, &bytes[1]).await.unwrap();
        let [small, large] = [small, large].map(|appended| appended.locations[0]);
        let reader = cluster.process(None).await;
        let timed = async |location: &Location| {
            let began = cluster.env.clock.monotonic();
            let read = read(&reader, location).await.unwrap();
            (read, cluster.env.clock.monotonic() - began)
        };
        // The first member is slow before it is known what is usual.
        cluster.node(1).block();
        assert!(timed(&small).await.1 >= Duration::from_millis(500));
        cluster.node(1).unblock();
        for _ in 0..200 {
            timed(&small).await;
        }
        cluster.node(1).block();
        let (read, took) = timed(&small).await;
        assert_eq!(read, bytes[0]);
        assert!(took < Duration::from_millis(100), "{took:?}");
        let (read, took) = timed(&large).await;
        assert_eq!(read, bytes[1]);
        assert!(took >= Duration::from_millis(500), "it takes long anyway: {took:?}");
    });
}

#[test]
fn extent_ends_cleanly_without_a_record() {
    run(async {
        let cluster = Cluster::new(2).await;
        let group = cluster.group(ExtentKind::Log).await.record.id();
        let extent = group.first();
        let writer = cluster.process(None).await;
        writer.create(extent, ExtentKind::Log, ONE).await.unwrap();
        let bytes = [payload(1, 10), payload(2, 300)];
        let first = append(&writer, extent, ExtentOffset::START, &bytes[0]).await.unwrap();
        let second = append(&writer, extent, first.end, &bytes[1]).await.unwrap();
        // The writer knows where its extent ends before it is sealed.
        assert_eq!(replay(&writer, extent).await.unwrap(), bytes);
        assert_eq!(writer.seal(extent, ONE).await.unwrap(), second.end);
        let record = groups::read(&*cluster.coordinator, group).await.unwrap().unwrap().record;
        assert_eq!(record.length(extent), None);
        let reader = cluster.process(Some(2)).await;
        assert_eq!(replay(&reader, extent).await.unwrap(), bytes);
        let error = append(&writer, extent, second.end, &bytes[0]).await.unwrap_err();
        assert!(matches!(error, Error::Sealed { .. }), "{error}");
    });
}

#[test]
fn silent_member_makes_the_writer_give_up_after_half_a_second() {
    run(async {
        let cluster = Cluster::new(3).await;
        let group = cluster.group(ExtentKind::Data).await.record.id();
        let extent = group.first();
        let writer = cluster.process(Some(1)).await;
        writer.create(extent, ExtentKind::Data, ONE).await.unwrap();
        let bytes = payload(1, 3_000);
        let first = append(&writer, extent, ExtentOffset::START, &bytes).await.unwrap();
        cluster.node(3).block();
        let begun = cluster.env.clock.monotonic();
        let error = append(&writer, extent, first.end, &bytes).await.unwrap_err();
        let took = cluster.env.clock.monotonic() - begun;
        assert!(matches!(error, Error::NoAnswer { .. }), "{error}");
        assert!((500..600).contains(&took.as_millis()), "{took:?}");
        // Two members agree on the end. It is at or after what was answered.
        let end = writer.seal(extent, ONE).await.unwrap();
        assert!(end >= first.end);
        let record = groups::read(&*cluster.coordinator, group).await.unwrap().unwrap().record;
        assert_eq!(record.length(extent), Some(end));
        assert_eq!(read(&writer, &first.locations[0]).await.unwrap(), bytes);
    });
}

#[test]
fn next_owner_fences_the_writer_and_replays_what_was_answered() {
    run(async {
        let cluster = Cluster::new(4).await;
        let extent = cluster.group(ExtentKind::Log).await.record.id().first();
        let (writer, owner) = (cluster.process(Some(1)).await, cluster.process(Some(2)).await);
        writer.create(extent, ExtentKind::Log, ONE).await.unwrap();
        let bytes: Vec<_> = (1..5).map(|seed| payload(seed, 50 * seed)).collect();
        let mut end = ExtentOffset::START;
        for bytes in &bytes {
            end = append(&writer, extent, end, bytes).await.unwrap().end;
        }
        // One member hears of nothing.
        cluster.node(1).set_calls(Calls::Lost);
        owner.fence(extent, TWO).await.unwrap();
        cluster.node(1).set_calls(Calls::Answered);
        let error = append(&writer, extent, end, &bytes[0]).await.unwrap_err();
        assert!(matches!(error, Error::Fenced { epoch: TWO, .. }), "{error}");
        assert!(owner.seal(extent, TWO).await.unwrap() >= end);
        let replayed = replay(&owner, extent).await.unwrap();
        assert_eq!(replayed[..4], bytes);
        // A late owner of a lower epoch changes nothing.
        let error = writer.fence(extent, ONE).await.unwrap_err();
        assert!(matches!(error, Error::Fenced { epoch: TWO, .. }), "{error}");
    });
}

#[test]
fn copy_whose_end_is_not_agreed_does_not_end_a_replay() {
    run(async {
        let cluster = Cluster::new(5).await;
        let extent = cluster.group(ExtentKind::Log).await.record.id().first();
        let writer = cluster.process(None).await;
        writer.create(extent, ExtentKind::Log, ONE).await.unwrap();
        let bytes = [payload(1, 100), payload(2, 200)];
        let first = append(&writer, extent, ExtentOffset::START, &bytes[0]).await.unwrap();
        // Node 1 misses the second append, and the agreement on the end.
        cluster.node(1).set_calls(Calls::Lost);
        append(&writer, extent, first.end, &bytes[1]).await.unwrap_err();
        let end = writer.seal(extent, ONE).await.unwrap();
        assert!(end > first.end);
        cluster.node(1).set_calls(Calls::Answered);
        assert_eq!(cluster.node(1).copy(extent).await.unwrap().unwrap().end, first.end);
        let reader = cluster.process(Some(1)).await;
        assert_eq!(replay(&reader, extent).await.unwrap(), bytes);
        // Alone it does not say where the log ends.
        cluster.node(2).set_calls(Calls::Lost);
        cluster.node(3).set_calls(Calls::Lost);
        replay(&reader, extent).await.unwrap_err();
    });
}

/// The longest copy may miss the agreement on a shorter end.
#[test]
fn frames_that_were_cut_off_elsewhere_are_not_replayed() {
    run(async {
        let cluster = Cluster::new(10).await;
        let group = cluster.group(ExtentKind::Log).await.record.id();
        let extent = group.first();
        let writer = cluster.process(None).await;
        writer.create(extent, ExtentKind::Log, ONE).await.unwrap();
        let bytes = [payload(1, 100), payload(2, 200)];
        let first = append(&writer, extent, ExtentOffset::START, &bytes[0]).await.unwrap();
        // Only node 1 gets the second append.
        for number in [2, 3] {
            cluster.node(number).set_calls(Calls::Lost);
        }
        append(&writer, extent, first.end, &bytes[1]).await.unwrap_err();
        cluster.node(1).set_calls(Calls::Lost);
        for number in [2, 3] {
            cluster.node(number).set_calls(Calls::Answered);
        }
        assert_eq!(writer.seal(extent, ONE).await.unwrap(), first.end);
        cluster.node(1).set_calls(Calls::Answered);
        assert!(cluster.node(1).copy(extent).await.unwrap().unwrap().end > first.end);
        let reader = cluster.process(Some(1)).await;
        assert_eq!(replay(&reader, extent).await.unwrap(), bytes[..1]);
    });
}

#[test]
fn long_log_is_replayed_in_stretches() {
    run(async {
        let cluster = Cluster::new(11).await;
        let extent = cluster.group(ExtentKind::Log).await.record.id().first();
        let writer = cluster.process(None).await;
        writer.create(extent, ExtentKind::Log, ONE).await.unwrap();
        let (mut end, mut written) = (ExtentOffset::START, Vec::new());
        for seed in 1..120 {
            let bytes = payload(seed, 100 + 300 * (seed % 100));
            end = append(&writer, extent, end, &bytes).await.unwrap().end;
            written.push(bytes);
        }
        writer.seal(extent, ONE).await.unwrap();
        let reader = cluster.process(Some(2)).await;
        let bytes = cluster.node(2).sent();
        assert_eq!(replay(&reader, extent).await.unwrap(), written);
        // Nothing is sent twice, but for a frame at the border of two stretches.
        assert!(cluster.node(2).sent() - bytes < 2 << 20);
        // From the middle, and back.
        let mut places = Vec::new();
        let mut at = ExtentOffset::START;
        while let Some(frame) = reader.next_frame(extent, at).await.unwrap() {
            places.push((at, frame.payload));
            at = frame.next;
        }
        for (at, payload) in [&places[50], &places[3], &places[4], &places[118], &places[0]] {
            assert_eq!(reader.next_frame(extent, *at).await.unwrap().unwrap().payload, *payload);
        }
    });
}

#[test]
fn removed_extent_is_gone_before_its_copies_are() {
    run(async {
        let cluster = Cluster::new(6).await;
        let group = cluster.group(ExtentKind::Log).await.record.id();
        let extents: Vec<_> = group.extents().take(2).collect();
        let writer = cluster.process(Some(1)).await;
        let mut written = Vec::new();
        for extent in &extents {
            writer.create(*extent, ExtentKind::Run, ONE).await.unwrap();
            let bytes = payload(1, 1_000);
            written.push(append(&writer, *extent, ExtentOffset::START, &bytes).await.unwrap());
        }
        writer.seal(extents[0], ONE).await.unwrap();
        // The other one was never sealed. Node 3 hears of nothing.
        cluster.node(3).set_calls(Calls::Lost);
        for extent in &extents {
            writer.remove(*extent).await.unwrap();
            writer.remove(*extent).await.unwrap();
            assert!(cluster.node(1).copy(*extent).await.unwrap().is_none());
        }
        let record = groups::read(&*cluster.coordinator, group).await.unwrap().unwrap().record;
        assert!(extents.iter().all(|extent| record.is_gone(*extent)));
        assert_eq!(record.gone().in_group(group).count(), 2);
        cluster.node(3).set_calls(Calls::Answered);
        assert!(cluster.node(3).copy(extents[0]).await.unwrap().is_some());
        let reader = cluster.process(Some(3)).await;
        let error = read(&reader, &written[0].locations[0]).await.unwrap_err();
        assert!(matches!(error, Error::NoSuchExtent { .. }), "{error}");
        assert!(reader.extents().await.is_empty());
    });
}

#[test]
fn extents_are_created_in_open_groups_of_their_kind() {
    run(async {
        let cluster = Cluster::new(7).await;
        let group = cluster.group(ExtentKind::Data).await.record.id();
        let [first, second] = [0, 1].map(|place| group.extents().nth(place).unwrap());
        let writer = cluster.process(Some(1)).await;
        let error = writer.create(first, ExtentKind::Log, ONE).await.unwrap_err();
        assert!(matches!(error, Error::NoSuchExtent { .. }), "{error}");
        let unknown = ExtentId::new(first.get() + 64_000);
        let error = writer.create(unknown, ExtentKind::Data, ONE).await.unwrap_err();
        assert!(matches!(error, Error::NoSuchExtent { .. }), "{error}");
        writer.create(first, ExtentKind::Data, ONE).await.unwrap();
        let error = writer.create(first, ExtentKind::Data, ONE).await.unwrap_err();
        assert!(matches!(error, Error::NoSuchExtent { .. }), "{error}");
        let closed = |record: &groups::GroupRecord| Ok(record.closed());
        groups::change(&*cluster.coordinator, group, &[], closed).await.unwrap();
        let late = cluster.process(Some(1)).await;
        let error = late.create(second, ExtentKind::Data, ONE).await.unwrap_err();
        assert!(matches!(error, Error::Sealed { .. }), "{error}");
    });
}

#[test]
fn deferred_appends_are_durable_after_the_flush() {
    run(async {
        let cluster = Cluster::new(8).await;
        let extent = cluster.group(ExtentKind::Data).await.record.id().first();
        let writer = cluster.process(None).await;
        writer.create(extent, ExtentKind::Data, ONE).await.unwrap();
        let (mut end, mut written) = (ExtentOffset::START, Vec::new());
        for seed in 1..4 {
            let bytes = payload(seed, 200_000);
            let deferred =
                AppendRequest { durability: Durability::Deferred, ..request(extent, end, &bytes) };
            let appended = writer.append(deferred).await.unwrap();
            end = appended.end;
            written.push((appended.locations[0], bytes));
        }
        writer.flush(extent, ONE).await.unwrap();
        for number in 1..=3 {
            cluster.node(number).crash(true).await;
        }
        let reader = cluster.process(Some(2)).await;
        for (location, bytes) in &written {
            assert_eq!(read(&reader, location).await.unwrap(), bytes);
        }
        // The nodes have closed their copies, and agree on an end that loses nothing.
        writer.flush(extent, ONE).await.unwrap();
        assert_eq!(writer.seal(extent, ONE).await.unwrap(), end);
        let error = append(&writer, extent, end, &payload(4, 10)).await.unwrap_err();
        assert!(matches!(error, Error::Sealed { .. }), "{error}");
    });
}

#[test]
fn deferred_appends_that_no_node_has_synced_are_not_answered() {
    run(async {
        let mut refused = 0;
        for seed in 0..12 {
            let cluster = Cluster::new(100 + seed).await;
            let extent = cluster.group(ExtentKind::Data).await.record.id().first();
            let writer = cluster.process(None).await;
            writer.create(extent, ExtentKind::Data, ONE).await.unwrap();
            let first = append(&writer, extent, ExtentOffset::START, &payload(1, 10)).await;
            let bytes = payload(2, 200_000);
            let request = request(extent, first.unwrap().end, &bytes);
            let deferred = AppendRequest { durability: Durability::Deferred, ..request };
            let appended = writer.append(deferred).await.unwrap();
            for number in 1..=3 {
                cluster.node(number).crash(true).await;
            }
            // A disk may have written it all the same.
            match writer.flush(extent, ONE).await {
                Ok(()) => {
                    assert_eq!(read(&writer, &appended.locations[0]).await.unwrap(), bytes);
                }
                Err(_) => {
                    refused += 1;
                    // Nor is it said so later.
                    writer.flush(extent, ONE).await.unwrap_err();
                }
            }
        }
        assert!(refused > 0, "every disk has written everything");
    });
}

/// A body may span two extents. It is flushed when the first one was sealed already.
#[test]
fn everything_in_a_sealed_extent_is_flushed() {
    run(async {
        let cluster = Cluster::new(12).await;
        let group = cluster.group(ExtentKind::Data).await.record.id();
        let [clean, unclean] = [0, 1].map(|place| group.extents().nth(place).unwrap());
        let writer = cluster.process(None).await;
        for extent in [clean, unclean] {
            writer.create(extent, ExtentKind::Data, ONE).await.unwrap();
            let request = request(extent, ExtentOffset::START, &payload(1, 200_000));
            let deferred = AppendRequest { durability: Durability::Deferred, ..request };
            let end = writer.append(deferred).await.unwrap().end;
            if extent == unclean {
                cluster.node(2).set_calls(Calls::Lost);
                append(&writer, extent, end, &payload(2, 10)).await.unwrap_err();
                cluster.node(2).set_calls(Calls::Answered);
            }
            writer.seal(extent, ONE).await.unwrap();
        }
        writer.flush(clean, ONE).await.unwrap();
        // All members had everything that was answered.
        writer.flush(unclean, ONE).await.unwrap();
        let error = append(&writer, clean, ExtentOffset::START, &payload(1, 1)).await.unwrap_err();
        assert!(matches!(error, Error::Sealed { .. }), "{error}");
        assert_eq!(writer.seal(clean, ONE).await.unwrap(), writer.seal(clean, ONE).await.unwrap());
    });
}

#[test]
fn extent_of_another_process_is_ended_above_its_epoch() {
    run(async {
        let cluster = Cluster::new(13).await;
        let extent = cluster.group(ExtentKind::Data).await.record.id().first();
        let (writer, other) = (cluster.process(None).await, cluster.process(None).await);
        writer.create(extent, ExtentKind::Data, ONE).await.unwrap();
        let bytes = payload(1, 100);
        let first = append(&writer, extent, ExtentOffset::START, &bytes).await.unwrap();
        assert_eq!(other.seal(extent, ONE).await.unwrap(), first.end);
        for number in 1..=3 {
            let copy = cluster.node(number).copy(extent).await.unwrap().unwrap();
            assert_eq!((copy.state, copy.epoch), (ExtentState::Sealed, TWO));
        }
        append(&writer, extent, first.end, &bytes).await.unwrap_err();
        assert_eq!(writer.seal(extent, ONE).await.unwrap(), first.end);
    });
}

#[test]
fn removed_extent_that_was_never_used_is_left_to_its_group() {
    run(async {
        let cluster = Cluster::new(14).await;
        let group = cluster.group_of(ExtentKind::Log, HERE).await.record.id();
        let extent = group.first();
        let writer = cluster.process(None).await;
        writer.create(extent, ExtentKind::Log, ONE).await.unwrap();
        writer.remove(extent).await.unwrap();
        for number in 1..=3 {
            assert!(cluster.node(number).copy(extent).await.unwrap().is_none());
        }
        let record = groups::read(&*cluster.coordinator, group).await.unwrap().unwrap().record;
        assert!(!record.is_gone(extent));
        let error = append(&writer, extent, ExtentOffset::START, &payload(1, 1)).await.unwrap_err();
        assert!(matches!(error, Error::Sealed { .. }), "{error}");
    });
}

/// Its first append may be on its way from a process that stands still.
#[test]
fn extent_of_another_process_is_removed_when_it_cannot_be_created_any_more() {
    run(async {
        let cluster = Cluster::new(17).await;
        let group = cluster.group(ExtentKind::Log).await.record.id();
        let extent = group.first();
        let other = cluster.process(None).await;
        other.create(extent, ExtentKind::Log, ONE).await.unwrap();
        let next = cluster.process(None).await;
        let error = next.remove(extent).await.unwrap_err();
        assert!(matches!(error, Error::NoAnswer { .. }), "{error}");
        append(&other, extent, ExtentOffset::START, &payload(1, 1)).await.unwrap();
        let error = next.remove(extent).await.unwrap_err();
        assert!(matches!(error, Error::NoAnswer { .. }), "the group is open: {error}");
        let closed = |record: &groups::GroupRecord| Ok(record.closed());
        groups::change(&*cluster.coordinator, group, &[], closed).await.unwrap();
        let next = cluster.process(None).await;
        next.remove(extent).await.unwrap();
        let record = groups::read(&*cluster.coordinator, group).await.unwrap().unwrap().record;
        assert!(record.is_gone(extent));
        for number in 1..=3 {
            assert!(cluster.node(number).copy(extent).await.unwrap().is_none());
        }
    });
}

#[test]
fn trouble_of_another_nodes_disk_is_no_answer_here() {
    run(async {
        let cluster = Cluster::new(15).await;
        let extent = cluster.group(ExtentKind::Data).await.record.id().first();
        let writer = cluster.process(None).await;
        writer.create(extent, ExtentKind::Data, ONE).await.unwrap();
        let bytes = payload(1, 100);
        let first = append(&writer, extent, ExtentOffset::START, &bytes).await.unwrap();
        cluster.node(2).sim.fail_once(Fault::SyncError, 0);
        let error = append(&writer, extent, first.end, &bytes).await.unwrap_err();
        assert!(matches!(error, Error::NoAnswer { .. }), "{error}");
        assert_eq!(read(&writer, &first.locations[0]).await.unwrap(), bytes);
    });
}

#[test]
fn frees_and_scrubs_reach_all_copies() {
    run(async {
        let cluster = Cluster::new(9).await;
        let extent = cluster.group(ExtentKind::Data).await.record.id().first();
        let writer = cluster.process(Some(1)).await;
        writer.create(extent, ExtentKind::Data, ONE).await.unwrap();
        let bytes = payload(1, 50_000);
        let first = append(&writer, extent, ExtentOffset::START, &bytes).await.unwrap();
        let second = append(&writer, extent, first.end, &bytes).await.unwrap();
        writer.seal(extent, ONE).await.unwrap();
        let report = writer.scrub(extent).await.unwrap();
        assert_eq!((report.frames, report.corrupt.len()), (6, 0));
        writer.free(&first.locations).await.unwrap();
        for number in 1..=3 {
            assert!(!cluster.node(number).dead(extent).await.unwrap().is_empty(), "{number}");
        }
        read(&writer, &first.locations[0]).await.unwrap_err();
        assert_eq!(read(&writer, &second.locations[0]).await.unwrap(), bytes);
        let extents = writer.extents().await;
        assert_eq!(extents.len(), 1);
        assert_eq!((extents[0].state, extents[0].len), (ExtentState::Sealed, second.end.get()));
        assert!(!writer.is_whole());
    });
}
