//! Damage, lost catalogs and freed space, on the machine's disk.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use bytes::Bytes;

use super::node::{DATA, LOG, ONE, Rig};
use super::payload;
use crate::capacity::units::size;
use crate::capacity::*;
use crate::env::disk_os::OsDisk;
use crate::env::{Disk, Tasks};
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;

pub(super) fn flip(path: &Path, offset: u64) {
    let mut byte = [0];
    let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], offset).unwrap();
}

fn allocated(path: &Path) -> u64 {
    fs::metadata(path).unwrap().blocks() * 512
}

/// Appends `count` payloads of `len` bytes and returns where they are.
pub(super) async fn fill(
    rig: &Rig,
    extent: ExtentId,
    count: u64,
    len: u64,
) -> Vec<(Location, Bytes)> {
    let kind = if extent == LOG { ExtentKind::Log } else { ExtentKind::Data };
    rig.node().create(extent, kind, ONE).await.unwrap();
    let mut end = 0;
    let mut stored = Vec::new();
    for seed in 0..count {
        let bytes = payload(seed, len);
        let one = std::slice::from_ref(&bytes);
        let appended = rig.append(extent, end, one, Durability::Durable).await.unwrap();
        end = appended.end.get();
        stored.push((appended.locations[0], bytes));
    }
    stored
}

#[tokio::test]
async fn flipped_byte_fails_its_frame_alone_and_the_scrub_reports_it() {
    let mut rig = Rig::new().await;
    let stored = fill(&rig, DATA, 20, 3000).await;
    rig.node().seal(DATA, ONE).await.unwrap();
    rig.stop(true).await;
    let damaged = stored[7].0;
    flip(&rig.extent_file(DATA), 4096 + damaged.offset.get() + 1000);
    rig.start().await;
    for (location, bytes) in &stored {
        match rig.read(location).await {
            Ok(read) => assert_eq!(read, *bytes),
            Err(error) => {
                assert_eq!(*location, damaged);
                assert!(matches!(error, Error::Corrupt { offset, .. } if offset == damaged.offset));
            }
        }
    }
    assert_eq!(rig.metrics.corrupt_frames.get(), 1);
    let report = rig.node().scrub(DATA).await.unwrap();
    assert_eq!(report.corrupt, vec![(DATA, damaged.offset)]);
    assert_eq!(report.frames, 20);
    rig.stop(true).await;
    let disk = OsDisk::open(rig.path(), Tasks::new()).unwrap();
    let mut calls = 0;
    let checked = check_disk(&disk, 0, &mut |_| calls += 1).await.unwrap();
    let problem = Problem::Frame { extent: DATA, offset: damaged.offset.get() };
    assert_eq!((checked.problems, checked.frames, calls), (vec![problem], 20, 1));
}

#[tokio::test]
async fn damaged_header_of_a_frame_does_not_hide_the_frames_after_it() {
    let mut rig = Rig::new().await;
    let stored = fill(&rig, LOG, 20, 3000).await;
    rig.node().seal(LOG, ONE).await.unwrap();
    rig.stop(true).await;
    flip(&rig.extent_file(LOG), 4096 + stored[7].0.offset.get() + 25);
    rig.start().await;
    let report = rig.node().scrub(LOG).await.unwrap();
    assert_eq!((report.corrupt, report.frames), (vec![(LOG, stored[7].0.offset)], 19));
    assert_eq!(rig.read(&stored[8].0).await.unwrap(), stored[8].1);
    assert!(matches!(
        rig.node().next_frame(LOG, stored[7].0.offset).await,
        Err(Error::Corrupt { .. })
    ));
}

/// Zeros that fill the rest of a page are padding, not a hole of a free: a frame follows them.
#[tokio::test]
async fn scrub_names_a_damaged_head_behind_padding_it_does_not_know() {
    let mut rig = Rig::new().await;
    rig.node().create(DATA, ExtentKind::Data, ONE).await.unwrap();
    let small = rig.append(DATA, 0, &[payload(1, 100)], Durability::Durable).await.unwrap();
    let large = [payload(2, 40_000)];
    let large = rig.append(DATA, small.end.get(), &large, Durability::Durable).await.unwrap();
    let end = rig.node().seal(DATA, ONE).await.unwrap();
    rig.stop(true).await;
    fs::remove_dir_all(rig.path().join("catalog")).unwrap();
    assert!(large.locations[0].offset > small.end, "no padding");
    let padding_list = 4096 + end.get().next_multiple_of(4096);
    flip(&rig.extent_file(DATA), padding_list);
    flip(&rig.extent_file(DATA), 4096 + large.locations[0].offset.get() + 25);
    rig.start().await;
    let report = rig.node().scrub(DATA).await.unwrap();
    assert_eq!((report.corrupt, report.frames), (vec![(DATA, large.locations[0].offset)], 1));
}

