use std::collections::BTreeSet;

use super::*;

const CAPACITY: u64 = 16 << 20;

async fn file_of(disk: &Arc<dyn Disk>, bytes: Vec<u8>) -> Arc<dyn DiskFile> {
    let file = disk.create("f/file").await.unwrap();
    disk.sync_dir("f").await.unwrap();
    file.write_sync(0, vec![bytes.into()]).await.unwrap();
    file
}

async fn content(disk: &Arc<dyn Disk>) -> Vec<u8> {
    disk.open("f/file").await.unwrap().read_at(0, 1 << 20).await.unwrap().to_vec()
}

/// Runs a case with many seeds and returns the different outcomes.
async fn outcomes<T: Ord, F: Future<Output = T>>(case: impl Fn(SimDisk) -> F) -> BTreeSet<T> {
    let mut seen = BTreeSet::new();
    for seed in 0..1000 {
        seen.insert(case(SimDisk::new(seed, CAPACITY)).await);
    }
    seen
}

#[tokio::test(start_paused = true)]
async fn synced_bytes_survive_every_power_cut() {
    let seen = outcomes(|sim| async move {
        file_of(&sim.disk(), vec![7; 5000]).await;
        content(&sim.restart_after_power_cut()).await
    })
    .await;
    assert_eq!(seen, BTreeSet::from([vec![7; 5000]]));
}

#[tokio::test(start_paused = true)]
async fn unsynced_write_survives_whole_torn_or_not_at_all() {
    let seen = outcomes(|sim| async move {
        let file = file_of(&sim.disk(), vec![1; 2048]).await;
        file.write_at(0, vec![vec![2; 2048].into()]).await.unwrap();
        let bytes = content(&sim.restart_after_power_cut()).await;
        bytes
            .chunks(512)
            .map(|sector| sector.iter().copied().collect::<BTreeSet<u8>>())
            .collect::<Vec<_>>()
    })
    .await;
    for sectors in &seen {
        assert!(
            sectors.iter().all(|sector| sector.len() == 1),
            "a sector is never torn: {sectors:?}"
        );
    }
    assert_eq!(seen.len(), 16, "every combination of four sectors");
}

#[tokio::test(start_paused = true)]
async fn unsynced_writes_survive_out_of_order() {
    let seen = outcomes(|sim| async move {
        let file = file_of(&sim.disk(), vec![0; 1024]).await;
        file.write_at(0, vec![vec![1; 512].into()]).await.unwrap();
        file.write_at(512, vec![vec![2; 512].into()]).await.unwrap();
        let bytes = content(&sim.restart_after_power_cut()).await;
        (bytes[0], bytes[512])
    })
    .await;
    assert_eq!(seen, BTreeSet::from([(0, 0), (1, 0), (0, 2), (1, 2)]));
}

#[tokio::test(start_paused = true)]
async fn write_during_a_sync_is_not_promised() {
    let seen = outcomes(|sim| async move {
        let file = file_of(&sim.disk(), vec![0; 512]).await;
        let (synced, written) =
            tokio::join!(file.sync(), file.write_at(0, vec![vec![1; 512].into()]));
        synced.and(written).unwrap();
        content(&sim.restart_after_power_cut()).await[0]
    })
    .await;
    assert_eq!(seen, BTreeSet::from([0, 1]));
}

#[tokio::test(start_paused = true)]
async fn kill_keeps_all_that_was_written() {
    let seen = outcomes(|sim| async move {
        let file = file_of(&sim.disk(), vec![1; 512]).await;
        file.write_at(0, vec![vec![2; 512].into()]).await.unwrap();
        let disk = sim.restart_after_kill();
        assert!(file.read_at(0, 1).await.is_err(), "handles of the killed process fail");
        content(&disk).await
    })
    .await;
    assert_eq!(seen, BTreeSet::from([vec![2; 512]]));
}

