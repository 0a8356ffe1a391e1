//! Memory for answers: bounded over all of them, shared by accounts, and by peers among those who
//! do not say who they are.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::env::Clock;
use crate::frontend::admission::Shares;
use crate::frontend::admission::Taken;
use crate::frontend::errors;
use crate::protocol::Error;
use crate::types::AccountId;

/// What a body reads at once while there is plenty.
const STEP_MAX_BYTES: u64 = 1 << 20;
/// What it reads while half of the memory is taken.
const STEP_MIDDLE_BYTES: u64 = 128 << 10;
/// What it reads while three quarters are taken, so that a few bodies do not take the rest.
pub(crate) const STEP_MIN_BYTES: u64 = 16 << 10;
/// How long an answer may wait before its head is sent.
const PATIENCE: Duration = Duration::from_secs(2);
/// Answers that may wait before their head is sent, known and anonymous ones each.
const WAITING_MAX: usize = 4096;
/// So many payers that have their share are passed over at a time to find one that may have more.
const PASSED_OVER_MAX: usize = 32;

/// For whom bytes are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Payer {
    /// Whose data is read.
    pub(crate) account: AccountId,
    /// Where the answer goes.
    pub(crate) peer: IpAddr,
    /// Whether the caller has shown who it is.
    pub(crate) known: bool,
}

impl Payer {
    /// Whose turn it is when it waits.
    fn key(&self) -> Key {
        (self.account, (!self.known).then(|| self.network()))
    }

    /// A network counts as one peer: whoever has an IPv6 address has 2^64 of them.
    fn network(&self) -> IpAddr {
        match self.peer.to_canonical() {
            IpAddr::V6(address) => {
                let bits = address.to_bits() >> 64 << 64;
                IpAddr::V6(Ipv6Addr::from_bits(bits))
            }
            v4 @ IpAddr::V4(_) => v4,
        }
    }
}

/// The bytes that all answers hold together.
#[derive(Debug)]
pub(crate) struct Budget {
    max: u64,
    clock: Arc<dyn Clock>,
    taken: AtomicU64,
    /// Of that, for what anybody may read.
    open: AtomicU64,
    /// By account; what anybody may read is a share of its own.
    accounts: Shares<(AccountId, bool)>,
    /// What anybody may read, by peer: three quarters of it all, so that the rest is for those who
    /// say who they are.
    peers: Shares<IpAddr>,
    /// Of those who say who they are.
    known_queue: Queue,
    /// Of those who do not: they wait for another part of the memory.
    open_queue: Queue,
}

/// Who waits.
#[derive(Debug, Default)]
struct Queue {
    lines: Mutex<Lines>,
    /// As many as `lines` has, to be looked at without the lock.
    waiters: AtomicUsize,
}

/// One line for each payer, served in turn: many wishes of one payer that has its share must not
/// hide the others.
#[derive(Debug, Default)]
struct Lines {
    /// None of them is empty.
    of: HashMap<Key, VecDeque<Waiting>>,
    /// Each payer that waits, once.
    turns: VecDeque<Key>,
    len: usize,
}

/// An account, and the network among those who do not say who they are.
type Key = (AccountId, Option<IpAddr>);

impl Lines {
    fn push(&mut self, waiting: Waiting) {
        let key = waiting.payer.key();
        let line = self.of.entry(key).or_default();
        if line.is_empty() {
            self.turns.push_back(key);
        }
        line.push_back(waiting);
        self.len += 1;
    }

    /// The first of the payer whose turn it is, if it has not given up.
    fn first(&mut self) -> Option<(Payer, u64)> {
        while let Some(key) = self.turns.front() {
            match self.of.get(key).and_then(VecDeque::front) {
                Some(first) if !first.promise.is_closed() => {
                    return Some((first.payer, first.bytes));
                }
                _ => drop(self.pop()),
            }
        }
        None
    }

    /// Takes out the first of the payer whose turn it is; the next payer has its turn then.
    fn pop(&mut self) -> Option<Waiting> {
        let key = self.turns.pop_front()?;
        let line = self.of.get_mut(&key)?;
        let first = line.pop_front();
        self.len -= usize::from(first.is_some());
        if line.is_empty() {
            self.of.remove(&key);
        } else {
            self.turns.push_back(key);
        }
        first
    }

    /// The next payer has its turn.
    fn pass_over(&mut self) {
        if let Some(key) = self.turns.pop_front() {
            self.turns.push_back(key);
        }
    }

    fn forget_who_gave_up(&mut self) {
        self.of.retain(|_, line| {
            line.retain(|waiting| !waiting.promise.is_closed());
            !line.is_empty()
        });
        self.turns.retain(|key| self.of.contains_key(key));
        self.len = self.of.values().map(VecDeque::len).sum();
    }
}