#[tokio::test]
async fn extent_with_a_damaged_first_page_keeps_its_frames() {
    let mut rig = Rig::new().await;
    let stored = fill(&rig, DATA, 20, 3000).await;
    rig.node().seal(DATA, ONE).await.unwrap();
    rig.stop(true).await;
    fs::remove_dir_all(rig.path().join("catalog")).unwrap();
    flip(&rig.extent_file(DATA), 9);
    rig.start().await;
    for (location, bytes) in &stored {
        assert_eq!(rig.read(location).await.unwrap(), *bytes);
    }
}

#[tokio::test]
async fn journal_damage_before_its_end_refuses_to_start() {
    let mut rig = Rig::new().await;
    fill(&rig, LOG, 5, 1000).await;
    rig.stop(false).await;
    // The ring starts at 8192, one batch a page, numbered from 2: the second of five.
    flip(&rig.path().join("journal"), 8192 + 4096 + 100);
    let error = rig.try_start().await.unwrap_err();
    assert!(error.to_string().contains("journal batch 3 at byte 12288 is damaged"), "{error}");
    flip(&rig.path().join("journal"), 8192 + 4096 + 100);
    rig.stopped_start().await;
    assert_eq!(rig.node().extents().await[0].len, end_after(ExtentOffset::START, &[1000; 5]).get());
}

#[tokio::test]
async fn torn_last_batch_is_cut() {
    let mut rig = Rig::new().await;
    let stored = fill(&rig, LOG, 5, 1000).await;
    rig.stop(false).await;
    flip(&rig.path().join("journal"), 8192 + 4 * 4096 + 100);
    rig.start().await;
    assert_eq!(rig.node().extents().await[0].len, end_after(ExtentOffset::START, &[1000; 4]).get());
    assert_eq!(rig.read(&stored[3].0).await.unwrap(), stored[3].1);
    assert!(matches!(rig.read(&stored[4].0).await, Err(Error::Corrupt { .. })));
}

