//! Limits the requests that run at a time; accounts share them fairly.

use std::collections::HashSet;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::env::Clock;
use crate::frontend::admission::ANONYMOUS;
use crate::frontend::admission::Denied;
use crate::frontend::admission::Shares;
use crate::frontend::admission::Taken;
use crate::frontend::admission::Transfer;
use crate::frontend::admission::Usage;
use crate::frontend::errors;
use crate::frontend::errors::Busy;
use crate::protocol::model::Refusal;
use crate::types::AccountId;

/// How long a request waits for others to end. A burst is admitted step by step, and overload is
/// refused well within 100 ms.
const PATIENCE: Duration = Duration::from_millis(50);

/// Admits requests.
#[derive(Debug)]
pub(crate) struct Gate {
    max: usize,
    shares: Shares,
    clock: Arc<dyn Clock>,
    denied: Denied,
    waiting: Mutex<VecDeque<Waiter>>,
    /// The length of `waiting`, readable without the lock.
    waiters: AtomicUsize,
}

#[derive(Debug)]
struct Waiter {
    account: AccountId,
    pass: oneshot::Sender<Pass>,
}

/// Which requests have little room left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scarcity {
    /// All requests.
    All,
    /// Anonymous requests.
    Open,
}

impl Scarcity {
    /// Whether the end of a request of this account would help.
    pub(crate) fn concerns(self, account: AccountId) -> bool {
        self == Self::All || account == ANONYMOUS
    }
}

/// The place of an admitted request; given back when dropped.
#[derive(Debug)]
pub(crate) struct Pass {
    /// `None` once it was given back.
    gate: Option<Arc<Gate>>,
    account: AccountId,
}

impl Gate {
    /// Admits `max` requests at a time.
    pub(crate) fn new(max: usize, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            max,
            shares: Shares::new(u64::try_from(max).unwrap_or(u64::MAX)),
            clock,
            denied: Denied::default(),
            waiting: Mutex::default(),
            waiters: AtomicUsize::new(0),
        })
    }

    /// Admits a request of an account. Cancel safe.
    ///
    /// # Errors
    /// `ServerBusy`: immediately when the account has its share and others are active, or when as
    /// many of its requests wait as may run; after [`PATIENCE`] when nothing was given back.
    pub(crate) async fn enter(self: &Arc<Self>, account: AccountId) -> Result<Pass, Refusal> {
        let taken = self.shares.take(account, 1, self.clock.monotonic());
        let entered = match taken {
            Taken::Yes => return Ok(self.pass(account)),
            Taken::No => Err(taken),
            Taken::Soon | Taken::Alone => self.wait(account, taken).await,
        };
        if matches!(entered, Err(Taken::Soon)) {
            self.denied.note(self.clock.monotonic());
        }
        entered.map_err(|_| errors::busy(Busy::Requests))
    }

    /// Waits briefly for a place that others give back.
    ///
    /// # Errors
    /// `No` when the account got its share meanwhile, else `refused`.
    async fn wait(self: &Arc<Self>, account: AccountId, refused: Taken) -> Result<Pass, Taken> {
        let mut promised = self.queue(account).ok_or(refused)?;
        // A place may have been given back before the request was in the queue.
        self.serve();
        tokio::select! {
            biased;
            pass = &mut promised => pass.map_err(|_| Taken::No),
            () = self.clock.sleep(PATIENCE) => Err(refused),
        }
    }

    /// Whether an account below its share was refused recently.
    pub(crate) fn is_short(&self, now: Duration) -> bool {
        self.denied.is_recent(now)
    }

    /// Which requests have little room left, if any.
    pub(crate) fn scarcity(&self) -> Option<Scarcity> {
        let max = u64::try_from(self.max).unwrap_or(u64::MAX);
        let Usage { all, own: open } = self.shares.taken(ANONYMOUS);
        let many = |taken: u64, max: u64| taken >= max - max / 8;
        match (many(all, max), many(open, self.open_max())) {
            (true, _) => Some(Scarcity::All),
            (false, true) => Some(Scarcity::Open),
            (false, false) => None,
        }
    }

    /// Accounts that have more than their share.
    pub(crate) fn above_share(&self, now: Duration) -> HashSet<AccountId> {
        self.shares.above_share(now)
    }

    /// The most anonymous requests; the rest is for authenticated callers.
    fn open_max(&self) -> u64 {
        let max = u64::try_from(self.max).unwrap_or(u64::MAX);
        max - max / 4
    }

    fn pass(self: &Arc<Self>, account: AccountId) -> Pass {
        Pass { gate: Some(Arc::clone(self)), account }
    }

    /// Joins the queue. An account has at most as many places there as requests may run.
    fn queue(&self, account: AccountId) -> Option<oneshot::Receiver<Pass>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= self.max {
            waiting.retain(|other| !other.pass.is_closed());
        }
        let own = || waiting.iter().filter(|other| other.account == account).count();
        let room = waiting.len() < self.max || own() < self.max;
        let (pass, promised) = oneshot::channel();
        if room {
            waiting.push_back(Waiter { account, pass });
        }
        self.waiters.store(waiting.len(), Ordering::SeqCst);
        room.then_some(promised)
    }

    /// Gives free places to waiting requests, first come, first served.
    fn serve(self: &Arc<Self>) {
        while self.waiters.load(Ordering::SeqCst) > 0 {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(first) = waiting.pop_front() else { return };
            let now = self.clock.monotonic();
            let taken = match first.pass.is_closed() {
                true => Taken::No,
                false => self.shares.take(first.account, 1, now),
            };
            if matches!(taken, Taken::Soon | Taken::Alone) {
                waiting.push_front(first);
                return;
            }
            self.waiters.store(waiting.len(), Ordering::SeqCst);
            drop(waiting);
            if taken == Taken::Yes
                && let Err(unwanted) = first.pass.send(self.pass(first.account))
            {
                // Its `Drop` would call `serve` again from within.
                unwanted.give_back();
            }
        }
    }
}