#[derive(Debug)]
struct Waiting {
    payer: Payer,
    bytes: u64,
    promise: oneshot::Sender<Held>,
}

/// Bytes taken; given back when dropped.
#[derive(Debug)]
pub(crate) struct Held {
    /// None once they were given back.
    budget: Option<Arc<Budget>>,
    payer: Payer,
    bytes: u64,
}

/// Bytes that are counted until the last part of them is dropped.
struct Counted {
    bytes: Bytes,
    _held: Arc<Held>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Budget {
    /// A budget of `max` bytes.
    pub(crate) fn new(max: u64, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            max,
            clock,
            taken: AtomicU64::new(0),
            open: AtomicU64::new(0),
            accounts: Shares::new(max),
            peers: Shares::new(max - max / 4),
            known_queue: Queue::default(),
            open_queue: Queue::default(),
        })
    }

    /// How much a body should read at once now: less, the less is free. Powers of two, so that
    /// steps end where frames do.
    pub(crate) fn step_bytes(&self, payer: Payer) -> u64 {
        let max = self.max_of(payer);
        match self.free(payer.known) {
            free if free >= max / 2 => STEP_MAX_BYTES,
            free if free >= max / 4 => STEP_MIDDLE_BYTES,
            _ => STEP_MIN_BYTES,
        }
    }

    /// Takes bytes if nobody waits for some.
    pub(crate) fn try_take(self: &Arc<Self>, payer: Payer, bytes: u64) -> Option<Held> {
        if self.queue_of(payer).waiters.load(Ordering::SeqCst) > 0 {
            return None;
        }
        let taken = self.take(payer, bytes.min(self.max_of(payer)));
        (taken == Taken::Yes).then(|| self.held(payer, bytes))
    }

    /// Takes bytes, waiting for them as long as it takes. Only for who holds none: else all could
    /// wait for each other. Cancel safe.
    pub(crate) async fn wait(self: &Arc<Self>, payer: Payer, bytes: u64) -> Held {
        loop {
            if let Some(held) = self.try_take(payer, bytes) {
                return held;
            }
            let promised = self.queue(payer, bytes, usize::MAX);
            // Something may have been given back before the queue was seen to have somebody in it.
            self.serve();
            if let Some(promised) = promised
                && let Ok(held) = promised.await
            {
                return held;
            }
        }
    }

    /// Takes bytes for an answer whose head is not sent yet. Cancel safe.
    ///
    /// # Errors
    /// `ServerBusy` when too many wait, or nothing is given back for a while.
    pub(crate) async fn begin(self: &Arc<Self>, payer: Payer, bytes: u64) -> Result<Held, Error> {
        if let Some(held) = self.try_take(payer, bytes) {
            return Ok(held);
        }
        let Some(promised) = self.queue(payer, bytes, WAITING_MAX) else {
            return Err(errors::busy());
        };
        self.serve();
        tokio::select! {
            biased;
            held = promised => held.map_err(|_| errors::busy()),
            () = self.clock.sleep(PATIENCE) => Err(errors::busy()),
        }
    }

    /// Whether somebody waits for bytes.
    pub(crate) fn is_short(self: &Arc<Self>) -> bool {
        // Those that gave up are only noticed here.
        self.serve();
        [&self.known_queue, &self.open_queue]
            .iter()
            .any(|queue| queue.waiters.load(Ordering::SeqCst) > 0)
    }

    /// Bytes that answers hold.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::SeqCst)
    }

    /// What is free for callers who say who they are, or for those who do not.
    fn free(&self, known: bool) -> u64 {
        let free = self.max.saturating_sub(self.taken());
        if known {
            return free;
        }
        let open_max = self.max - self.max / 4;
        free.min(open_max.saturating_sub(self.open.load(Ordering::SeqCst)))
    }

    const fn queue_of(&self, payer: Payer) -> &Queue {
        if payer.known { &self.known_queue } else { &self.open_queue }
    }

    /// No single answer may wish for more.
    const fn max_of(&self, payer: Payer) -> u64 {
        if payer.known { self.max } else { self.max - self.max / 4 }
    }

    fn held(self: &Arc<Self>, payer: Payer, bytes: u64) -> Held {
        let bytes = bytes.min(self.max_of(payer));
        Held { budget: Some(Arc::clone(self)), payer, bytes }
    }

    fn take(&self, payer: Payer, bytes: u64) -> Taken {
        let now = self.clock.monotonic();
        let account = (payer.account, payer.known);
        let taken = self.accounts.take(account, bytes, now);
        if taken != Taken::Yes {
            return taken;
        }
        if !payer.known {
            let taken = self.peers.take(payer.network(), bytes, now);
            if taken != Taken::Yes {
                self.accounts.give(account, bytes);
                return taken;
            }
        }
        self.taken.fetch_add(bytes, Ordering::SeqCst);
        if !payer.known {
            self.open.fetch_add(bytes, Ordering::SeqCst);
        }
        Taken::Yes
    }

    fn give(&self, payer: Payer, bytes: u64) {
        self.taken.fetch_sub(bytes, Ordering::SeqCst);
        self.accounts.give((payer.account, payer.known), bytes);
        if !payer.known {
            self.open.fetch_sub(bytes, Ordering::SeqCst);
            self.peers.give(payer.network(), bytes);
        }
    }

    fn queue(&self, payer: Payer, bytes: u64, most: usize) -> Option<oneshot::Receiver<Held>> {
        let bytes = bytes.min(self.max_of(payer));
        let queue = self.queue_of(payer);
        // Others that wait must leave it its share, and it may be long until it is asked for its
        // wish.
        let now = self.clock.monotonic();
        self.accounts.came((payer.account, payer.known), now);
        if !payer.known {
            self.peers.came(payer.network(), now);
        }
        let mut lines = queue.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len >= most {
            lines.forget_who_gave_up();
        }
        let room = lines.len < most;
        let (promise, promised) = oneshot::channel();
        if room {
            lines.push(Waiting { payer, bytes, promise });
        }
        queue.waiters.store(lines.len, Ordering::SeqCst);
        room.then_some(promised)
    }

    /// Gives what is free to who waits: the payers in turn, but for those that have their share.
    fn serve(self: &Arc<Self>) {
        self.serve_queue(&self.known_queue);
        self.serve_queue(&self.open_queue);
    }

    fn serve_queue(self: &Arc<Self>, queue: &Queue) {
        if queue.waiters.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut lines = queue.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let mut passed_over = 0;
        // Who is passed over stays so in this call, as nothing is given back: one round is enough.
        while passed_over < PASSED_OVER_MAX.min(lines.turns.len())
            && let Some((payer, bytes)) = lines.first()
        {
            match self.take(payer, bytes) {
                Taken::Soon => break,
                Taken::No => {
                    passed_over += 1;
                    lines.pass_over();
                }
                Taken::Yes => {
                    if let Some(Waiting { promise, .. }) = lines.pop()
                        && let Err(mut unwanted) = promise.send(self.held(payer, bytes))
                    {
                        // Given back here: its own end would serve again, from within.
                        unwanted.budget = None;
                        self.give(payer, bytes);
                    }
                }
            }
        }
        queue.waiters.store(lines.len, Ordering::SeqCst);
    }
}

