//! The machine's disk, and its waits while too many files are open.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::io::Errno;

use super::*;

/// A runtime whose clock moves only while no task runs, on the pool either.
fn with_pool_threads<F: Future>(count: usize, check: F) -> F::Output {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let builder = builder.enable_all().max_blocking_threads(count).start_paused(true);
    builder.build().unwrap().block_on(check)
}

fn disk(folder: &tempfile::TempDir) -> Arc<OsDisk> {
    Arc::new(OsDisk::lock(folder.path(), LOCK_NAME, Tasks::new()).unwrap())
}

/// Work that fails with `code` before its try number `good`, and a counter of the tries.
fn fails_until(good: usize, code: Errno) -> (Arc<AtomicUsize>, impl Fn(&Path) -> io::Result<()>) {
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&tries);
    let work = move |_: &Path| {
        let tried = counted.fetch_add(1, Ordering::SeqCst) + 1;
        if tried < good { Err(code.into()) } else { Ok(()) }
    };
    (tries, work)
}

#[test]
fn work_is_tried_once_more_when_too_many_files_are_open() {
    let folder = tempfile::tempdir().unwrap();
    with_pool_threads(1, async {
        let disk = disk(&folder);
        for code in [Errno::MFILE, Errno::NFILE] {
            let (tries, work) = fails_until(4, code);
            disk.run("open", "x", work).await.unwrap();
            assert_eq!(tries.load(Ordering::SeqCst), 4);
        }
        let (tries, work) = fails_until(4, Errno::IO);
        disk.run("open", "x", work).await.unwrap_err();
        assert_eq!(tries.load(Ordering::SeqCst), 1, "other errors are not tried again");
    });
}

#[test]
fn wait_for_a_file_ends() {
    let folder = tempfile::tempdir().unwrap();
    with_pool_threads(1, async {
        let disk = disk(&folder);
        let (tries, work) = fails_until(usize::MAX, Errno::MFILE);
        let begun = tokio::time::Instant::now();
        let error = disk.run("open", "x", work).await.unwrap_err();
        assert!(matches!(error, DiskError::TooManyFiles { action: "open", .. }), "{error}");
        assert_eq!(tries.load(Ordering::SeqCst), FILE_PAUSES_MS.len() + 1);
        assert_eq!(begun.elapsed().as_secs(), 10, "on a clock that only the pauses move");
    });
}

/// If the pauses occupied the only thread of the pool, the sync would run after the last pause.
#[test]
fn file_is_synced_while_another_waits_to_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    with_pool_threads(1, async {
        let disk = disk(&folder);
        let file = disk.create("file").await.unwrap();
        let (tried, mut is_tried) = tokio::sync::watch::channel(());
        let synced = Arc::new(AtomicBool::new(false));
        let (opening, is_synced) = (Arc::clone(&disk), Arc::clone(&synced));
        let opening = disk.tasks.spawn("opening", async move {
            let work = move |_: &Path| {
                tried.send_replace(());
                if is_synced.load(Ordering::SeqCst) { Ok(()) } else { Err(Errno::MFILE.into()) }
            };
            opening.run("open", "x", work).await
        });
        is_tried.changed().await.unwrap();
        file.sync().await.unwrap();
        synced.store(true, Ordering::SeqCst);
        opening.await.unwrap().unwrap();
    });
}

#[test]
fn too_many_open_files_are_no_busy_device() {
    for code in [Errno::MFILE, Errno::NFILE] {
        let error = failed("open", "x", &code.into());
        assert!(matches!(error, DiskError::TooManyFiles { .. }), "{error}");
        assert!(!error.is_of_device(), "{error}");
        assert_eq!(error.to_string(), "open failed on x: too many files are open");
    }
    let busy = failed("open", "x", &Errno::BUSY.into());
    let expected = io::ErrorKind::ResourceBusy;
    assert!(matches!(&busy, DiskError::Io { kind, .. } if *kind == expected), "{busy}");
    assert!(failed("open", "x", &Errno::IO.into()).is_of_device());
}

fn forgotten(path: &Path, file: &File) -> io::Result<Cached> {
    forget_cached(path).unwrap();
    read_cached(file, 0, 4096)
}

#[test]
fn forgotten_file_is_read_from_the_device() {
    const EXT4: u64 = 0xEF53;
    const XFS: u64 = 0x5846_5342;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, vec![7; 64 << 10]).unwrap();
    let file = File::open(&path).unwrap();
    let before = read_cached(&file, 0, 4096);
    let mut after = forgotten(&path, &file);
    // Other file systems may not be able to drop pages. A file system in memory has only the
    // cache.
    let system = u64::try_from(rustix::fs::fstatfs(&file).unwrap().f_type).unwrap();
    if [EXT4, XFS].contains(&system) {
        assert!(matches!(before.unwrap(), Cached::All(_)));
        // The kernel keeps a page that is in use at that moment, for example while it is migrated.
        for _ in 0..100 {
            if !matches!(after, Ok(Cached::All(_))) {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
            after = forgotten(&path, &file);
        }
        assert!(!matches!(after.unwrap(), Cached::All(_)));
    }
    assert_eq!(fs::read(&path).unwrap(), vec![7; 64 << 10]);
}