impl Pass {
    /// The account that the request is counted for.
    pub(crate) const fn account(&self) -> AccountId {
        self.account
    }

    /// Counts the request as anonymous.
    ///
    /// # Errors
    /// `ServerBusy` when the most anonymous requests run already.
    pub(crate) fn open(&mut self) -> Result<(), Refusal> {
        let Some(gate) = &self.gate else { return Ok(()) };
        let transfer = Transfer { from: self.account, to: ANONYMOUS, amount: 1 };
        if !gate.shares.hand_over(transfer, gate.open_max()) {
            return Err(errors::busy(Busy::Requests));
        }
        self.account = ANONYMOUS;
        Ok(())
    }

    fn give_back(mut self) {
        if let Some(gate) = self.gate.take() {
            gate.shares.give(self.account, 1);
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(gate) = self.gate.take() {
            gate.shares.give(self.account, 1);
            gate.serve();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::SimClock;
    use crate::protocol::model::Reason;

    const A: AccountId = AccountId::new(1);
    const B: AccountId = AccountId::new(2);

    async fn enter(gate: &Arc<Gate>, account: AccountId) -> (Result<Pass, Reason>, Duration) {
        let begun = gate.clock.monotonic();
        let entered = gate.enter(account).await.map_err(|error| error.reason);
        (entered, gate.clock.monotonic() - begun)
    }

    async fn fill(gate: &Arc<Gate>, account: AccountId, count: usize) -> Vec<Pass> {
        let mut passes = Vec::new();
        for _ in 0..count {
            passes.push(gate.enter(account).await.unwrap());
        }
        passes
    }

    #[tokio::test(start_paused = true)]
    async fn account_that_takes_all_waits_a_moment_for_its_own() {
        let gate = Gate::new(16, Arc::new(SimClock::new()));
        let mut passes = fill(&gate, A, 16).await;
        let (refused, took) = enter(&gate, A).await;
        assert_eq!((refused.unwrap_err(), took), (Reason::ServerBusy, PATIENCE));
        assert!(!gate.is_short(gate.clock.monotonic()), "nobody else is refused");
        passes.pop();
        assert!(enter(&gate, A).await.0.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn as_many_wait_as_are_let_in_and_more_are_refused_at_once() {
        let gate = Gate::new(16, Arc::new(SimClock::new()));
        let _passes = fill(&gate, A, 16).await;
        for _ in 0..3 {
            let crowd = futures_util::future::join_all((0..40).map(|_| enter(&gate, A))).await;
            let waited = crowd.iter().filter(|(_, took)| *took == PATIENCE).count();
            let at_once = crowd.iter().filter(|(_, took)| took.is_zero()).count();
            assert_eq!((waited, at_once), (16, 24));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn account_that_has_its_share_does_not_wait_while_others_are_about() {
        let gate = Gate::new(16, Arc::new(SimClock::new()));
        let _passes = fill(&gate, A, 16).await;
        let (waits, (refused, took)) = tokio::join!(enter(&gate, B), enter(&gate, A));
        assert!(waits.0.is_err());
        assert_eq!((refused.unwrap_err(), took), (Reason::ServerBusy, Duration::ZERO));
        assert!(gate.is_short(gate.clock.monotonic()), "an account without its share was refused");
        gate.clock.sleep(Duration::from_secs(5)).await;
        assert!(enter(&gate, A).await.0.is_err());
        assert!(!gate.is_short(gate.clock.monotonic()), "who has its share does not count");
    }

    #[tokio::test(start_paused = true)]
    async fn another_account_waits_a_moment_and_gets_what_is_given_back() {
        let gate = Gate::new(16, Arc::new(SimClock::new()));
        let mut passes = fill(&gate, A, 16).await;
        let ends = async {
            gate.clock.sleep(Duration::from_millis(10)).await;
            passes.pop();
            assert!(gate.enter(A).await.is_err(), "it goes to who waits");
        };
        let ((entered, took), ()) = tokio::join!(enter(&gate, B), ends);
        assert_eq!((entered.is_ok(), took), (true, Duration::from_millis(10)));
    }

    #[tokio::test(start_paused = true)]
    async fn another_account_is_refused_within_a_moment_when_nothing_ends() {
        let gate = Gate::new(16, Arc::new(SimClock::new()));
        let passes = fill(&gate, A, 16).await;
        let (refused, took) = enter(&gate, B).await;
        assert_eq!((refused.unwrap_err(), took), (Reason::ServerBusy, PATIENCE));
        drop(passes);
        let all = fill(&gate, B, 8).await;
        assert_eq!(gate.shares.of(B), 8, "who gave up left nothing behind");
        drop(all);
        assert_eq!((gate.shares.of(A), gate.shares.of(B)), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_anybody_may_send_leave_a_quarter_to_others() {
        let gate = Gate::new(16, Arc::new(SimClock::new()));
        let mut passes = Vec::new();
        for _ in 0..12 {
            let mut pass = gate.enter(A).await.unwrap();
            pass.open().unwrap();
            passes.push(pass);
        }
        assert_eq!(gate.scarcity(), Some(Scarcity::Open));
        let mut refused = gate.enter(A).await.unwrap();
        assert_eq!(refused.open().unwrap_err().reason, Reason::ServerBusy);
        drop(refused);
        let owners = fill(&gate, A, 4).await;
        assert_eq!((gate.shares.of(A), gate.shares.of(ANONYMOUS)), (4, 12));
        drop((owners, passes));
        assert_eq!(gate.shares.taken(ANONYMOUS), Usage { all: 0, own: 0 });
        assert_eq!(gate.scarcity(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn waiters_are_served_in_order_and_those_who_left_are_passed_over() {
        let gate = Gate::new(4, Arc::new(SimClock::new()));
        let mut passes = fill(&gate, A, 4).await;
        let gone = tokio::time::timeout(Duration::from_millis(1), gate.enter(B)).await;
        assert!(gone.is_err());
        let order = Mutex::new(Vec::new());
        let waits = |number: u32| {
            let (gate, order) = (&gate, &order);
            async move {
                let pass = gate.enter(B).await.unwrap();
                order.lock().unwrap().push(number);
                pass
            }
        };
        let ends = async {
            for _ in 0..2 {
                gate.clock.sleep(Duration::from_millis(5)).await;
                passes.pop();
            }
        };
        let (one, two, ()) = tokio::join!(waits(1), waits(2), ends);
        assert_eq!(*order.lock().unwrap(), [1, 2]);
        drop((one, two, passes));
        assert_eq!((gate.shares.of(A), gate.shares.of(B)), (0, 0));
        assert!(gate.waiting.lock().unwrap().is_empty());
    }
}
