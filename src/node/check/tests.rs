#![expect(clippy::disallowed_methods, reason = "damages files behind the store's back")]

use std::path::Path;
use std::path::PathBuf;

use crate::capacity::AppendRequest;
use crate::capacity::Capacity;
use crate::capacity::CapacityMetrics;
use crate::capacity::Durability;
use crate::capacity::ExtentKind;
use crate::coordinator::embedded::FILE_NAME;
use crate::node::disks::Given;
use crate::node::error::NodeError;
use crate::node::storage::Owner;
use crate::node::storage::Storage;
use crate::node::storage::open_disk;
use crate::node::testing::config;
use crate::node::testing::env;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

use super::*;

async fn checked(data: &Path) -> Result<Report, NodeError> {
    let env = env();
    let given = Given { data: &[data.to_owned()], add: &[], without: &[] };
    let report = check(given, None, &env, &mut Silent).await;
    env.tasks.shutdown().await;
    report
}

/// A store whose extent 1 holds 300,000 bytes of 0x5a.
async fn make_store(data: &Path) {
    let env = env();
    let storage =
        Storage::open(&config(data), &env, CapacityMetrics::default(), Owner::Alone).await.unwrap();
    let (extent, epoch) = (ExtentId::new(1), Epoch::new(1));
    storage.capacity.create(extent, ExtentKind::Data, epoch).await.unwrap();
    let payloads = vec![vec![vec![0x5a; 300_000].into()]];
    let durability = Durability::Durable;
    let request =
        AppendRequest { extent, epoch, offset: ExtentOffset::START, payloads, durability };
    storage.capacity.append(request).await.unwrap();
    storage.capacity.seal(extent, epoch).await.unwrap();
    storage.capacity.shutdown().await;
    drop(storage);
    env.tasks.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flipped_byte_of_an_extent_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    make_store(folder.path()).await;
    let before = checked(folder.path()).await.unwrap();
    // The store has no partition map yet: that, and nothing else, is wrong.
    assert_eq!(before.problems_count, 1, "{before}");
    assert!(before.problems[0].starts_with("partition map"), "{before}");
    assert_eq!(before.disks[0].extents, 1);
    assert!(before.disks[0].frame_bytes >= 300_000, "{before}");

    let file = files_below(&folder.path().join("extents")).remove(0);
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.windows(64).rposition(|window| window == [0x5a; 64]).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let after = checked(folder.path()).await.unwrap();
    assert_eq!(after.problems_count, 2, "{after}");
    assert!(after.problems[0].contains("frame at"), "{after}");
    assert!(after.to_string().contains("DAMAGED: 2 problems"), "{after}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_of_a_stopped_store_writes_nothing_but_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    make_store(folder.path()).await;
    let bytes = || {
        let mut all: Vec<(PathBuf, Vec<u8>)> = files_below(folder.path())
            .into_iter()
            .filter(|path| !path.ends_with("journal"))
            .map(|path| (path.clone(), std::fs::read(path).unwrap()))
            .collect();
        all.sort();
        all
    };
    let before = bytes();
    for _ in 0..2 {
        checked(folder.path()).await.unwrap();
        let after = bytes();
        let names = |all: &[(PathBuf, Vec<u8>)]| -> Vec<PathBuf> {
            all.iter().map(|(path, _)| path.clone()).collect()
        };
        assert_eq!(names(&before), names(&after));
        let changed = before.iter().zip(&after).filter(|(a, b)| a != b).map(|(a, _)| &a.0);
        let changed: Vec<&PathBuf> = changed.collect();
        assert!(changed.is_empty(), "{changed:?}");
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_coordinator_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    make_store(folder.path()).await;
    std::fs::remove_file(folder.path().join(FILE_NAME)).unwrap();
    let report = checked(folder.path()).await.unwrap();
    assert!(!report.is_sound());
    assert!(report.problems[0].contains(FILE_NAME), "{report}");
    assert!(!folder.path().join(FILE_NAME).exists(), "a check makes no new store");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_store_cannot_be_checked() {
    let folder = tempfile::tempdir().unwrap();
    assert!(checked(folder.path()).await.is_err(), "empty");
    let missing = folder.path().join("missing");
    assert!(matches!(checked(&missing).await, Err(NodeError::NoData { .. })));
    assert!(!missing.exists(), "a check makes no folder");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_in_use_cannot_be_checked() {
    let folder = tempfile::tempdir().unwrap();
    make_store(folder.path()).await;
    let env = env();
    let _held = open_disk(folder.path(), &env).unwrap();
    assert!(matches!(checked(folder.path()).await, Err(NodeError::Data { .. })));
}
