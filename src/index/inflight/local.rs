//! Answers questions about the running requests of this process.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::env::Clock;
use crate::index::InFlight;
use crate::index::api::CopyWatchId;
use crate::index::api::Error;
use crate::index::api::HoldId;
use crate::index::api::OldestRead;
use crate::index::api::RequestMark;
use crate::index::api::Running;
use crate::index::api::RunningRequests;
use crate::types::ExtentId;

/// The requests of this process. It always answers.
#[derive(Clone, Debug)]
pub struct LocalRequests {
    inflight: InFlight,
    clock: Arc<dyn Clock>,
}

impl LocalRequests {
    /// Those that are noted in `inflight`, with times of `clock`.
    #[must_use]
    pub fn shared(inflight: InFlight, clock: Arc<dyn Clock>) -> Arc<dyn RunningRequests> {
        Arc::new(Self::new(inflight, clock))
    }

    /// As [`Self::shared`].
    #[must_use]
    pub fn new(inflight: InFlight, clock: Arc<dyn Clock>) -> Self {
        Self { inflight, clock }
    }

    /// The time by which reads are noted.
    pub(super) fn now(&self) -> Duration {
        self.clock.monotonic()
    }

    /// A mark, and one before which everything has ended.
    pub(super) fn marks(&self) -> (RequestMark, RequestMark) {
        // The later one last.
        let ended = RequestMark {
            reads: self.inflight.reads_ended(),
            changes: self.inflight.changes_ended(),
            copies: self.inflight.copies_ended(),
        };
        (self.next(), ended)
    }

    fn next(&self) -> RequestMark {
        RequestMark {
            reads: self.inflight.next_read(),
            changes: self.inflight.next_change(),
            copies: self.inflight.next_copy(),
        }
    }
}

#[async_trait]
impl RunningRequests for LocalRequests {
    async fn mark(&self) -> Result<RequestMark, Error> {
        Ok(self.next())
    }

    async fn is_running(&self, asked: Running) -> Result<bool, Error> {
        let inflight = &self.inflight;
        Ok(match asked {
            Running::Read { before, extents } => inflight.is_read(before.reads, &extents),
            Running::Layer { before, blob } => inflight.is_making_layer(before.reads, &blob),
            Running::Change { before } => inflight.is_changing(before.changes),
            Running::Commit { before } => inflight.is_committing(before.changes),
            Running::CopyLookUp { before } => inflight.is_copy_looking_up(before.copies),
            Running::Copy { since, extent } => inflight.is_copied_since(since.0, extent),
        })
    }

    async fn written_extents(&self) -> Result<BTreeSet<ExtentId>, Error> {
        Ok(self.inflight.written())
    }

    async fn oldest_read(&self) -> Result<Option<OldestRead>, Error> {
        Ok(self.inflight.oldest_read(self.clock.monotonic()))
    }

    async fn watch_copies(&self) -> Result<CopyWatchId, Error> {
        Ok(CopyWatchId(self.inflight.begin_watch()))
    }

    async fn has_seen_all(&self, _: CopyWatchId) -> Result<bool, Error> {
        Ok(true)
    }

    fn end_watch(&self, watch: CopyWatchId) {
        self.inflight.end_watch(watch.0);
    }

    async fn hold(&self, what: String) -> Result<HoldId, Error> {
        Ok(HoldId(self.inflight.begin_hold(self.clock.monotonic(), what)))
    }

    fn end_hold(&self, hold: HoldId) {
        self.inflight.end_hold(hold.0);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::env::SimClock;
    use crate::index::api::CopyWatch;
    use crate::index::api::Hold;
    use crate::types::RoutingKey;

    const ONE: ExtentId = ExtentId::new(1);

    fn requests() -> (InFlight, Arc<SimClock>, Arc<dyn RunningRequests>) {
        let (inflight, clock) = (InFlight::default(), Arc::new(SimClock::new()));
        let requests = LocalRequests::shared(inflight.clone(), Arc::clone(&clock) as _);
        (inflight, clock, requests)
    }

    #[tokio::test]
    async fn each_question_is_answered_by_what_was_noted_before_its_mark() {
        let (inflight, _, requests) = requests();
        let now = Duration::ZERO;
        let blob = RoutingKey::min();
        let early = (
            inflight.read(now),
            inflight.layer(blob.clone()),
            inflight.change(),
            inflight.commit(),
            inflight.copy(),
        );
        let mark = requests.mark().await.unwrap();
        let of = |before: RequestMark| {
            [
                Running::Read { before, extents: vec![ONE] },
                Running::Read { before, extents: Vec::new() },
                Running::Layer { before, blob: blob.clone() },
                Running::Change { before },
                Running::Commit { before },
                Running::CopyLookUp { before },
            ]
        };
        for asked in of(mark) {
            assert!(requests.is_running(asked.clone()).await.unwrap(), "{asked:?}");
        }
        drop(early);
        let late = (
            inflight.read(now),
            inflight.layer(blob.clone()),
            inflight.change(),
            inflight.commit(),
            inflight.copy(),
        );
        for asked in of(mark) {
            assert!(!requests.is_running(asked.clone()).await.unwrap(), "{asked:?}");
        }
        for asked in of(requests.mark().await.unwrap()) {
            assert!(requests.is_running(asked.clone()).await.unwrap(), "{asked:?}");
        }
        drop(late);
    }

    #[tokio::test]
    async fn extents_of_running_writes_are_listed_until_the_last_one_ends() {
        let (inflight, _, requests) = requests();
        let first = inflight.write(ONE);
        let second = first.another();
        let third = inflight.write(ExtentId::new(3));
        let written = async || requests.written_extents().await.unwrap();
        assert_eq!(written().await, BTreeSet::from([ONE, ExtentId::new(3)]));
        drop((first, third));
        assert_eq!(written().await, BTreeSet::from([ONE]));
        drop(second);
        assert_eq!(written().await, BTreeSet::new());
    }

    #[tokio::test]
    async fn watch_of_copies_ends_when_it_is_dropped() {
        let (inflight, _, requests) = requests();
        let watch = CopyWatch::begin(&requests).await.unwrap();
        let since = watch.id();
        let named = async || {
            let asked = Running::Copy { since, extent: ONE };
            requests.is_running(asked).await.unwrap()
        };
        assert!(!named().await);
        inflight.copy().met([ONE]);
        assert!(named().await, "it ended, and its row may be behind the walk");
        drop(watch);
        assert_eq!(inflight.state.lock().unwrap().watches.len(), 0);
        assert!(named().await, "nobody knows any more");
    }

    #[tokio::test(start_paused = true)]
    async fn hold_is_a_read_that_may_name_anything() {
        let (inflight, clock, requests) = requests();
        clock.sleep(Duration::from_secs(5)).await;
        let hold = Hold::begin(&requests, "a backup".to_owned()).await.unwrap();
        let second = Hold::begin(&requests, "another".to_owned()).await.unwrap();
        let before = requests.mark().await.unwrap();
        clock.sleep(Duration::from_secs(7)).await;
        let oldest = requests.oldest_read().await.unwrap().unwrap();
        let described = (oldest.age, oldest.what.as_deref());
        assert_eq!(described, (Duration::from_secs(7), Some("a backup")));
        let held = async || {
            let asked = Running::Read { before, extents: vec![ONE] };
            requests.is_running(asked).await.unwrap()
        };
        drop(hold);
        assert!(held().await, "by the other");
        drop(second);
        assert!(!held().await);
        assert_eq!(requests.oldest_read().await.unwrap(), None);
        drop(inflight);
    }
}
