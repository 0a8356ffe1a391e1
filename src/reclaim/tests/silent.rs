//! What is freed when those that run requests do not answer: nothing that a question is about.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use super::containers::make_and_delete_container;
use super::fakes::*;
use crate::capacity::ExtentKind::Data;
use crate::capacity::ExtentState::Sealed;
use crate::index;
use crate::index::OldestRead;
use crate::index::RequestMark;
use crate::index::Running;
use crate::index::RunningRequests;
use crate::index::api::CopyWatchId;
use crate::index::api::HoldId;
use crate::reclaim::Error;
use crate::reclaim::Reclaim;
use crate::reclaim::service::PassState;
use crate::types::ExtentId;

const HOUR: Duration = Duration::from_secs(3_600);

/// Requests that are not answered about from a call on, until another one.
#[derive(Debug)]
struct Silent {
    requests: Arc<dyn RunningRequests>,
    calls: AtomicUsize,
    from: AtomicUsize,
    to: AtomicUsize,
}

impl Silent {
    fn new(bench: &Bench) -> Arc<Self> {
        Arc::new(Self {
            requests: bench.setup().requests,
            calls: AtomicUsize::new(0),
            from: AtomicUsize::new(0),
            to: AtomicUsize::new(usize::MAX),
        })
    }

    /// Answers everything from now on.
    fn speak(&self) {
        self.to.store(0, Ordering::Relaxed);
    }

    fn answers(&self) -> Result<(), index::Error> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let silent = self.from.load(Ordering::Relaxed)..self.to.load(Ordering::Relaxed);
        match silent.contains(&call) {
            true => Err(index::Error::Unavailable("no answer".to_owned())),
            false => Ok(()),
        }
    }
}

#[async_trait]
impl RunningRequests for Silent {
    async fn mark(&self) -> Result<RequestMark, index::Error> {
        self.answers()?;
        self.requests.mark().await
    }

    async fn is_running(&self, asked: Running) -> Result<bool, index::Error> {
        self.answers()?;
        self.requests.is_running(asked).await
    }

    async fn written_extents(&self) -> Result<BTreeSet<ExtentId>, index::Error> {
        self.answers()?;
        self.requests.written_extents().await
    }

    async fn oldest_read(&self) -> Result<Option<OldestRead>, index::Error> {
        self.answers()?;
        self.requests.oldest_read().await
    }

    async fn watch_copies(&self) -> Result<CopyWatchId, index::Error> {
        self.answers()?;
        self.requests.watch_copies().await
    }

    async fn has_seen_all(&self, watch: CopyWatchId) -> Result<bool, index::Error> {
        self.requests.has_seen_all(watch).await
    }

    fn end_watch(&self, watch: CopyWatchId) {
        self.requests.end_watch(watch);
    }

    async fn hold(&self, what: String) -> Result<HoldId, index::Error> {
        self.answers()?;
        self.requests.hold(what).await
    }

    fn end_hold(&self, hold: HoldId) {
        self.requests.end_hold(hold);
    }
}

fn reclaim(bench: &Bench, silent: &Arc<Silent>) -> Arc<Reclaim> {
    let mut setup = bench.setup();
    setup.requests = Arc::clone(silent) as _;
    Reclaim::new(setup)
}

#[tokio::test(start_paused = true)]
async fn garbage_waits_for_an_answer() {
    let bench = Bench::new();
    bench.capacity.add(1, Data, Sealed, 10);
    bench.index.must(&put("a", &[location(1, 0, 9)]));
    bench.index.must(&delete("a"));
    let silent = Silent::new(&bench);
    let (reclaim, mut state) = (reclaim(&bench, &silent), PassState::default());
    for from in [0, 1] {
        // Neither a mark is answered, nor what is asked about it.
        silent.calls.store(0, Ordering::Relaxed);
        silent.from.store(from, Ordering::Relaxed);
        reclaim.pass(&mut state).await;
        assert_eq!(silent.calls.load(Ordering::Relaxed), from + 1);
        assert_eq!(bench.capacity.live(1).len(), 10);
        bench.after(HOUR).await;
    }
    silent.speak();
    reclaim.pass(&mut state).await;
    assert!(bench.capacity.live(1).is_empty());
}

#[tokio::test(start_paused = true)]
async fn deleted_container_is_remembered_until_there_is_an_answer() {
    let bench = Bench::new();
    bench.capacity.add(1, Data, Sealed, 4_000);
    make_and_delete_container(&bench);
    let silent = Silent::new(&bench);
    let (reclaim, mut state) = (reclaim(&bench, &silent), PassState::default());
    for _ in 0..3 {
        reclaim.pass(&mut state).await;
        bench.after(HOUR * 2).await;
    }
    assert_eq!(bench.metrics.purged_containers.get(), 0);
    silent.speak();
    for _ in 0..3 {
        reclaim.pass(&mut state).await;
        bench.after(HOUR * 2).await;
    }
    assert_eq!(bench.metrics.purged_containers.get(), 1);
}

/// Whichever question is not answered.
#[tokio::test(start_paused = true)]
async fn audit_without_an_answer_ends_and_frees_nothing() {
    let mut unanswered = 0;
    loop {
        let bench = Bench::new();
        bench.capacity.add(1, Data, Sealed, 100);
        bench.index.must(&put("a", &[location(1, 0, 9)]));
        let silent = Silent::new(&bench);
        silent.from.store(unanswered, Ordering::Relaxed);
        silent.to.store(unanswered + 1, Ordering::Relaxed);
        let reclaim = reclaim(&bench, &silent);
        match reclaim.audit().await {
            Err(Error::Index(index::Error::Unavailable(_))) => {
                assert_eq!(bench.capacity.live(1).len(), 100, "{unanswered}");
            }
            Ok(_) => break assert_eq!(bench.capacity.live(1).len(), 10),
            Err(error) => panic!("{error}"),
        }
        unanswered += 1;
        reclaim.audit().await.unwrap();
        assert_eq!(bench.capacity.live(1).len(), 10, "the next one is answered");
    }
    assert_eq!(unanswered, 7, "each question was left without an answer once");
}
