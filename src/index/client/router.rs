//! Sends a request to the partition that owns its key. A stale map costs another round trip, never
//! a wrong answer (I15).

use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::RwLock;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;

use crate::coordinator::Coordinator;
use crate::env::Boxed;
use crate::env::Env;
use crate::env::Waiting;
use crate::env::waiting;
use crate::index::Error;
use crate::index::IndexHost;
use crate::index::ListBlobs;
use crate::index::ListPage;
use crate::index::ListUploads;
use crate::index::PartitionMap;
use crate::index::Read;
use crate::index::ReadReply;
use crate::index::ReadRequest;
use crate::index::Target;
use crate::index::Write;
use crate::index::WriteReply;
use crate::index::WriteRequest;
use crate::index::api::Place;
use crate::index::client::fixed::owner;
use crate::index::client::follow::MapFollower;
use crate::index::client::numbers::WriteNumbers;
use crate::index::client::stale::PATIENCE;
use crate::index::client::stale::StaleRetry;
use crate::index::client::stripes;
use crate::types::request::Stage;

/// The answer of each owner of a range.
type Answers<Q> = Vec<Result<<Q as ReadRequest>::Reply, Error>>;

/// Routes requests by key with a cached partition map.
#[derive(Debug)]
pub struct Router {
    host: Arc<dyn IndexHost>,
    coordinator: Arc<dyn Coordinator>,
    pub(super) env: Env,
    map: RwLock<Arc<PartitionMap>>,
    /// One task refreshes the map for all requests that found it stale.
    following: tokio::sync::Mutex<MapFollower>,
    /// Numbers the writes, if other processes carry them out.
    pub(super) numbers: Option<Arc<WriteNumbers>>,
}

impl Router {
    /// Reads the map.
    ///
    /// # Errors
    /// As [`PartitionMap::load`].
    pub async fn new(
        host: Arc<dyn IndexHost>,
        coordinator: Arc<dyn Coordinator>,
        env: Env,
    ) -> Result<Self, Error> {
        let following = MapFollower::new(coordinator.as_ref()).await?;
        let map = RwLock::new(following.map());
        Ok(Self { host, coordinator, env, map, following: following.into(), numbers: None })
    }

    /// Sends writes whose outcome is unknown again, under these numbers.
    #[must_use]
    pub fn numbering(self, numbers: Option<Arc<WriteNumbers>>) -> Self {
        Self { numbers, ..self }
    }

