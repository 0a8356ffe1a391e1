//! Backups to directories that do not answer.

use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use futures_util::FutureExt;
use prometheus_client::encoding::text::encode;
use rustix::fs::CWD;
use rustix::fs::FileType;
use rustix::fs::Mode;
use rustix::fs::mknodat;
use tokio::sync::watch;

use crate::admin::BackupView;
use crate::env::Clock;
use crate::types::Timestamp;

use super::*;

/// The machine's clock, which a test can put ahead: sleeps end earlier then.
#[derive(Debug)]
struct SkippingClock {
    clock: OsClock,
    skipped: watch::Sender<Duration>,
}

impl SkippingClock {
    fn new() -> Arc<Self> {
        Arc::new(Self { clock: OsClock::new(), skipped: watch::Sender::default() })
    }

    fn skip(&self, time: Duration) {
        self.skipped.send_modify(|skipped| *skipped += time);
    }
}

#[async_trait]
impl Clock for SkippingClock {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn monotonic(&self) -> Duration {
        self.clock.monotonic() + *self.skipped.borrow()
    }

    fn thread_cpu(&self) -> Duration {
        self.clock.thread_cpu()
    }

    async fn sleep(&self, duration: Duration) {
        let until = self.monotonic() + duration;
        let mut skipped = self.skipped.subscribe();
        loop {
            let left = until.saturating_sub(self.monotonic());
            if left.is_zero() {
                return;
            }
            tokio::select! {
                biased;
                () = self.clock.sleep(left) => {}
                _ = skipped.changed() => {}
            }
        }
    }
}

/// Waits until something is so.
async fn until(what: impl Fn() -> bool) {
    let waits = async {
        while !what() {
            tokio::task::yield_now().await;
            OsClock::new().sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waits).await.expect("it comes to be so");
}

fn last(backups: &NodeBackups) -> BackupView {
    backups.last().unwrap()
}

/// What a metric shows.
fn shown(registry: &Registry, name: &str) -> String {
    let mut text = String::new();
    encode(&mut text, registry).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_hangs_keeps_nothing_of_the_store_for_long() {
    let at = Folders::new();
    let running = Running::start(&at.data).await.unwrap();
    running.account("aaaa").await;
    running.content(1_000).await;
    let summary = Summary::new(&running.source(), &running.env).await.unwrap();
    let of_the_store = serde_json::to_string(&summary).unwrap();
    // The mark is read as from a mount that hangs: what reads it waits for who writes to it.
    let folder = at.other("hangs");
    let mark = folder.join("backup.incomplete");
    std::fs::create_dir(&folder).unwrap();
    mknodat(CWD, &mark, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let write_end = async || {
        let mark = mark.clone();
        tokio::task::spawn_blocking(|| File::options().write(true).open(mark).unwrap()).await
    };
    let clock = SkippingClock::new();
    let env = Env { clock: Arc::clone(&clock) as Arc<dyn Clock>, ..running.env.clone() };
    let mut registry = Registry::default();
    let backups = NodeBackups::new(running.source(), env).registered(&mut registry);
    let requests = Arc::clone(&running.assembly.front.requests.all);
    let map = index::PartitionMap::load(running.storage.coordinator.as_ref()).await.unwrap();
    let log = map.partitions().iter().find_map(|one| one.log.first().copied()).unwrap();
    let keeps = || running.assembly.index.index.keeps(log);
    assert!(!keeps());
    backups.begin(folder.clone()).unwrap();

    // First the mark is read to see whether the directory may become a backup.
    write_end().await.unwrap().write_all(of_the_store.as_bytes()).unwrap();
    // It is read again when the store is cut, and what the cut names is kept.
    until(|| requests.oldest_read().now_or_never().unwrap().unwrap().is_some()).await;
    let mut hung = write_end().await.unwrap();
    assert!(keeps());
    assert_eq!(last(&backups).state, "running");
    clock.skip(GIVE_UP_AFTER);
    until(|| last(&backups).state != "running").await;

    let error = last(&backups).error.unwrap();
    assert!(error.contains("did not answer for 10 minutes"), "{error}");
    assert_eq!(requests.oldest_read().await.unwrap(), None);
    assert!(!keeps());
    assert_eq!(shown(&registry, "backups_given_up_total"), "1");
    assert_eq!(shown(&registry, "backups_unanswered"), "1");
    // The next one goes to another directory; this one is not tried.
    let refused = backups.begin(folder.clone()).unwrap();
    assert_eq!((refused.number, refused.state.as_str()), (2, "failed"));
    assert!(refused.error.unwrap().contains("still does not answer"));
    backups.begin(at.backup.clone()).unwrap();
    until(|| last(&backups).state != "running").await;
    let other = last(&backups);
    assert_eq!((other.number, other.state.as_str()), (3, "complete"), "{other:?}");

    // It answers again. The backup sees that it was given up and changes nothing.
    hung.write_all(of_the_store.as_bytes()).unwrap();
    drop(hung);
    until(|| shown(&registry, "backups_unanswered") == "0").await;
    assert_eq!(last(&backups), other);
    let mut names: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["backup.incomplete", "lock"]);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_that_was_given_up_is_not_completed() {
    let at = Folders::new();
    let running = Running::start(&at.data).await.unwrap();
    running.account("aaaa").await;
    running.content(1_000).await;
    let steps = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&steps);
    let count = Arc::new(move |_: Step| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    backup(&running.source(), &at.other("whole"), &running.env, count).await.unwrap();
    let steps = steps.load(Ordering::Relaxed);
    assert!(steps > 2, "{steps}");
    for number in 0..steps {
        let attempt = attempt();
        let (done, given_up) = (AtomicUsize::new(0), Arc::clone(&attempt));
        let give_up = Arc::new(move |_: Step| {
            if done.fetch_add(1, Ordering::Relaxed) == number {
                given_up.give_up();
            }
        });
        let source = running.source();
        let how = How { pace: Pace::of(&source), progress: give_up as Progress, attempt };
        let made = backup_unless_given_up(&source, &at.backup, &running.env, how).await;
        assert!(matches!(made, Err(BackupError::GivenUp)), "{number}: {made:?}");
        let refused = restored(&at.backup, &at.other("no"), &at.key).await.unwrap_err();
        assert!(matches!(refused, BackupError::Incomplete(_)), "{number}: {refused}");
        assert!(!at.backup.join("coordinator.redb").exists(), "{number}");
    }
    backup(&running.source(), &at.backup, &running.env, silent()).await.unwrap();
    running.stop().await;
    restored(&at.backup, &at.other("restored"), &at.key).await.unwrap();
    assert_eq!(sound(&at.other("restored"), &at.key).await, 1);
}
