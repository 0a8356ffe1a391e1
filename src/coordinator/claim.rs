//! The right to be the only process that does something, such as managing the index. It is a key
//! that a session holds. Layout: `api-spec/nodes.md`.
//!
//! A claim says who should do it. It ends when its holder has not renewed it for [`CLAIM_TTL`], and
//! earlier if another process sees that the holder is gone ([`WatchHolder`]). So the holder may
//! learn late that it has lost it. What it changes through [`Claim::guard`] it changes only while
//! the claim is its own.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::api::Compare;
use super::api::Coordinator;
use super::api::Error;
use super::api::Op;
use super::api::Revision;
use super::api::Session;
use super::api::TxnReply;
use super::api::Versioned;
use super::guarded::Guarded;
use crate::env::Clock;
use crate::types::Incarnation;
use crate::types::NodeId;

/// A claim that is not renewed ends after this time. When the member of etcd that this process
/// talks to falls silent, the next renewal arrives at another one after 3.3 s.
pub const CLAIM_TTL: Duration = Duration::from_secs(4);
/// How much earlier its holder does not count on it any more: an eighth.
const MARGIN: Duration = Duration::from_millis(500);
/// How often it is renewed.
const RENEWED_EVERY: Duration = Duration::from_millis(750);
/// How long a process waits after the coordinator did not answer.
const PAUSE: Duration = Duration::from_millis(250);
/// A waiting process looks so often, whatever the watch says.
const LOOKS_EVERY: Duration = Duration::from_secs(5);
/// A process takes the claim of a holder that seems gone at most once in this time: if it is wrong
/// about that, nobody serves for a moment.
const TAKES_EVERY: Duration = Duration::from_secs(10);

/// The claim to manage the index: to say which process serves which partition.
pub const MANAGES_INDEX: &[u8] = b"claim/index";

/// Who has a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The node.
    pub node: NodeId,
    /// Its life.
    pub incarnation: Incarnation,
}

/// Tells whether the holder of a claim is gone. To be wrong about that costs a takeover, and no
/// promise.
#[async_trait]
pub trait WatchHolder: Send + Sync + Debug {
    /// Waits until the process of the holder is gone, as far as this one sees. Cancel safe.
    async fn gone(&self, holder: Holder);
}

/// A process that waits for a claim.
#[derive(Debug)]
pub struct Waiting<'a> {
    /// The claim.
    pub key: Bytes,
    /// Who waits.
    pub holder: Holder,
    /// Tells whether the present holder is gone.
    pub watch: &'a dyn WatchHolder,
}

/// A claim that this process has or had.
#[derive(Debug)]
pub struct Claim {
    coordinator: Arc<dyn Coordinator>,
    clock: Arc<dyn Clock>,
    key: Bytes,
    session: Session,
    /// What wrote the key. A key of another revision is somebody else's.
    revision: Revision,
    /// Until when it is held for certain: milliseconds of [`Clock::boot_time`].
    until: AtomicU64,
    is_released: AtomicBool,
}

impl Holder {
    /// The value in the coordinator.
    #[must_use]
    pub fn encode(self) -> Bytes {
        [self.node.get().to_be_bytes(), self.incarnation.get().to_be_bytes()].concat().into()
    }

    /// Reads a value; `None` if a newer release wrote it.
    #[must_use]
    pub fn decode(value: &[u8]) -> Option<Self> {
        let (node, incarnation) = value.split_first_chunk()?;
        let node = NodeId::new(u64::from_be_bytes(*node));
        let incarnation = Incarnation::new(u64::from_be_bytes(incarnation.try_into().ok()?));
        Some(Self { node, incarnation })
    }

    /// Who has a claim now.
    ///
    /// # Errors
    /// Those of [`Coordinator::get`].
    pub async fn of(coordinator: &dyn Coordinator, key: &[u8]) -> Result<Option<Self>, Error> {
        let found = coordinator.get(key).await?;
        Ok(found.and_then(|found| Self::decode(&found.value)))
    }
}