#[tokio::test(start_paused = true)]
async fn names_are_durable_only_after_sync_dir() {
    let seen = outcomes(|sim| async move {
        let disk = sim.disk();
        disk.create("f/old").await.unwrap();
        disk.sync_dir("f").await.unwrap();
        disk.rename("f/old", "f/new").await.unwrap();
        disk.create("f/more").await.unwrap();
        disk.create("g/synced").await.unwrap();
        disk.sync_dir("g").await.unwrap();
        sim.restart_after_power_cut().list("").await.unwrap()
    })
    .await;
    let all = [
        vec!["f/more", "f/new", "g/synced"],
        vec!["f/more", "f/old", "g/synced"],
        vec!["f/new", "g/synced"],
        vec!["f/old", "g/synced"],
    ];
    assert_eq!(
        seen,
        all.iter().map(|names| names.iter().map(|n| (*n).to_owned()).collect()).collect()
    );
}

#[tokio::test(start_paused = true)]
async fn rename_across_folders_never_leaves_two_names() {
    let seen = outcomes(|sim| async move {
        let disk = sim.disk();
        disk.create("x/a").await.unwrap();
        disk.rename("x/a", "y/b").await.unwrap();
        disk.sync_dir("y").await.unwrap();
        sim.restart_after_power_cut().list("").await.unwrap()
    })
    .await;
    assert_eq!(seen, BTreeSet::from([vec!["y/b".to_owned()]]));
}

#[tokio::test(start_paused = true)]
async fn failed_sync_may_lose_what_reads_still_show() {
    let seen = outcomes(|sim| async move {
        let file = file_of(&sim.disk(), vec![1; 512]).await;
        file.write_at(0, vec![vec![2; 512].into()]).await.unwrap();
        sim.fail_once(Fault::SyncError, 0);
        file.sync().await.unwrap_err();
        assert_eq!(file.read_at(0, 512).await.unwrap(), vec![2; 512]);
        file.sync().await.unwrap();
        let disk = sim.restart_after_kill();
        assert_eq!(content(&disk).await, vec![2; 512], "a new process reads the cache");
        disk.open("f/file").await.unwrap().drop_cache().await.unwrap();
        let device = content(&disk).await;
        assert_eq!(content(&sim.restart_after_power_cut()).await, device);
        device[0]
    })
    .await;
    assert_eq!(seen, BTreeSet::from([1, 2]));
}

#[tokio::test(start_paused = true)]
async fn lying_sync_promises_nothing() {
    let seen = outcomes(|sim| async move {
        let file = file_of(&sim.disk(), vec![1; 512]).await;
        sim.set_faults(Faults { sync_lie: 1_000_000, ..Faults::default() });
        file.write_sync(0, vec![vec![2; 512].into()]).await.unwrap();
        content(&sim.restart_after_power_cut()).await[0]
    })
    .await;
    assert_eq!(seen, BTreeSet::from([1, 2]));
}

