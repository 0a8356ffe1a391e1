//! Damaged copies are mended from other copies.

use std::time::Duration;

use super::*;
use crate::capacity::CopyInfo;
use crate::capacity::Damage;
use crate::capacity::ExtentState;
use crate::capacity::LocalMember;
use crate::capacity::Mended;
use crate::capacity::copies::EndRecord;
use crate::capacity::copies::tests::cluster::Calls;
use crate::capacity::disk::store::path_of;
use crate::capacity::groups;
use crate::types::GroupId;

/// Sealed extents of a group, and what is in them.
struct Filled {
    cluster: Cluster,
    group: GroupId,
    /// The process on node 1.
    capacity: ClusterCapacity,
    written: Vec<(Location, Bytes)>,
}

/// Payloads of these lengths, in each of so many extents.
async fn filled(seed: u64, extents: u64, lens: &[u64]) -> Filled {
    let cluster = Cluster::new(seed).await;
    let group = cluster.group(ExtentKind::Data).await.record.id();
    let capacity = cluster.process(Some(1)).await;
    let mut written = Vec::new();
    for extent in group.extents().take(usize::try_from(extents).unwrap()) {
        capacity.create(extent, ExtentKind::Data, ONE).await.unwrap();
        let mut end = ExtentOffset::START;
        for len in lens {
            let bytes = payload(*len, *len);
            let appended = append(&capacity, extent, end, &bytes).await.unwrap();
            end = appended.end;
            written.push((appended.locations[0], bytes));
        }
        capacity.seal(extent, ONE).await.unwrap();
    }
    for node in 1..=3 {
        cluster.node(node).checkpoint().await.unwrap();
    }
    Filled { cluster, group, capacity, written }
}

impl Filled {
    fn local(&self) -> LocalMember {
        self.cluster.node(1).member()
    }

    fn extent(&self) -> ExtentId {
        self.group.first()
    }

    /// Damages a byte of a frame of a node.
    fn flip(&self, node: u64, at: ExtentOffset) {
        let path = path_of(self.extent());
        assert!(self.cluster.node(node).sim.flip(&path, 4096 + at.get()));
    }

    /// Scrubs the first extent of node 1. Returns how many frames are damaged.
    async fn scrub(&self) -> usize {
        self.local().scrub(self.extent()).await.unwrap().corrupt.len()
    }

    /// Lets node 1 mend what it has found.
    async fn mend(&self) {
        let local = self.local();
        tokio::select! {
            biased;
            () = self.capacity.mend_local(&local) => {}
            () = self.capacity.env.clock.sleep(Duration::from_secs(5)) => {}
        }
    }

    /// Node 1 alone has all bytes.
    async fn assert_node_has_all(&self) {
        for other in [2, 3] {
            self.cluster.node(other).set_calls(Calls::Lost);
        }
        for (location, bytes) in &self.written {
            assert_eq!(read(&self.capacity, location).await.unwrap(), bytes);
        }
    }
}

#[test]
fn damaged_frames_are_mended_with_those_of_another_copy() {
    run(async {
        let it = filled(31, 1, &[3_000, 3_000, 40_000, 200, 3_000, 3_000, 70_000]).await;
        let at = |place: usize| it.written[place].0.offset;
        // A payload, the heads of two frames in a row, and of the last one.
        for offset in [at(0) + 900, at(3) + 25, at(4) + 25, at(6) + 25] {
            it.flip(1, offset);
        }
        assert!(it.scrub().await >= 3);
        it.mend().await;
        assert_eq!(it.scrub().await, 0);
        // It is durable.
        it.cluster.node(1).crash(true).await;
        assert_eq!(it.scrub().await, 0);
        it.assert_node_has_all().await;
    });
}

#[test]
fn reader_tells_the_node_of_a_damaged_copy() {
    run(async {
        let it = filled(32, 1, &[3_000, 3_000]).await;
        let (location, bytes) = &it.written[1];
        it.flip(1, location.offset + 900);
        assert_eq!(read(&it.capacity, location).await.unwrap(), bytes);
        it.mend().await;
        assert_eq!(it.scrub().await, 0);
        it.assert_node_has_all().await;
    });
}