#[tokio::test]
async fn journal_that_was_cut_refuses_to_start() {
    let mut rig = Rig::new().await;
    fill(&rig, LOG, 5, 1000).await;
    rig.stop(false).await;
    let journal = rig.path().join("journal");
    let file = fs::OpenOptions::new().write(true).open(&journal).unwrap();
    file.set_len(8192 + 2 * 4096).unwrap();
    let error = rig.try_start().await.unwrap_err();
    assert!(
        matches!(error, OpenError::Journal { error: JournalError::Short { .. }, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn both_superblocks_damaged_refuses_to_start() {
    let mut rig = Rig::new().await;
    rig.stop(true).await;
    flip(&rig.path().join("journal"), 10);
    flip(&rig.path().join("journal"), 4096 + 10);
    let error = rig.try_start().await.unwrap_err();
    assert!(matches!(error, OpenError::Journal { error: JournalError::Superblock, .. }));
}

#[tokio::test]
async fn frees_survive_a_restart_by_the_catalog_alone() {
    let mut rig = Rig::new().await;
    let stored = fill(&rig, DATA, 10, 2000).await;
    rig.node().seal(DATA, ONE).await.unwrap();
    rig.node().free(&[stored[3].0, stored[4].0]).await.unwrap();
    rig.restart(true).await;
    assert!(matches!(rig.read(&stored[3].0).await, Err(Error::Corrupt { .. })));
    assert_eq!(rig.read(&stored[5].0).await.unwrap(), stored[5].1);
    let freed = rig.node().extents().await[0].freed;
    assert_eq!(freed, 2 * (2000 + 52));
}

#[tokio::test]
async fn catalog_may_be_deleted_or_damaged_at_any_time() {
    for damage in ["delete", "garbage", "flip"] {
        let mut rig = Rig::new().await;
        let stored = fill(&rig, DATA, 10, 2000).await;
        rig.node().seal(DATA, ONE).await.unwrap();
        rig.node().free(&[stored[3].0]).await.unwrap();
        rig.restart(true).await;
        rig.stop(true).await;
        let catalog = rig.path().join("catalog");
        match damage {
            "delete" => fs::remove_dir_all(&catalog).unwrap(),
            "garbage" => garble(&catalog),
            _ => flip(&catalog.join("db"), 40),
        }
        rig.start().await;
        for (n, (location, bytes)) in stored.iter().enumerate() {
            if n != 3 {
                assert_eq!(rig.read(location).await.unwrap(), *bytes, "{damage}");
            }
        }
        // The audit repeats the frees that the catalog has lost.
        let live: Vec<_> = stored[5..].iter().map(|(l, _)| rig.node().frames_of(l)).collect();
        rig.node().retain(DATA, &live, Audited::Whole).await.unwrap();
        assert!(matches!(rig.read(&stored[3].0).await, Err(Error::Corrupt { .. })));
        rig.restart(true).await;
        assert_eq!(rig.node().extents().await[0].freed, 5 * (2000 + 52));
        rig.node().retain(DATA, &[], Audited::Whole).await.unwrap();
        assert!(!rig.extent_file(DATA).exists());
    }
}

#[expect(clippy::disallowed_methods, reason = "tests damage files behind the disk's back")]
fn garble(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::write(path, [0xa5; 5000]).unwrap();
        }
    }
}

#[tokio::test]
async fn freed_frames_give_their_pages_back_and_an_empty_extent_its_file() {
    let rig = Rig::new().await;
    let stored = fill(&rig, DATA, 64, 100_000).await;
    rig.node().free(&[stored[0].0]).await.unwrap();
    rig.node().seal(DATA, ONE).await.unwrap();
    let file = rig.extent_file(DATA);
    let before = allocated(&file);
    assert!(before < 64 * 110_000, "space beyond the end was not given back");
    let most: Vec<Location> = stored[..58].iter().map(|(l, _)| *l).collect();
    rig.node().free(&most).await.unwrap();
    rig.node().free(&most).await.unwrap();
    let live = 6 * 102_400;
    assert!(allocated(&file) < live + live / 4, "{} for {live} live", allocated(&file));
    for (location, bytes) in &stored[58..] {
        assert_eq!(rig.read(location).await.unwrap(), *bytes);
    }
    assert_eq!(rig.node().scrub(DATA).await.unwrap().corrupt, vec![]);
    let rest: Vec<Location> = stored[58..].iter().map(|(l, _)| *l).collect();
    rig.node().free(&rest).await.unwrap();
    assert!(!file.exists());
    assert_eq!(rig.node().extents().await, vec![]);
    assert!(matches!(rig.read(&rest[0]).await, Err(Error::NoSuchExtent { .. })));
    rig.node().free(&rest).await.unwrap();
    rig.node().remove(DATA).await.unwrap();
}

#[tokio::test]
async fn small_frames_freed_together_give_back_the_pages_they_shared() {
    let rig = Rig::new().await;
    let stored = fill(&rig, DATA, 400, 1000).await;
    rig.node().seal(DATA, ONE).await.unwrap();
    let file = rig.extent_file(DATA);
    let before = allocated(&file);
    // Every second one first: no page is wholly dead. Then the rest of the first half, one by one.
    let even: Vec<Location> = stored.iter().step_by(2).map(|(l, _)| *l).collect();
    rig.node().free(&even).await.unwrap();
    assert_eq!(allocated(&file), before);
    for (location, _) in stored.iter().skip(1).step_by(2).take(100) {
        rig.node().free(&[*location]).await.unwrap();
    }
    assert!(allocated(&file) < before / 2 + 3 * 4096, "{} of {before}", allocated(&file));
    for (location, bytes) in stored.iter().skip(201).step_by(2) {
        assert_eq!(rig.read(location).await.unwrap(), *bytes);
    }
    assert_eq!(rig.node().scrub(DATA).await.unwrap().corrupt, vec![]);
}

/// Live payloads are read as they were stored; others may be refused as corrupt.
async fn assert_live_is_whole(
    rig: &Rig,
    stored: &[(Location, Bytes)],
    live: &[usize],
    start: &str,
) {
    for (n, (location, bytes)) in stored.iter().enumerate() {
        match rig.read(location).await {
            Ok(read) => assert_eq!(read, *bytes, "{start} {n}"),
            Err(error) => {
                assert!(!live.contains(&n), "{start} {n} {error}");
                assert!(matches!(error, Error::Corrupt { .. }));
            }
        }
    }
}

#[tokio::test]
async fn sparse_extent_is_compacted_and_keeps_every_offset() {
    let mut rig = Rig::new().await;
    let mut stored = fill(&rig, DATA, 600, 1000).await;
    let end = rig.node().extents().await[0].len;
    // Also an aligned frame, and padding before it.
    let big = payload(9, 100_000);
    let one = std::slice::from_ref(&big);
    let appended = rig.append(DATA, end, one, Durability::Durable).await.unwrap();
    stored.push((appended.locations[0], big));
    rig.node().seal(DATA, ONE).await.unwrap();
    let live: Vec<usize> = (0..600).step_by(3).chain([600]).collect();
    let dead: Vec<Location> = (0..600).filter(|n| n % 3 != 0).map(|n| stored[n].0).collect();
    rig.node().free(&dead).await.unwrap();
    let file = rig.extent_file(DATA);
    let live_bytes: u64 = live.iter().map(|&n| stored[n].0.len.get()).sum();
    for _ in 0..200 {
        if rig.metrics.compactions.get() > 0 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(rig.metrics.compactions.get(), 1);
    assert!(allocated(&file) < live_bytes * 13 / 10, "{} of {live_bytes}", allocated(&file));
    for start in ["running", "catalog", "no catalog", "first page damaged"] {
        match start {
            "running" => {}
            "catalog" => rig.restart(true).await,
            "no catalog" => {
                rig.stop(true).await;
                fs::remove_dir_all(rig.path().join("catalog")).unwrap();
                rig.start().await;
            }
            _ => {
                rig.stop(true).await;
                fs::remove_dir_all(rig.path().join("catalog")).unwrap();
                flip(&file, 20);
                flip(&file, 1024 + 9);
                rig.start().await;
            }
        }
        assert_live_is_whole(&rig, &stored, &live, start).await;
        let report = rig.node().scrub(DATA).await.unwrap();
        assert_eq!((report.frames, report.corrupt), (size(live.len()), vec![]), "{start}");
    }
    // It can be fenced, freed and removed like any other extent.
    rig.node().fence(DATA, Epoch::new(4)).await.unwrap();
    rig.restart(true).await;
    assert_eq!(rig.node().extents().await[0].epoch, Epoch::new(4));
    rig.stop(true).await;
    let disk = OsDisk::open(rig.path(), Tasks::new()).unwrap();
    let checked = check_disk(&disk, 0, &mut |_| {}).await.unwrap();
    assert_eq!((checked.problems, checked.holed), (vec![], vec![]));
    drop(disk);
    // Its map lies at its end.
    let in_map = fs::metadata(&file).unwrap().len() - 20;
    flip(&file, in_map);
    rig.start().await;
    rig.read(&stored[live[0]].0).await.unwrap_err();
    let counted = rig.metrics.corrupt_frames.get();
    assert_eq!(rig.node().scrub(DATA).await.unwrap().corrupt, [(DATA, ExtentOffset::START)]);
    assert_eq!(rig.metrics.corrupt_frames.get(), counted + 1);
    rig.stop(true).await;
    flip(&file, in_map);
    rig.start().await;
    let rest: Vec<Location> = live.iter().map(|&n| stored[n].0).collect();
    rig.node().free(&rest).await.unwrap();
    assert!(!file.exists());
}

#[tokio::test]
async fn fence_of_a_sealed_extent_known_from_the_catalog_keeps_it_sealed() {
    let mut rig = Rig::new().await;
    let stored = fill(&rig, DATA, 3, 3000).await;
    rig.node().seal(DATA, ONE).await.unwrap();
    for epoch in 2..6 {
        rig.restart(true).await;
        rig.node().fence(DATA, Epoch::new(epoch)).await.unwrap();
    }
    rig.stop(true).await;
    fs::remove_dir_all(rig.path().join("catalog")).unwrap();
    rig.start().await;
    let info = &rig.node().extents().await[0];
    assert_eq!(
        (info.epoch, info.len),
        (Epoch::new(5), end_after(ExtentOffset::START, &[3000; 3]).get())
    );
    assert_eq!(rig.read(&stored[2].0).await.unwrap(), stored[2].1);
}

#[tokio::test]
async fn disks_of_another_store_or_a_missing_one_are_refused() {
    let mut one = Rig::new().await;
    let mut other = Rig::with_seed(8).await;
    one.stop(true).await;
    other.stop(true).await;
    let open = |paths: Vec<std::path::PathBuf>| async move {
        let env = super::node::env(9);
        let disks = paths
            .iter()
            .map(|path| OsDisk::open(path, env.tasks.clone()).unwrap())
            .collect::<Vec<std::sync::Arc<dyn Disk>>>();
        let metrics = CapacityMetrics::default();
        let node = CapacityNode::open(disks, env, CapacityConfig::small(), metrics).await?;
        node.shutdown().await;
        Ok::<(), OpenError>(())
    };
    let (a, b) = (one.path().to_owned(), other.path().to_owned());
    let mixed = open(vec![a.clone(), b]).await;
    assert!(matches!(mixed, Err(OpenError::OtherStore { disk: 1 })));
    let new = tempfile::tempdir().unwrap();
    open(vec![a.clone(), new.path().to_owned()]).await.unwrap();
    open(vec![new.path().to_owned(), a]).await.unwrap();
    let alone = open(vec![new.path().to_owned()]).await;
    assert!(matches!(alone, Err(OpenError::DiskSet { highest: 1 })));
    lose_format(one.path());
    let bare = open(vec![one.path().to_owned()]).await;
    assert!(matches!(bare, Err(OpenError::NoFormat { disk: 0 })));
}

#[expect(clippy::disallowed_methods, reason = "tests damage files behind the disk's back")]
fn lose_format(folder: &Path) {
    fs::remove_file(folder.join("format")).unwrap();
    fs::create_dir_all(folder.join("extents/00")).unwrap();
    fs::write(folder.join("extents/00/0000000000000100.x"), b"x").unwrap();
}