#[tokio::test(start_paused = true)]
async fn faults_strike_once_where_planned() {
    let sim = SimDisk::new(1, CAPACITY);
    let file = file_of(&sim.disk(), vec![1; 512]).await;
    sim.fail_once(Fault::ReadError, 1);
    file.read_at(0, 1).await.unwrap();
    assert_eq!(sim.faults_left(), 1);
    assert!(matches!(file.read_at(0, 1).await, Err(DiskError::Io { action: "read", .. })));
    file.read_at(0, 1).await.unwrap();
    assert_eq!(sim.faults_left(), 0);
    sim.fail_once(Fault::WriteError, 0);
    assert!(matches!(file.punch_hole(0, 4096).await, Err(DiskError::Io { .. })));
    sim.fail_once(Fault::Full, 0);
    file.write_at(0, vec!["x".into()]).await.unwrap();
    assert!(matches!(file.write_at(9000, vec!["x".into()]).await, Err(DiskError::Full)));
    file.write_at(9000, vec!["x".into()]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn faults_strike_by_chance() {
    let sim = SimDisk::new(1, CAPACITY);
    let file = file_of(&sim.disk(), vec![1; 512]).await;
    sim.set_faults(Faults { read_error: 250_000, ..Faults::default() });
    let mut failed = 0;
    for _ in 0..400 {
        failed += u32::from(file.read_at(0, 1).await.is_err());
    }
    assert!((50..150).contains(&failed), "{failed} of 400");
}

#[tokio::test(start_paused = true)]
async fn capacity_is_a_limit_that_freeing_lifts() {
    let sim = SimDisk::new(1, 1 << 20);
    let disk = sim.disk();
    let file = disk.create("f/a").await.unwrap();
    file.allocate(0, 768 << 10).await.unwrap();
    assert!(matches!(file.allocate(768 << 10, 512 << 10).await, Err(DiskError::Full)));
    let big = vec![Bytes::from(vec![1; 512 << 10])];
    file.write_at(0, big.clone()).await.unwrap();
    let other = disk.create("f/b").await.unwrap();
    assert!(matches!(other.write_at(0, big.clone()).await, Err(DiskError::Full)));
    assert!(matches!(file.write_at(768 << 10, big.clone()).await, Err(DiskError::Full)));
    file.punch_hole(0, 512 << 10).await.unwrap();
    other.write_at(0, big).await.unwrap();
    disk.remove("f/a").await.unwrap();
    disk.remove("f/b").await.unwrap();
    let space = Space { total: 1 << 20, available: 1 << 20, file_system: None };
    assert_eq!(disk.space().await.unwrap(), space);
}

#[tokio::test(start_paused = true)]
async fn flip_turns_exactly_one_bit() {
    let sim = SimDisk::new(3, CAPACITY);
    let file = file_of(&sim.disk(), vec![0; 9000]).await;
    assert!(sim.flip("f/file", 5000));
    let bytes = file.read_at(0, 9000).await.unwrap();
    assert_eq!(bytes.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
    assert_ne!(bytes[5000], 0);
    assert_eq!(content(&sim.restart_after_power_cut()).await, bytes.to_vec());
    assert!(!sim.flip("f/none", 0));
    let flipped = (0..100).filter_map(|_| sim.flip_random("f/")).collect::<BTreeSet<_>>();
    assert!(flipped.len() > 50 && flipped.iter().all(|(path, at)| path == "f/file" && *at < 9000));
}

#[tokio::test(start_paused = true)]
async fn crash_comes_at_the_chosen_operation() {
    let seen = outcomes(|sim| async move {
        let file = file_of(&sim.disk(), vec![1; 512]).await;
        sim.crash_at(sim.operations() + 2);
        file.read_at(0, 1).await.unwrap();
        assert!(!sim.is_down());
        file.write_at(0, vec![vec![2; 512].into()]).await.unwrap_err();
        assert!(sim.is_down());
        file.read_at(0, 1).await.unwrap_err();
        sim.disk().list("").await.unwrap_err();
        let disk = sim.restart_after_power_cut();
        assert!(!sim.is_down());
        file.read_at(0, 1).await.unwrap_err();
        content(&disk).await[0]
    })
    .await;
    assert_eq!(seen, BTreeSet::from([1, 2]), "the write of the crash may have happened");
}

async fn busy(seed: u64) -> (u64, u64) {
    let sim = SimDisk::new(seed, CAPACITY);
    let file = file_of(&sim.disk(), vec![1; 100]).await;
    sim.set_faults(Faults { read_error: 100_000, write_error: 100_000, ..Faults::default() });
    let jobs = (0..8_u64).map(|job| {
        let file = Arc::clone(&file);
        async move {
            for step in 0..8_u64 {
                let bytes = vec![u8::try_from(job).unwrap(); 100];
                let written = file.write_at(job * 1000 + step, vec![bytes.into()]).await;
                let read = file.read_at(step * 1000, 100).await;
                drop((written, read));
            }
        }
    });
    futures_util::future::join_all(jobs).await;
    (sim.trace(), sim.operations())
}

#[tokio::test(start_paused = true)]
async fn same_seed_gives_same_trace() {
    assert_eq!(busy(1).await, busy(1).await);
    assert_ne!(busy(1).await.0, busy(2).await.0);
}

#[tokio::test(start_paused = true)]
#[expect(clippy::disallowed_methods, reason = "simulated time")]
async fn syncs_that_stall_hold_up_nothing_else() {
    let sim = SimDisk::new(1, CAPACITY);
    let file = file_of(&sim.disk(), vec![1; 100]).await;
    sim.stall_syncs(Duration::from_secs(3));
    let began = tokio::time::Instant::now();
    file.write_at(0, vec![vec![2; 100].into()]).await.unwrap();
    assert_eq!(file.read_at(0, 100).await.unwrap(), vec![2; 100]);
    assert!(began.elapsed() < Duration::from_secs(1));
    file.sync().await.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(3));
}