#[test]
fn end_of_a_file_that_was_cut_off_comes_back() {
    run(async {
        let it = filled(33, 1, &[3_000; 40]).await;
        let file = it.cluster.node(1).sim.disk().open(&path_of(it.extent())).await.unwrap();
        file.set_len(4096 + it.written[20].0.offset.get() + 100).await.unwrap();
        file.sync().await.unwrap();
        let _damage = it.scrub().await;
        it.mend().await;
        assert_eq!(it.scrub().await, 0);
        it.assert_node_has_all().await;
    });
}

/// Whatever is left of the frame where the cut is.
#[test]
fn file_is_mended_wherever_it_was_cut() {
    run(async {
        for (seed, cut) in (40..).zip([1, 1_500, 3_000, 4_095, 4_096, 4_097, 6_000, 7_777]) {
            let it =
                filled(seed, 1, &[1_000, 6_000, 200, 3_000, 500, 6_000, 100, 900, 6_000]).await;
            let file = it.cluster.node(1).sim.disk().open(&path_of(it.extent())).await.unwrap();
            file.set_len(4096 + cut).await.unwrap();
            file.sync().await.unwrap();
            let _damage = it.scrub().await;
            it.mend().await;
            assert_eq!(it.scrub().await, 0, "cut at {cut}");
            it.mend().await;
            it.assert_node_has_all().await;
        }
    });
}

/// Nobody hurries another one, and healthy copies are not taken for damaged ones.
#[test]
fn places_where_no_frame_starts_and_damage_of_all_make_nobody_busy() {
    run(async {
        let it = filled(37, 1, &[3_000; 3]).await;
        let damaged = it.written[1].0.offset;
        (1..=3).for_each(|node| it.flip(node, damaged + 900));
        let middle = Damage { extent: it.extent(), offset: it.written[2].0.offset + 77 };
        let local = it.local();
        local.damages().note(middle);
        assert_eq!(it.scrub().await, 1);
        let before = it.cluster.node(2).sent() + it.cluster.node(3).sent();
        let all = [1, 2, 3].map(|node| it.cluster.node(node).member());
        let others = [it.cluster.process(Some(2)).await, it.cluster.process(Some(3)).await];
        tokio::select! {
            biased;
            () = it.capacity.mend_local(&all[0]) => {}
            () = others[0].mend_local(&all[1]) => {}
            () = others[1].mend_local(&all[2]) => {}
            () = it.capacity.env.clock.sleep(Duration::from_secs(3_600)) => {}
        }
        let sent = it.cluster.node(2).sent() + it.cluster.node(3).sent() - before;
        assert!(sent < 1 << 20, "{sent} bytes in an hour");
        assert_eq!(it.scrub().await, 1);
    });
}

#[test]
fn damage_waits_until_another_copy_can_be_read() {
    run(async {
        let it = filled(34, 1, &[3_000; 3]).await;
        let damaged = it.written[1].0.offset;
        it.flip(1, damaged + 900);
        // The second copy has the same damage, and the third is away.
        it.flip(2, damaged + 900);
        it.cluster.node(3).set_calls(Calls::Lost);
        assert_eq!(it.scrub().await, 1);
        it.mend().await;
        assert_eq!(it.scrub().await, 1);
        it.cluster.node(3).set_calls(Calls::Answered);
        it.capacity.env.clock.sleep(Duration::from_secs(60)).await;
        it.mend().await;
        assert_eq!(it.scrub().await, 0);
        it.assert_node_has_all().await;
    });
}

