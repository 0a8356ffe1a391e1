//! Pages of zeros in frames: given back by a free, or lost.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use super::damage::fill;
use super::disks::{env, run};
use super::node::{DATA, LOG, ONE, Rig};
use super::payload;
use crate::capacity::disk::store::path_of;
use crate::capacity::extent::memory::Frees;
use crate::capacity::*;
use crate::env::disk_sim::SimDisk;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

const PAGE: u64 = 4096;

/// Overwrites `count` pages of a file with zeros. `first` counts from the page after the header.
fn lose(path: &Path, first: u64, count: usize) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&vec![0; 4096 * count], (first + 1) * PAGE).unwrap();
}

fn frees(rig: &Rig) -> Frees {
    rig.node().home(DATA).unwrap().extent.state().frees
}

/// The catalog may lose the newest frees in a power failure, although the pages were given back.
/// Such holes are not damage. After an audit, a hole in a live frame is damage.
#[tokio::test]
async fn hole_is_damage_only_when_all_frees_are_known() {
    let mut rig = Rig::new().await;
    let stored = fill(&rig, DATA, 6, 20_000).await;
    rig.node().seal(DATA, ONE).await.unwrap();
    rig.node().free(&[stored[1].0, stored[3].0]).await.unwrap();
    rig.stop(true).await;
    fs::remove_dir_all(rig.path().join("catalog")).unwrap();
    rig.start().await;
    assert_eq!(rig.node().scrub(DATA).await.unwrap().corrupt, vec![]);
    assert_eq!((rig.metrics.corrupt_frames.get(), frees(&rig)), (0, Frees::UnsureOfHoles));

    let mut live: Vec<_> =
        [0, 2, 4, 5].iter().map(|&n: &usize| rig.node().frames_of(&stored[n].0)).collect();
    let rest = live.split_off(2);
    let mut part = live.clone();
    part.push(rest[0].start..u64::MAX);
    rig.node().retain(DATA, &part, Audited::Part).await.unwrap();
    assert_eq!(frees(&rig), Frees::UnsureOfHoles, "a part of it is not audited yet");
    live.extend(rest);
    rig.node().retain(DATA, &live, Audited::Whole).await.unwrap();
    assert_eq!(frees(&rig), Frees::Settled);
    let lost = stored[4].0.offset;
    // The second page after the one it begins in.
    lose(&rig.extent_file(DATA), lost.get() / PAGE + 2, 1);
    assert_eq!(rig.node().scrub(DATA).await.unwrap().corrupt, vec![(DATA, lost)]);
    assert_eq!(frees(&rig), Frees::Known);
}

/// A frame that begins on a page and has lost that page has no header. A frame that has lost all
/// its pages is only zeros.
#[tokio::test]
async fn lost_first_page_of_a_frame_is_damage() {
    for (extent, pages) in [(LOG, 1), (LOG, 10), (DATA, 1), (DATA, 10)] {
        let mut rig = Rig::new().await;
        let stored = fill(&rig, extent, 4, 40_000).await;
        rig.node().seal(extent, ONE).await.unwrap();
        let lost = stored[2].0.offset.get();
        assert!(lost.is_multiple_of(PAGE), "large frames begin on a page");
        lose(&rig.extent_file(extent), lost / PAGE, pages);
        let damage = vec![(extent, stored[2].0.offset)];
        assert_eq!(rig.node().scrub(extent).await.unwrap().corrupt, damage, "{pages} pages");
        rig.restart(true).await;
        let found = rig.node().scrub(extent).await.unwrap().corrupt;
        if extent == LOG {
            assert_eq!(found, damage, "{pages} pages, after a start");
            continue;
        }
        assert_eq!((found, frees(&rig)), (vec![], Frees::UnsureOfHoles), "it may be freed");
        let live: Vec<_> = stored.iter().map(|(at, _)| rig.node().frames_of(at)).collect();
        rig.node().retain(DATA, &live, Audited::Whole).await.unwrap();
        assert_eq!(rig.node().scrub(DATA).await.unwrap().corrupt, damage, "{pages} pages, audited");
    }
}

/// A payload of zeros is not a lost page, nor is the padding after it.
#[tokio::test]
async fn frames_of_zeros_are_no_damage() {
    let rig = Rig::new().await;
    rig.node().create(LOG, ExtentKind::Log, ONE).await.unwrap();
    let mut end = 0;
    for len in [40_000, 3_000, 100_000, 4_096, 32_768] {
        let zeros = [vec![0; len].into()];
        end = rig.append(LOG, end, &zeros, Durability::Durable).await.unwrap().end.get();
    }
    rig.node().seal(LOG, ONE).await.unwrap();
    assert_eq!(rig.node().scrub(LOG).await.unwrap().corrupt, vec![]);
}

/// Holes that a scrub has found are examined again even if an audit ends during the scrub.
#[test]
fn holes_found_while_an_audit_comes_are_examined_again() {
    for (now, later) in [(Frees::Known, Frees::Settled), (Frees::Settled, Frees::Settled)] {
        assert_eq!(now.after_scrub(true), later);
        assert_eq!(now.after_scrub(false), Frees::Known);
    }
}

/// The scrub of a node whose catalog has lost frees, and whose disk has then lost pages.
#[test]
fn scrub_of_a_node_examines_an_extent_again_after_the_audit() {
    run(async {
        let sim = SimDisk::new(1, 64 << 20);
        let extent = ExtentId::new(1);
        let open = async |metrics: &CapacityMetrics| {
            let config = CapacityConfig {
                // Each start begins with an empty catalog.
                catalog: CatalogPlace::Simulated(vec![SimulatedCatalog::default()]),
                scrub_bytes_per_second: 1 << 30,
                scrub_pause: Duration::from_secs(24 * 3600),
                ..CapacityConfig::small()
            };
            CapacityNode::open(vec![sim.disk()], env(1), config, metrics.clone()).await.unwrap()
        };
        let node = open(&CapacityMetrics::default()).await;
        node.create(extent, ExtentKind::Data, ONE).await.unwrap();
        let request = AppendRequest {
            extent,
            epoch: ONE,
            offset: ExtentOffset::START,
            payloads: (0..3).map(|seed| vec![payload(seed, 20_000)]).collect(),
            durability: Durability::Durable,
        };
        let stored = node.append(request).await.unwrap().locations;
        node.seal(extent, ONE).await.unwrap();
        node.free(&stored[1..2]).await.unwrap();
        node.shutdown().await;
        drop(node);

        let metrics = CapacityMetrics::default();
        let node = open(&metrics).await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert!(metrics.scrubbed_frames.get() > 0);
        assert_eq!(metrics.corrupt_frames.get(), 0);
        let live: Vec<_> = [0, 2].map(|n: usize| node.frames_of(&stored[n])).into();
        node.retain(extent, &live, Audited::Whole).await.unwrap();
        let file = sim.disk().open(&path_of(extent)).await.unwrap();
        let lost = (stored[2].offset.get() / PAGE + 3) * PAGE;
        file.write_at(lost, vec![vec![0; 4096].into()]).await.unwrap();
        tokio::time::sleep(Duration::from_secs(11 * 60)).await;
        assert_eq!(metrics.corrupt_frames.get(), 1);
        node.shutdown().await;
    });
}
