//! The metrics of disks.

use std::sync::Arc;

use super::disks::{env, open, run, store};
use super::node::ONE;
use crate::capacity::*;
use crate::env::disk_os::OsDisk;
use crate::env::disk_sim::{Fault, SimDisk};
use crate::env::{Disk, Tasks};
use crate::telemetry::{Exposition, Registry, render};
use crate::types::ExtentId;

fn scrape(node: &Arc<CapacityNode>) -> String {
    let mut registry = Registry::default();
    DiskMetrics::register(node, &mut registry);
    render(&registry, Exposition::OpenMetrics).unwrap()
}

fn value(text: &str, series: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{series} is not in\n{text}")).parse().unwrap()
}

#[tokio::test]
async fn disks_on_one_file_system_count_its_space_once() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let disks: Vec<Arc<dyn Disk>> =
        folders.iter().map(|f| OsDisk::open(f.path(), Tasks::new()).unwrap()).collect();
    let config = CapacityConfig { catalog: CatalogPlace::Memory, ..CapacityConfig::small() };
    let env = super::node::env(1);
    let node = CapacityNode::open(disks, env, config, CapacityMetrics::default()).await.unwrap();
    store(&node, ExtentId::new(1), 10_000).await.unwrap();
    let text = scrape(&node);
    let sizes = ["0", "1"].map(|disk| value(&text, &format!("disk_size_bytes{{disk=\"{disk}\"}}")));
    assert_eq!(sizes[0], sizes[1]);
    assert_eq!(value(&text, "disks_size_bytes"), sizes[0]);
    let left =
        ["0", "1"].map(|disk| value(&text, &format!("disk_available_bytes{{disk=\"{disk}\"}}")));
    assert_eq!(value(&text, "disks_available_bytes"), left[0].min(left[1]));
    for name in ["disk_sync_seconds_count", "disk_write_seconds_count"] {
        assert!(value(&text, &format!("{name}{{disk=\"0\"}}")) > 0, "{text}");
    }
    node.shutdown().await;
}

#[test]
fn disks_on_separate_file_systems_add_up_and_show_their_state() {
    run(async {
        let sims = [1, 2].map(|seed| SimDisk::new(seed, 64 << 20));
        let node = open(sims.iter().map(SimDisk::disk).collect()).await.unwrap();
        let text = scrape(&node);
        assert_eq!(value(&text, "disks_size_bytes"), 128 << 20);
        let states = |text: &str, disk: u32| {
            let is = |state: &&str| {
                value(text, &format!("disk_state{{disk=\"{disk}\",state=\"{state}\"}}")) == 1
            };
            let all = ["in use", "draining", "drained", "poisoned", "out of service"];
            all.into_iter().filter(is).collect::<Vec<_>>()
        };
        assert_eq!((states(&text, 0), states(&text, 1)), (vec!["in use"], vec!["in use"]));
        node.set_draining(1, true);
        assert_eq!(states(&scrape(&node), 1), ["drained"]);
        node.set_out_of_service(vec![2]);
        let text = scrape(&node);
        assert_eq!((states(&text, 2), states(&text, 0)), (vec!["out of service"], vec!["in use"]));
        assert!(!text.contains("disk_size_bytes{disk=\"2\"}"), "{text}");
        sims[0].fail_once(Fault::WriteError, 0);
        node.set_draining(1, false);
        for id in 0..4 {
            drop(store(&node, ExtentId::new(id), 100_000).await);
            drop(node.seal(ExtentId::new(id), ONE).await);
        }
        assert_eq!(states(&scrape(&node), 0), ["poisoned"]);
        node.shutdown().await;
        drop(node);
    });
}

#[test]
fn space_used_by_others_is_measured_even_without_writes() {
    run(async {
        let sim = SimDisk::new(1, 64 << 20);
        let node = open(vec![sim.disk()]).await.unwrap();
        let before = value(&scrape(&node), "disks_available_bytes");
        let file = sim.disk().create("else").await.unwrap();
        file.allocate(0, 16 << 20).await.unwrap();
        env(1).clock.sleep(std::time::Duration::from_secs(2)).await;
        assert_eq!(value(&scrape(&node), "disks_available_bytes"), before);
        node.refresh_space().await;
        assert_eq!(value(&scrape(&node), "disks_available_bytes"), before - (16 << 20));
    });
}