/// Its file is missing, so that no frame is found.
#[test]
fn copy_without_a_file_is_made_again() {
    run(async {
        // More than may be open at a time.
        let it = filled(35, 8, &[3_000, 40_000]).await;
        let extent = it.extent();
        let before = it.local().copy(extent).await.unwrap().unwrap();
        for (location, _) in &it.written[2..] {
            read(&it.capacity, location).await.unwrap();
        }
        it.cluster.node(1).sim.disk().remove(&path_of(extent)).await.unwrap();
        it.local().scrub(extent).await.unwrap_err();
        // It is not removed while no other copy can be read.
        for other in [2, 3] {
            it.cluster.node(other).set_calls(Calls::Lost);
        }
        it.mend().await;
        assert_eq!(it.local().copy(extent).await.unwrap(), Some(before));
        let record = groups::read(&*it.cluster.coordinator, it.group).await.unwrap().unwrap();
        assert_eq!(record.record.length(extent), None);
        for other in [2, 3] {
            it.cluster.node(other).set_calls(Calls::Answered);
        }
        it.capacity.env.clock.sleep(Duration::from_secs(60)).await;
        it.mend().await;
        assert_eq!(it.scrub().await, 0);
        let CopyInfo { state, end, incomplete, .. } =
            it.local().copy(extent).await.unwrap().unwrap();
        assert_eq!((state, end, incomplete), (ExtentState::Sealed, before.end, false));
        // Nobody takes the missing copy for one of an extent without bytes, at any time.
        let record = groups::read(&*it.cluster.coordinator, it.group).await.unwrap().unwrap();
        assert_eq!(record.record.length(extent), Some(before.end));
        it.assert_node_has_all().await;
    });
}

/// The node dies after it has removed a damaged copy, and before another one is made.
#[test]
fn copy_that_was_only_removed_is_made_again_after_the_next_start() {
    run(async {
        let it = filled(37, 1, &[3_000, 40_000]).await;
        let extent = it.extent();
        let before = it.local().copy(extent).await.unwrap().unwrap();
        let recorded = it.capacity.ends.record(extent, before.end).await;
        assert_eq!(recorded, Ok(before.end));
        it.cluster.heed().await;
        it.local().remove(extent).await.unwrap();
        it.cluster.node(1).crash(false).await;
        assert_eq!(it.local().copy(extent).await.unwrap(), None);
        it.local().note_missing();
        it.mend().await;
        let CopyInfo { state, end, incomplete, .. } =
            it.local().copy(extent).await.unwrap().unwrap();
        assert_eq!((state, end, incomplete), (ExtentState::Sealed, before.end, false));
        it.assert_node_has_all().await;
    });
}

/// What lies between a small frame and the next page may be padding, or a damaged frame.
#[test]
fn damaged_frame_before_a_page_is_not_left_out_by_who_copies_it() {
    run(async {
        let it = filled(38, 1, &[3_000, 200, 600_000]).await;
        let [small, large] = [1, 2].map(|place| it.written[place].0.offset);
        let copy = it.cluster.node(2).member();
        it.flip(2, small + 2);
        let read = copy.frames(it.extent(), small, 1).await;
        assert!(matches!(read, Err(Error::Corrupt { .. })), "{read:?}");
        let frames = copy.frames(it.extent(), large, 1).await.unwrap();
        assert_eq!(frames[0].offset, large);
    });
}

#[test]
fn intact_and_freed_frames_and_other_bytes_are_left_alone() {
    run(async {
        let it = filled(36, 1, &[3_000; 3]).await;
        let (extent, local) = (it.extent(), it.local());
        let (freed, kept) = (it.written[0].0, it.written[1].0);
        let frames = it.cluster.node(2).frames(extent, ExtentOffset::START, 1 << 20).await.unwrap();
        assert_eq!(frames.len(), 3);
        let intact = Mended { intact_at: Some(frames[1].offset), ..Mended::default() };
        assert_eq!(local.mend(extent, vec![frames[1].clone()]).await.unwrap(), intact);
        local.free(&[freed]).await.unwrap();
        let left = local.mend(extent, vec![frames[0].clone()]).await.unwrap();
        assert_eq!(left, Mended::default());
        let mut wrong = frames[1].clone();
        wrong.offset = frames[2].offset;
        let error = local.mend(extent, vec![wrong]).await.unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        // A place that is not damaged, an extent that nobody knows, and one that was never made.
        for extent in [extent, ExtentId::new(7), it.group.extents().nth(9).unwrap()] {
            let damage = Damage { extent, offset: kept.offset };
            assert_eq!(it.capacity.mend(damage, &local).await.unwrap(), 0);
        }
        it.cluster.node(1).checkpoint().await.unwrap();
        assert_eq!(it.scrub().await, 0);
    });
}