    /// The map as last read.
    #[must_use]
    pub fn map(&self) -> Arc<PartitionMap> {
        Arc::clone(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The end of the range that contains a position, by the map as last read; `None` if it is the
    /// end of the key space.
    #[must_use]
    pub fn end_of_range(&self, position: &[u8]) -> Option<Bytes> {
        let map = self.map();
        let high = map.at(position).first()?.keys.range().high()?;
        Some(high.as_bytes().clone())
    }

    /// Reads from the owner of `key`.
    ///
    /// # Errors
    /// The owner's answer.
    pub async fn read(&self, key: &[u8], read: Read) -> Result<ReadReply, Error> {
        self.read_kept(key, &read).await
    }

    async fn read_kept(&self, key: &[u8], read: &Read) -> Result<ReadReply, Error> {
        let mut retry = StaleRetry::default();
        loop {
            let map = self.map();
            let target = owner(&map, key)?;
            match self.waiting(self.host.read_kept(target, read)).await {
                Err(Error::WrongPartition) => {
                    self.refresh(Refused { map: &map, target }, &mut retry).await?;
                }
                answer => return answer,
            }
        }
    }

    /// Reads from the owner of the question's key.
    ///
    /// # Errors
    /// The owner's answer.
    pub async fn ask<Q: ReadRequest>(&self, question: Q) -> Result<Q::Reply, Error> {
        let read: Read = question.into();
        let (Place::Key(key) | Place::From(key)) = read.place() else {
            return Err(Error::WrongPartition);
        };
        self.read_kept(&key, &read).await.and_then(Q::checked)
    }

    /// Reads from all partitions of the range that contains a position: one, or all stripes by
    /// number. Returns the end of the range, and the answers. All answers are of the same map.
    ///
    /// # Errors
    /// Errors of the coordinator, and [`Error::Overloaded`] if the map stays stale for too long.
    pub async fn ask_each<Q: ReadRequest + Sync>(
        &self,
        position: &[u8],
        question: Q,
    ) -> Result<(Option<Bytes>, Answers<Q>), Error> {
        let (high, answers) = self.read_each(position, |_| question.clone().into()).await?;
        Ok((high, answers.into_iter().map(|answer| answer.and_then(Q::checked)).collect()))
    }

    /// As [`Self::ask_each`], with requests that depend on the number of stripes.
    async fn read_each(
        &self,
        position: &[u8],
        read: impl Fn(usize) -> Read,
    ) -> Result<(Option<Bytes>, Vec<Result<ReadReply, Error>>), Error> {
        let mut retry = StaleRetry::default();
        loop {
            let map = self.map();
            let owners = map.at(position);
            let ask = |target| {
                let answer = self.host.read(target, read(owners.len()));
                async move { (target, answer.await) }
            };
            let asked = join_all(owners.iter().map(Target::of).map(ask));
            let answers = self.waiting(asked).await;
            let mut stale =
                answers.iter().filter(|one| matches!(one.1, Err(Error::WrongPartition)));
            if let Some((target, _)) = stale.next() {
                self.refresh(Refused { map: &map, target: *target }, &mut retry).await?;
                continue;
            }
            let high = owners.first().and_then(|owner| owner.keys.range().high());
            let answers = answers.into_iter().map(|(_, answer)| answer).collect();
            return Ok((high.map(|high| high.as_bytes().clone()), answers));
        }
    }

    /// Lists blobs: returns a page of the range that contains the list's position. It may have
    /// fewer entries than requested although there are more; then it says where to continue.
    ///
    /// # Errors
    /// The first refusal.
    pub async fn list(&self, list: &ListBlobs) -> Result<ListPage, Error> {
        let ask = |stripes| Read::Blobs(stripes::part(list, stripes));
        let (high, answers) = self.read_each(&list.position(), ask).await?;
        stripes::of_answers(answers, list, high.as_ref())
    }

    /// Lists uploads, as [`Self::list`] lists blobs.
    ///
    /// # Errors
    /// The first refusal.
    pub async fn list_uploads(&self, uploads: &ListUploads) -> Result<ListPage, Error> {
        let list = &uploads.list;
        let ask = |stripes| {
            let list = stripes::part(list, stripes);
            Read::Uploads(ListUploads { list, after: uploads.after.clone() })
        };
        let (high, answers) = self.read_each(&uploads.position(), ask).await?;
        stripes::of_answers(answers, list, high.as_ref())
    }

    /// Sends a write to the owner of its key, and returns the reply of its type.
    ///
    /// # Errors
    /// The owner's answer.
    pub async fn tell<W: WriteRequest>(&self, change: W) -> Result<W::Reply, Error> {
        self.write_shared(Arc::new(change.into())).await.and_then(W::checked)
    }

    /// Sends a write to the owner of its key.
    ///
    /// # Errors
    /// The owner's answer.
    pub async fn write(&self, write: Write) -> Result<WriteReply, Error> {
        self.write_shared(Arc::new(write)).await
    }

    /// As [`Self::write`], of a write that the caller has made shared.
    ///
    /// # Errors
    /// The owner's answer.
    pub async fn write_shared(&self, write: Arc<Write>) -> Result<WriteReply, Error> {
        let key = write.routing_key();
        let numbers = self.numbers.as_ref().filter(|_| !write.is_repeatable());
        let Some(numbers) = numbers else {
            return self
                .send(&key, |target| self.host.write_shared(target, Arc::clone(&write)))
                .await;
        };
        let attempt = |id| {
            let write = &write;
            self.send(&key, move |target| self.host.write_once(target, id, Arc::clone(write)))
        };
        numbers.begin().send(self.env.clock.as_ref(), attempt).await
    }

    /// Sends a write to the owner of `key`, as the map has it by then.
    async fn send<'a>(
        &self,
        key: &[u8],
        send: impl Fn(Target) -> Boxed<'a, Result<WriteReply, Error>>,
    ) -> Result<WriteReply, Error> {
        let mut retry = StaleRetry::default();
        loop {
            let map = self.map();
            let target = owner(&map, key)?;
            match self.waiting(send(target)).await {
                Err(Error::WrongPartition) => {
                    self.refresh(Refused { map: &map, target }, &mut retry).await?;
                }
                answer => return answer,
            }
        }
    }

    /// Measures how long the current request waits for the index.
    fn waiting<F: Future>(&self, asked: F) -> Waiting<'_, F> {
        waiting(self.env.clock.as_ref(), Stage::Index, asked)
    }

