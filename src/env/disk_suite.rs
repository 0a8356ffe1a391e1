//! Checks of every [`Disk`], run on the machine's disk and on the simulated one.

use std::future::Future;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::env::Disk;
use crate::env::DiskError;
use crate::env::DiskFile;
use crate::env::OsDisk;
use crate::env::SimDisk;
use crate::env::Tasks;

const PAGE: u64 = 4096;

/// Runs one check on a fresh disk of each kind.
async fn on_both<F: Future<Output = ()>>(check: impl Fn(Arc<dyn Disk>) -> F) {
    let folder = tempfile::tempdir().unwrap();
    check(OsDisk::open(folder.path(), Tasks::new()).unwrap()).await;
    check(SimDisk::new(1, 64 << 20).disk()).await;
}

fn pattern(len: usize) -> Bytes {
    (0..len).map(|at| u8::try_from(at % 251).unwrap()).collect()
}

async fn all_of(file: &Arc<dyn DiskFile>) -> Bytes {
    let len = usize::try_from(file.len().await.unwrap()).unwrap();
    file.read_at(0, len).await.unwrap()
}

#[tokio::test]
async fn written_pieces_are_read_back_at_every_border() {
    on_both(|disk| async move {
        let file = disk.create("a/b/file").await.unwrap();
        let bytes = pattern(300_000);
        let pieces = vec![
            bytes.slice(..1),
            Bytes::new(),
            bytes.slice(1..5000),
            bytes.slice(5000..),
            Bytes::new(),
        ];
        file.write_at(10, pieces).await.unwrap();
        assert_eq!(file.len().await.unwrap(), 300_010);
        assert_eq!(file.read_at(0, 10).await.unwrap(), vec![0; 10]);
        for (from, to) in [(0, 1), (1, 4097), (4086, 4087), (0, 131_072), (0, 300_000)] {
            let got = file.read_at(10 + from as u64, to - from).await.unwrap();
            assert_eq!(got, bytes.slice(from..to), "{from}..{to}");
        }
    })
    .await;
}