impl Waiting<'_> {
    /// Waits until the claim is free, or until its holder is gone.
    ///
    /// Cancel safe: a session that was opened ends by itself.
    pub async fn run(&self, coordinator: &Arc<dyn Coordinator>, clock: &Arc<dyn Clock>) -> Claim {
        let mut taken: Option<Duration> = None;
        loop {
            let error = match self.attempt(coordinator, clock).await {
                Ok(Attempt::Claimed(claim)) => return claim,
                Ok(Attempt::GivenBack) => continue,
                Ok(Attempt::Taken(by)) => {
                    let may_take = taken.is_none_or(|at| clock.monotonic() >= at + TAKES_EVERY);
                    match self.until_free(&**coordinator, &**clock, (&by, may_take)).await {
                        Ok(IsFree::Perhaps) => continue,
                        Ok(IsFree::Taken) => {
                            taken = Some(clock.monotonic());
                            continue;
                        }
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            tracing::warn!(%error, "a claim is tried again");
            clock.sleep(PAUSE).await;
        }
    }

    async fn attempt(
        &self,
        coordinator: &Arc<dyn Coordinator>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Attempt, Error> {
        let (name, holder) = (self.key.clone(), self.holder);
        let when = Compare::Absent(name.clone());
        if let Some(found) = coordinator.get(&name).await? {
            return Ok(Attempt::Taken(found));
        }
        let sent = clock.boot_time();
        let session = coordinator.open_session(CLAIM_TTL).await?;
        let put = [Op::PutWithSession(name.clone(), holder.encode(), session)];
        let revision = match coordinator.txn(&[when], &put).await {
            Ok(TxnReply::Committed(revision)) => revision,
            // If the answer was lost, the key goes with its session. What the key says now would
            // not show which session it belongs to.
            Ok(TxnReply::Rejected(_)) | Err(Error::Ambiguous) => {
                coordinator.close_session(session).await?;
                return Ok(Attempt::GivenBack);
            }
            Err(error) => return Err(error),
        };
        let (coordinator, clock) = (Arc::clone(coordinator), Arc::clone(clock));
        let (until, is_released) = (AtomicU64::new(0), AtomicBool::new(false));
        let key = name;
        let claim = Claim { coordinator, clock, key, session, revision, until, is_released };
        claim.renewed(sent);
        Ok(Attempt::Claimed(claim))
    }

    /// Waits until the key changes, or for a while. If its holder is gone, removes the key.
    async fn until_free(
        &self,
        coordinator: &dyn Coordinator,
        clock: &dyn Clock,
        (found, may_take): (&Versioned, bool),
    ) -> Result<IsFree, Error> {
        let mut watch = coordinator.watch(&self.key, found.mod_revision).await?;
        let by = Holder::decode(&found.value).filter(|_| may_take);
        let gone = async {
            match by {
                Some(by) => self.watch.gone(by).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            changed = watch.next() => return changed.map(|_| IsFree::Perhaps),
            () = gone => {}
            () = clock.sleep(LOOKS_EVERY) => return Ok(IsFree::Perhaps),
        }
        let node = by.map(|by| by.node.get());
        tracing::warn!(node, "nobody listens where the claim is held: it is taken");
        let key = self.key.clone();
        let when = Compare::ModRevision(key.clone(), found.mod_revision);
        // Whatever became of it: the next attempt looks.
        match coordinator.txn(&[when], &[Op::Delete(key)]).await {
            Ok(_) | Err(Error::Ambiguous) => Ok(IsFree::Taken),
            Err(error) => Err(error),
        }
    }
}

impl Claim {
    /// The coordinator, for changes that are made only while the claim is held.
    #[must_use]
    pub fn guard(&self) -> Guarded {
        Guarded::new(Arc::clone(&self.coordinator), self.key.clone(), self.revision)
    }

    /// Renews the claim until it is lost.
    ///
    /// Cancel safe.
    pub async fn keep(&self) {
        let mut pause = RENEWED_EVERY;
        loop {
            self.clock.sleep(pause).await;
            let sent = self.clock.boot_time();
            match self.renew().await {
                Ok(true) => {
                    self.renewed(sent);
                    pause = RENEWED_EVERY;
                }
                Ok(false) | Err(Error::SessionEnded) => return,
                Err(error) => {
                    tracing::warn!(%error, "a claim is not renewed");
                    pause = PAUSE;
                }
            }
        }
    }

    /// Renews the session. Returns whether the key is still its own.
    async fn renew(&self) -> Result<bool, Error> {
        self.coordinator.keep_alive(self.session).await?;
        let found = self.coordinator.get(&self.key).await?;
        Ok(found.is_some_and(|found| found.mod_revision == self.revision))
    }

    /// Whether the claim was renewed lately. It may be false for a while because the coordinator
    /// does not answer, and true after that.
    #[must_use]
    pub fn is_held(&self) -> bool {
        let until = self.until.load(Ordering::Acquire);
        !self.is_released.load(Ordering::Acquire) && millis(self.clock.boot_time()) < until
    }

    /// Gives the claim back: another process may have it at once.
    pub async fn release(&self) {
        // A renewal may be under way.
        self.is_released.store(true, Ordering::Release);
        if let Err(error) = self.coordinator.close_session(self.session).await {
            tracing::info!(%error, "a claim that is not given back ends by itself");
        }
    }

    /// A renewal was sent at this time and took effect later.
    fn renewed(&self, sent: Duration) {
        let until = sent.saturating_add(CLAIM_TTL.saturating_sub(MARGIN));
        self.until.store(millis(until), Ordering::Release);
    }
}

/// What became of an attempt.
enum Attempt {
    Claimed(Claim),
    /// Another node was faster, or the outcome is unknown.
    GivenBack,
    /// Another node has it.
    Taken(Versioned),
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Whether a claim is free.
enum IsFree {
    Perhaps,
    /// It was taken from a holder that is gone.
    Taken,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::simulated::Fault;
    use crate::coordinator::simulated::SimulatedStore;
    use crate::env::Env;
    use crate::env::SeededRand;
    use crate::env::SimClock;
    use crate::env::Tasks;

    struct World {
        env: Env,
        store: SimulatedStore,
        coordinator: Arc<dyn Coordinator>,
    }

    impl World {
        fn new() -> Self {
            let (clock, rand) = (Arc::new(SimClock::new()), Arc::new(SeededRand::new(1)));
            let env = Env { clock, rand, tasks: Tasks::new() };
            let store = SimulatedStore::new();
            let coordinator = Arc::new(store.open(&env));
            Self { env, store, coordinator }
        }

        async fn wait(&self, node: u64, incarnation: u64) -> Claim {
            self.wait_unless_gone(node, incarnation, &Gone(None)).await
        }

        async fn wait_unless_gone(&self, node: u64, incarnation: u64, watch: &Gone) -> Claim {
            let holder = holder(node, incarnation);
            let waiting = Waiting { key: Bytes::from_static(MANAGES_INDEX), holder, watch };
            waiting.run(&self.coordinator, &self.env.clock).await
        }

        async fn sleep(&self, millis: u64) {
            self.env.clock.sleep(Duration::from_millis(millis)).await;
        }
    }

    /// Who is gone.
    #[derive(Debug)]
    struct Gone(Option<Holder>);

    #[async_trait]
    impl WatchHolder for Gone {
        async fn gone(&self, holder: Holder) {
            if self.0 != Some(holder) {
                std::future::pending::<()>().await;
            }
        }
    }

    fn holder(node: u64, incarnation: u64) -> Holder {
        Holder { node: NodeId::new(node), incarnation: Incarnation::new(incarnation) }
    }

    #[test]
    fn holder_has_golden_bytes() {
        let bytes = [0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 3];
        assert_eq!(holder(258, 3).encode().as_ref(), bytes);
        assert_eq!(Holder::decode(&bytes), Some(holder(258, 3)));
        assert_eq!(Holder::decode(&bytes[1..]), None);
        assert_eq!(Holder::decode(&[&bytes[..], &[0]].concat()), None);
    }

    #[tokio::test(start_paused = true)]
    async fn another_node_has_the_claim_only_after_its_holder_stopped_relying_on_it() {
        let world = World::new();
        let first = Arc::new(world.wait(1, 1).await);
        let keeping = Arc::clone(&first);
        let kept = world.env.tasks.spawn("keep", async move { keeping.keep().await });
        let next = world.wait(2, 2);
        tokio::pin!(next);
        tokio::select! {
            biased;
            _ = &mut next => panic!("two nodes have the claim"),
            () = world.sleep(60_000) => {}
        }
        assert!(first.is_held());
        // Its process stands still.
        kept.abort();
        loop {
            tokio::select! {
                biased;
                second = &mut next => {
                    assert!(!first.is_held() && second.is_held());
                    break;
                }
                () = world.sleep(10) => {}
            }
        }
        // It wakes up, and learns that it has lost the claim.
        first.keep().await;
        assert!(!first.is_held());
        let has_it = Holder::of(&*world.coordinator, MANAGES_INDEX).await.unwrap();
        assert_eq!(has_it, Some(holder(2, 2)));
    }

    #[tokio::test(start_paused = true)]
    async fn claim_that_is_given_back_is_free_at_once_and_that_of_an_earlier_life_when_it_ends() {
        let world = World::new();
        let first = world.wait(1, 1).await;
        let start = world.env.clock.monotonic();
        first.release().await;
        assert!(!first.is_held());
        let other = world.wait(2, 6).await;
        assert!(other.is_held());
        assert!(world.env.clock.monotonic() - start < Duration::from_secs(1));
        // Its process is killed and starts again. A copy of its data directory may live.
        let again = world.wait(2, 7).await;
        assert!(again.is_held() && !other.is_held());
        other.keep().await;
    }

    #[tokio::test(start_paused = true)]
    async fn claim_of_a_holder_that_is_gone_is_taken_but_not_again_and_again() {
        let world = World::new();
        let first = Arc::new(world.wait(1, 1).await);
        let keeping = Arc::clone(&first);
        drop(world.env.tasks.spawn("keep", async move { keeping.keep().await }));
        let start = world.env.clock.monotonic();
        let second = world.wait_unless_gone(2, 2, &Gone(Some(holder(1, 1)))).await;
        assert!(world.env.clock.monotonic() - start < Duration::from_secs(1));
        let has_it = || Holder::of(&*world.coordinator, MANAGES_INDEX);
        assert_eq!(has_it().await.unwrap(), Some(holder(2, 2)));
        // It was not gone. It changes nothing any more, and learns that it has lost the claim.
        let key = Bytes::from_static(b"key");
        let put = [Op::Put(key.clone(), Bytes::new())];
        assert!(matches!(first.guard().txn(&[], &put).await, Err(Error::Unavailable { .. })));
        assert!(world.coordinator.get(&key).await.unwrap().is_none());
        assert!(matches!(second.guard().txn(&[], &put).await, Ok(TxnReply::Committed(_))));
        world.sleep(5_000).await;
        assert!(!first.is_held());
    }

    #[tokio::test(start_paused = true)]
    async fn claim_whose_key_is_another_ones_is_lost() {
        let world = World::new();
        let claim = Arc::new(world.wait(1, 1).await);
        let key = Bytes::from_static(MANAGES_INDEX);
        let put = Op::Put(key, holder(1, 1).encode());
        world.coordinator.txn(&[], &[put]).await.unwrap();
        let keeping = Arc::clone(&claim);
        let kept = world.env.tasks.spawn("keep", async move { keeping.keep().await });
        world.sleep(5_000).await;
        assert!(kept.is_finished() && !claim.is_held());
    }

    #[tokio::test(start_paused = true)]
    async fn lost_answer_does_not_cost_the_claim() {
        for fault in [Fault::AmbiguousApplied, Fault::AmbiguousLost, Fault::Unavailable] {
            let world = World::new();
            world.store.inject(fault);
            let claim = Arc::new(world.wait(1, 1).await);
            let keeping = Arc::clone(&claim);
            let kept = world.env.tasks.spawn("keep", async move { keeping.keep().await });
            // The session of the first attempt, which may have written the key, has ended.
            world.sleep(30_000).await;
            assert!(claim.is_held() && !kept.is_finished(), "{fault:?}");
        }
    }
}