impl Held {
    /// Gives back what is more than `bytes`.
    pub(crate) fn shrink(&mut self, bytes: u64) {
        let Some(budget) = self.budget.as_ref().filter(|_| bytes < self.bytes) else { return };
        budget.give(self.payer, self.bytes - bytes);
        self.bytes = bytes;
        budget.serve();
    }

    /// The same bytes, counted until the connection has taken the last of them.
    pub(crate) fn count(self, pieces: Vec<Bytes>) -> VecDeque<Bytes> {
        let held = Arc::new(self);
        let count = |bytes| Bytes::from_owner(Counted { bytes, _held: Arc::clone(&held) });
        pieces.into_iter().map(count).collect()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(budget) = self.budget.take() {
            budget.give(self.payer, self.bytes);
            budget.serve();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::SimClock;
    use crate::protocol::ErrorCode;

    const MIB: u64 = 1 << 20;

    fn payer(account: u64, peer: &str, known: bool) -> Payer {
        Payer { account: AccountId::new(account), peer: peer.parse().unwrap(), known }
    }

    fn budget(max: u64) -> Arc<Budget> {
        Budget::new(max, Arc::new(SimClock::new()))
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_are_held_until_the_last_part_of_them_is_dropped() {
        let budget = budget(128 * MIB);
        let one = payer(1, "127.0.0.1", true);
        let held = budget.begin(one, MIB).await.unwrap();
        let content = Bytes::from(vec![7; 1 << 20]);
        let mut pieces = held.count(vec![content.slice(..9), content.slice(9..)]);
        let last = pieces.pop_back().unwrap().slice(100..200);
        drop(pieces);
        assert_eq!((budget.taken(), last.len()), (MIB, 100));
        drop(last);
        assert_eq!(budget.taken(), 0);
        assert_eq!(budget.accounts.of((one.account, true)), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn steps_are_small_when_little_is_free_so_that_many_can_have_one() {
        let budget = budget(128 * MIB);
        let one = payer(1, "127.0.0.1", false);
        assert_eq!(budget.step_bytes(one), MIB);
        let mut all = Vec::new();
        while let Some(held) = budget.try_take(one, budget.step_bytes(one)) {
            all.push(held);
        }
        assert!(all.len() > 1_000, "{}", all.len());
        assert!(budget.taken() <= 96 * MIB, "a quarter is kept for who says who they are");
        let known = payer(1, "127.0.0.1", true);
        assert_eq!((budget.step_bytes(one), budget.step_bytes(known)), (16 << 10, 128 << 10));
        assert!(budget.try_take(known, 8 * MIB).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn peers_share_what_anybody_may_read() {
        let budget = budget(4 * MIB);
        let first = budget.try_take(payer(1, "2001:db8::1", false), STEP_MIN_BYTES);
        drop(first);
        let mut all = Vec::new();
        while let Some(held) = budget.try_take(payer(1, "2001:db8::2", false), STEP_MIN_BYTES) {
            all.push(held);
        }
        assert_eq!(budget.taken(), 3 * MIB, "one network is one peer, and it is alone");
        drop(all);
        let mut all = Vec::new();
        let other = budget.try_take(payer(1, "2001:db8:0:1::1", false), STEP_MIN_BYTES).unwrap();
        while let Some(held) = budget.try_take(payer(1, "2001:db8::2", false), STEP_MIN_BYTES) {
            all.push(held);
        }
        assert_eq!(budget.taken(), 3 * MIB * 3 / 4, "another is about");
        drop(other);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_served_in_order_or_told_busy_before_its_head() {
        let budget = budget(4 * MIB);
        let one = payer(1, "127.0.0.1", true);
        let first = budget.begin(one, 4 * MIB).await.unwrap();
        let clock = Arc::clone(&budget.clock);
        let begun = clock.monotonic();
        let refused = budget.begin(one, MIB).await.unwrap_err();
        assert_eq!((refused.code, clock.monotonic() - begun), (ErrorCode::ServerBusy, PATIENCE));
        assert!(!budget.is_short(), "who gave up waits no more");
        let frees = async {
            clock.sleep(Duration::from_secs(60)).await;
            drop(first);
        };
        let (large, small, ()) =
            tokio::join!(budget.wait(one, 3 * MIB), budget.wait(one, MIB), frees);
        assert_eq!(budget.taken(), 4 * MIB);
        drop((large, small));
        assert_eq!((budget.taken(), budget.is_short()), (0, false));
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_its_share_does_not_stand_in_the_way_of_others() {
        let budget = budget(4 * MIB);
        let (one, two) = (payer(1, "127.0.0.1", true), payer(2, "127.0.0.1", true));
        drop(budget.begin(two, MIB).await.unwrap());
        let most = budget.begin(one, 3 * MIB).await.unwrap();
        let (greedy, modest) = (budget.begin(one, MIB), budget.begin(two, MIB));
        let (greedy, modest) = tokio::join!(greedy, modest);
        assert!(greedy.is_err() && modest.is_ok());
        drop((most, modest));
        assert_eq!(budget.taken(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn many_wishes_of_one_that_has_its_share_do_not_hide_others() {
        let budget = budget(4 * MIB);
        let (one, two) = (payer(1, "127.0.0.1", true), payer(2, "127.0.0.1", true));
        let first = budget.begin(one, 3 * MIB).await.unwrap();
        let rest = budget.begin(two, MIB).await.unwrap();
        let greedy = futures_util::future::join_all((0..100).map(|_| budget.begin(one, MIB)));
        let modest = async {
            budget.clock.sleep(Duration::from_millis(1)).await;
            let waits = budget.begin(two, MIB);
            let frees = async { drop(rest) };
            tokio::join!(waits, frees).0
        };
        let (greedy, modest) = tokio::join!(greedy, modest);
        assert!(greedy.iter().all(Result::is_err) && modest.is_ok());
        drop((first, modest));
        assert_eq!((budget.taken(), budget.is_short()), (0, false));
    }

    #[tokio::test(start_paused = true)]
    async fn what_turns_out_smaller_gives_the_rest_back() {
        let budget = budget(4 * MIB);
        let one = payer(1, "127.0.0.1", true);
        let mut held = budget.begin(one, 4 * MIB).await.unwrap();
        let shrinks = async {
            held.shrink(MIB);
            held.shrink(2 * MIB);
        };
        let (waited, ()) = tokio::join!(budget.begin(one, 3 * MIB), shrinks);
        assert_eq!(budget.taken(), 4 * MIB);
        drop((held, waited));
        assert_eq!(budget.taken(), 0);
    }
}