#[tokio::test]
async fn read_is_short_only_at_the_end() {
    on_both(|disk| async move {
        let file = disk.create("file").await.unwrap();
        file.write_at(0, vec![pattern(5000)]).await.unwrap();
        assert_eq!(file.read_at(4000, 4096).await.unwrap(), pattern(5000).slice(4000..));
        assert_eq!(file.read_at(4000, 1 << 20).await.unwrap(), pattern(5000).slice(4000..));
        assert!(file.read_at(5000, 1).await.unwrap().is_empty());
        assert!(file.read_at(9_000_000, 10).await.unwrap().is_empty());
        assert!(file.read_at(0, 0).await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn write_takes_many_pieces_and_none() {
    on_both(|disk| async move {
        let file = disk.create("file").await.unwrap();
        let bytes = pattern(3000);
        let pieces: Vec<Bytes> = (0..3000).map(|at| bytes.slice(at..=at)).collect();
        file.write_sync(0, pieces).await.unwrap();
        assert_eq!(all_of(&file).await, bytes);
        file.write_at(0, Vec::new()).await.unwrap();
        file.write_at(9000, vec![Bytes::new(); 3]).await.unwrap();
        assert_eq!(file.len().await.unwrap(), 3000);
        file.write_sync(5, vec![Bytes::from_static(b"over")]).await.unwrap();
        assert_eq!(file.read_at(5, 4).await.unwrap(), "over");
        assert_eq!(file.len().await.unwrap(), 3000);
    })
    .await;
}

#[tokio::test]
async fn allocate_grows_with_zeros_and_takes_space() {
    on_both(|disk| async move {
        let file = disk.create("file").await.unwrap();
        file.write_at(0, vec![pattern(100)]).await.unwrap();
        file.allocate(0, 64 * PAGE).await.unwrap();
        assert_eq!(file.len().await.unwrap(), 64 * PAGE);
        assert!(file.allocated().await.unwrap() >= 64 * PAGE);
        assert_eq!(file.read_at(0, 100).await.unwrap(), pattern(100));
        assert_eq!(file.read_at(100, 1000).await.unwrap(), vec![0; 1000]);
        file.allocate(0, 0).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn punch_hole_frees_whole_pages_only() {
    on_both(|disk| async move {
        let file = disk.create("file").await.unwrap();
        let len = usize::try_from(64 * PAGE).unwrap();
        file.write_sync(0, vec![pattern(len)]).await.unwrap();
        let before = file.allocated().await.unwrap();
        file.punch_hole(1, PAGE).await.unwrap();
        assert_eq!(all_of(&file).await, pattern(len), "no whole page inside");
        file.punch_hole(PAGE - 1, 32 * PAGE + 2).await.unwrap();
        let mut expected = pattern(len).to_vec();
        expected[4096..33 * 4096].fill(0);
        assert_eq!(all_of(&file).await, expected);
        assert_eq!(file.allocated().await.unwrap(), before - 32 * PAGE);
        assert_eq!(file.len().await.unwrap(), 64 * PAGE);
    })
    .await;
}

#[tokio::test]
async fn set_len_cuts_for_good_and_extends_with_zeros() {
    on_both(|disk| async move {
        let file = disk.create("file").await.unwrap();
        file.write_at(0, vec![pattern(10_000)]).await.unwrap();
        file.set_len(5000).await.unwrap();
        file.set_len(10_000).await.unwrap();
        let mut expected = pattern(10_000).to_vec();
        expected[5000..].fill(0);
        assert_eq!(all_of(&file).await, expected);
    })
    .await;
}

#[tokio::test]
async fn names_are_created_renamed_removed_and_listed_in_order() {
    on_both(|disk| async move {
        assert!(disk.list("").await.unwrap().is_empty());
        assert!(disk.list("none").await.unwrap().is_empty());
        for path in ["z", "x/2", "x/1/deep", "xy/1"] {
            disk.create(path).await.unwrap();
        }
        assert_eq!(disk.list("").await.unwrap(), ["x/1/deep", "x/2", "xy/1", "z"]);
        assert_eq!(disk.list("x").await.unwrap(), ["x/1/deep", "x/2"]);
        let file = disk.open("x/2").await.unwrap();
        file.write_at(0, vec![pattern(10)]).await.unwrap();
        disk.rename("x/2", "z").await.unwrap();
        assert_eq!(all_of(&disk.open("z").await.unwrap()).await, pattern(10));
        disk.remove("xy/1").await.unwrap();
        disk.remove("xy/1").await.unwrap();
        assert_eq!(disk.list("").await.unwrap(), ["x/1/deep", "z"]);
        for folder in ["", "x", "x/1", "xy", "none"] {
            disk.sync_dir(folder).await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn missing_names_are_not_found() {
    on_both(|disk| async move {
        let opened = disk.open("no/such").await.unwrap_err();
        assert!(matches!(opened, DiskError::NotFound { path } if path == "no/such"));
        let renamed = disk.rename("none", "other").await.unwrap_err();
        assert!(matches!(renamed, DiskError::NotFound { path } if path == "none"));
    })
    .await;
}

#[tokio::test]
async fn create_truncates_what_exists() {
    on_both(|disk| async move {
        let old = disk.create("file").await.unwrap();
        old.write_sync(0, vec![pattern(10_000)]).await.unwrap();
        let new = disk.create("file").await.unwrap();
        assert_eq!(new.len().await.unwrap(), 0);
        assert_eq!(old.len().await.unwrap(), 0, "the same file");
    })
    .await;
}

#[tokio::test]
async fn removed_file_serves_its_handles() {
    on_both(|disk| async move {
        let file = disk.create("file").await.unwrap();
        file.write_at(0, vec![pattern(100)]).await.unwrap();
        disk.remove("file").await.unwrap();
        assert_eq!(all_of(&file).await, pattern(100));
        file.write_sync(100, vec![pattern(100)]).await.unwrap();
        assert_eq!(file.len().await.unwrap(), 200);
    })
    .await;
}

#[tokio::test]
async fn concurrent_writes_and_reads_do_not_mix() {
    on_both(|disk| async move {
        let file = disk.create("file").await.unwrap();
        let jobs = (0..16_u64).map(|job| {
            let file = Arc::clone(&file);
            async move {
                let bytes = Bytes::from(vec![u8::try_from(job).unwrap() + 1; 70_000]);
                file.write_sync(job * 70_000, vec![bytes.clone()]).await.unwrap();
                assert_eq!(file.read_at(job * 70_000, 70_000).await.unwrap(), bytes);
            }
        });
        futures_util::future::join_all(jobs).await;
        assert_eq!(file.len().await.unwrap(), 16 * 70_000);
    })
    .await;
}

#[tokio::test]
async fn dropping_the_cache_changes_nothing_on_an_honest_disk() {
    on_both(|disk| async move {
        let file = disk.create("file").await.unwrap();
        file.write_at(0, vec![pattern(200_000)]).await.unwrap();
        file.drop_cache().await.unwrap();
        assert_eq!(all_of(&file).await, pattern(200_000));
        assert_eq!(file.read_at(4096, 8192).await.unwrap(), pattern(200_000).slice(4096..12_288));
    })
    .await;
}

#[tokio::test]
async fn space_is_there() {
    on_both(|disk| async move {
        let space = disk.space().await.unwrap();
        assert!(space.available > 0 && space.available <= space.total, "{space:?}");
    })
    .await;
}

#[tokio::test]
async fn os_disk_is_locked_until_dropped_with_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("new/data");
    let disk = OsDisk::open(&root, Tasks::new()).unwrap();
    let file = disk.create("file").await.unwrap();
    let locked = || matches!(OsDisk::open(&root, Tasks::new()), Err(DiskError::Locked { .. }));
    assert!(locked());
    drop(disk);
    assert!(locked());
    drop(file);
    let disk = OsDisk::open(&root, Tasks::new()).unwrap();
    assert_eq!(disk.list("").await.unwrap(), ["file"]);
}

#[tokio::test]
async fn os_disk_reports_io_errors_with_their_kind() {
    let folder = tempfile::tempdir().unwrap();
    let disk = OsDisk::open(folder.path(), Tasks::new()).unwrap();
    disk.create("plain").await.unwrap();
    let error = disk.create("plain/below").await.unwrap_err();
    let expected = io::ErrorKind::NotADirectory;
    assert!(matches!(&error, DiskError::Io { action: "create", kind, .. } if *kind == expected));
}

#[tokio::test]
async fn machine_disks_measure_and_name_their_file_system() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let disk = OsDisk::open(one.path(), Tasks::new()).unwrap();
    let file = disk.create("a/file").await.unwrap();
    let mut registry = Registry::default();
    registry.register("write", "Writes", disk.times().unwrap().write.clone());
    registry.register("sync", "Syncs", disk.times().unwrap().sync.clone());
    let counts = || {
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        ["write_count ", "sync_count "].map(|name| {
            let count = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            count.parse::<u64>().unwrap()
        })
    };
    let before = counts();
    file.write_at(0, vec![pattern(10)]).await.unwrap();
    file.write_at(10, vec![pattern(1 << 20)]).await.unwrap();
    file.write_sync(0, vec![pattern(10)]).await.unwrap();
    file.sync().await.unwrap();
    disk.sync_dir("a").await.unwrap();
    assert_eq!(counts(), before.map(|count| count + 3));
    let beside = OsDisk::open(other.path(), Tasks::new()).unwrap();
    let (first, second) = (disk.space().await.unwrap(), beside.space().await.unwrap());
    assert!(first.file_system.is_some() && first.file_system == second.file_system);
}