    async fn refresh(&self, refused: Refused<'_>, retry: &mut StaleRetry) -> Result<(), Error> {
        let Refused { map, target } = refused;
        let again = retry.record(target, self.env.clock.monotonic())?;
        if again > 0 {
            // The coordinator's map is still the stale one: the owner is changing. The pause
            // doubles each time. It is made without the lock, which requests to other owners may
            // need.
            self.env.clock.sleep(Duration::from_millis(1 << again.min(6))).await;
        }
        // The limit holds for the lock too: it may be held as long as the coordinator does not
        // answer.
        let patience = PATIENCE.saturating_sub(retry.waited(self.env.clock.monotonic()));
        tokio::select! {
            biased;
            followed = self.follow(map, again > 0) => followed,
            () = self.env.clock.sleep(patience) => Err(Error::Overloaded),
        }
    }

    /// Refreshes the map. If the coordinator does not answer, the request is not refused but sent
    /// again with the old map: its owner may answer by then.
    async fn follow(&self, stale: &Arc<PartitionMap>, whole: bool) -> Result<(), Error> {
        let mut following = self.following.lock().await;
        if !Arc::ptr_eq(stale, &self.map()) {
            return Ok(());
        }
        match following.refresh(self.coordinator.as_ref(), whole).await {
            Ok(map) => *self.map.write().unwrap_or_else(PoisonError::into_inner) = map,
            Err(Error::Unavailable(reason)) => {
                tracing::debug!(reason, "the partition map could not be read; the old map is used");
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// A partition that refused a request, and the map that named it as the owner.
struct Refused<'a> {
    map: &'a Arc<PartitionMap>,
    target: Target,
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering;

    use async_trait::async_trait;

    use super::*;
    use crate::coordinator::Faults;
    use crate::coordinator::SimulatedStore;
    use crate::index::client::testing::ReadIndex;
    use crate::index::client::testing::Reads;
    use crate::index::client::testing::env;
    use crate::index::client::testing::publish as publish_partition;
    use crate::types::KeyRange;

    /// Answers at one epoch only.
    #[derive(Debug)]
    struct Owner {
        epoch: AtomicU64,
        asked: AtomicU64,
        /// How often it changes its epoch before it answers, and where it publishes that.
        changes: AtomicU64,
        coordinator: Arc<dyn Coordinator>,
    }

    #[async_trait]
    impl Reads for Owner {
        async fn read(&self, target: Target, _read: Read) -> Result<ReadReply, Error> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            if self.changes.load(Ordering::Relaxed) > 0 {
                self.changes.fetch_sub(1, Ordering::Relaxed);
                let epoch = self.epoch.fetch_add(1, Ordering::Relaxed) + 1;
                publish(self.coordinator.as_ref(), epoch).await;
            }
            if target.epoch.get() == self.epoch.load(Ordering::Relaxed) {
                Ok(ReadReply::DeadContainers(Vec::new()))
            } else {
                Err(Error::WrongPartition)
            }
        }
    }

    async fn publish(coordinator: &dyn Coordinator, epoch: u64) {
        publish_partition(coordinator, (1, epoch), KeyRange::all()).await;
    }

    async fn rig() -> (Arc<Owner>, Arc<dyn Coordinator>, Router) {
        rig_of(&SimulatedStore::new()).await
    }

    async fn rig_of(store: &SimulatedStore) -> (Arc<Owner>, Arc<dyn Coordinator>, Router) {
        let env = env();
        let coordinator: Arc<dyn Coordinator> = Arc::new(store.open(&env));
        publish(coordinator.as_ref(), 1).await;
        let owner = Arc::new(Owner {
            epoch: AtomicU64::new(1),
            asked: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            coordinator: Arc::clone(&coordinator),
        });
        let host = Arc::new(ReadIndex(Arc::clone(&owner)));
        let router = Router::new(host, Arc::clone(&coordinator), env).await.unwrap();
        (owner, coordinator, router)
    }

    #[tokio::test(start_paused = true)]
    async fn stale_map_is_read_again_and_the_request_goes_through() {
        let (owner, coordinator, router) = rig().await;
        owner.epoch.store(2, Ordering::Relaxed);
        publish(coordinator.as_ref(), 2).await;
        router.read(b"key", Read::DeadContainers).await.unwrap();
        assert_eq!(owner.asked.load(Ordering::Relaxed), 2);
        router.read(b"key", Read::DeadContainers).await.unwrap();
        assert_eq!(owner.asked.load(Ordering::Relaxed), 3, "the new map is kept");
    }

    #[tokio::test(start_paused = true)]
    async fn map_that_stays_behind_ends_in_overload_not_in_a_loop() {
        let (owner, _coordinator, router) = rig().await;
        owner.epoch.store(2, Ordering::Relaxed);
        let begun = router.env.clock.monotonic();
        let refused = router.read(b"key", Read::DeadContainers).await.unwrap_err();
        assert_eq!(refused, Error::Overloaded);
        let took = router.env.clock.monotonic() - begun;
        assert!(took >= PATIENCE && took < PATIENCE * 2, "{took:?}");
        let asked = owner.asked.load(Ordering::Relaxed);
        assert!(asked < 200, "asked {asked} times");
    }

    /// One partition may be closed for long; changes of others cost no more than before.
    #[tokio::test(start_paused = true)]
    async fn who_waits_for_an_owner_does_not_keep_others_from_a_newer_map() {
        let (owner, coordinator, router) = rig().await;
        owner.epoch.store(3, Ordering::Relaxed);
        let clock = &router.env.clock;
        let waits = router.read(b"key", Read::DeadContainers);
        let other = async {
            clock.sleep(PATIENCE / 4).await;
            for _ in 0..20 {
                let (stale, begun) = (router.map(), clock.monotonic());
                publish(coordinator.as_ref(), 2).await;
                let met = Refused { map: &stale, target: Target::of(&stale.partitions()[0]) };
                router.refresh(met, &mut StaleRetry::default()).await.unwrap();
                assert_eq!(clock.monotonic(), begun);
                clock.sleep(Duration::from_millis(7)).await;
            }
            publish(coordinator.as_ref(), 3).await;
        };
        tokio::join!(waits, other).0.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn request_outlasts_any_number_of_changes_of_the_map() {
        const CHANGES: u64 = 1_000;
        let (owner, _coordinator, router) = rig().await;
        owner.changes.store(CHANGES, Ordering::Relaxed);
        router.read(b"key", Read::DeadContainers).await.unwrap();
        assert_eq!(owner.asked.load(Ordering::Relaxed), CHANGES + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn owner_that_takes_seconds_to_change_is_waited_for() {
        let (owner, coordinator, router) = rig().await;
        owner.epoch.store(2, Ordering::Relaxed);
        let late = async {
            router.env.clock.sleep(PATIENCE / 2).await;
            publish(coordinator.as_ref(), 2).await;
        };
        let (read, ()) = tokio::join!(router.read(b"key", Read::DeadContainers), late);
        read.unwrap();
    }

    /// Requests use the old map meanwhile. A request that met a stale map waits, within bounds.
    #[tokio::test(start_paused = true)]
    async fn coordinator_that_is_away_is_waited_for() {
        let store = SimulatedStore::new();
        let (owner, coordinator, router) = rig_of(&store).await;
        let away = |per_mille| {
            let faults = Faults { unavailable_per_mille: per_mille, ..Faults::default() };
            store.set_faults(faults);
        };
        away(1_000);
        router.read(b"key", Read::DeadContainers).await.unwrap();
        assert_eq!(owner.asked.load(Ordering::Relaxed), 1, "the map was not stale");
        owner.epoch.store(2, Ordering::Relaxed);
        let back = async {
            router.env.clock.sleep(PATIENCE / 2).await;
            away(0);
            publish(coordinator.as_ref(), 2).await;
        };
        let (read, ()) = tokio::join!(router.read(b"key", Read::DeadContainers), back);
        read.unwrap();
        owner.epoch.store(3, Ordering::Relaxed);
        away(1_000);
        let begun = router.env.clock.monotonic();
        let refused = router.read(b"key", Read::DeadContainers).await.unwrap_err();
        assert_eq!(refused, Error::Overloaded);
        let took = router.env.clock.monotonic() - begun;
        assert!(took >= PATIENCE && took < PATIENCE * 2, "{took:?}");
    }

    /// A coordinator that does not answer at all holds the lock that all wait for.
    #[tokio::test(start_paused = true)]
    async fn coordinator_that_never_answers_is_waited_for_within_bounds() {
        let store = SimulatedStore::new();
        let (owner, _coordinator, router) = rig_of(&store).await;
        store.set_faults(Faults { delay_max: PATIENCE * 1_000, ..Faults::default() });
        owner.epoch.store(2, Ordering::Relaxed);
        let begun = router.env.clock.monotonic();
        let both = [b"a", b"b"].map(|key| router.read(key, Read::DeadContainers));
        for refused in join_all(both).await {
            assert_eq!(refused.unwrap_err(), Error::Overloaded);
        }
        let took = router.env.clock.monotonic() - begun;
        assert!(took < PATIENCE * 2, "{took:?}");
    }
}
