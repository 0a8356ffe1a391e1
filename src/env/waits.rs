//! Bounds the time that work waits in a queue for the one worker that takes it in batches. Work
//! that was begun is never abandoned.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::env::Clock;

/// In `oldest`: no batch is in progress. In `resumed`: the worker is paused.
const NONE: u64 = u64::MAX;

/// A queue holds little if it has less than this part of its bound.
const FEW: usize = 8;

/// The time limits of one queue, and the progress of its worker. Times are monotonic.
#[derive(Debug)]
pub struct Waits {
    limit: Duration,
    patience: Duration,
    /// When the first item of the batch in progress was queued, nanoseconds.
    oldest: AtomicU64,
    /// The end of the worker's last pause, nanoseconds. Waiting before it does not count.
    resumed: AtomicU64,
}

/// Decides once whether a queued item is begun or given up: the first of the worker and the waiting
/// caller to take it.
#[derive(Clone, Debug, Default)]
pub struct Turn(Arc<AtomicBool>);

impl Turn {
    /// Whether the caller is the first to take it. If so, a worker may begin the item, and a
    /// waiting caller may give it up.
    #[must_use]
    pub fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

/// Work that waits in a queue.
#[derive(Clone, Copy, Debug)]
pub struct Queued<'a> {
    /// Whether the work is begun or given up.
    pub turn: &'a Turn,
    /// When it was queued.
    pub arrived: Duration,
    /// Whether few items waited then.
    pub few: bool,
}

impl Waits {
    /// Work waits for at most `limit`, or for at most `patience` if it was queued while few items
    /// waited: then the disk is slow, and there is no overload.
    #[must_use]
    pub const fn new(limit: Duration, patience: Duration) -> Self {
        let (oldest, resumed) = (AtomicU64::new(NONE), AtomicU64::new(0));
        Self { limit, patience, oldest, resumed }
    }

    /// Whether `waiting` is little for a queue that holds at most `bound`.
    #[must_use]
    pub const fn is_few(waiting: usize, bound: usize) -> bool {
        waiting < bound / FEW
    }

    /// Whether new work should be refused because it would wait too long. The queue is in order, so
    /// new work would wait about as long as the first item of the batch in progress has waited.
    /// Work is refused at half of the limit, so that little work waits and is then refused. If
    /// `few` items wait, none is refused: they need little memory and may be done in time.
    #[must_use]
    pub fn is_late(&self, now: Duration, few: bool) -> bool {
        if few {
            return false;
        }
        match self.oldest.load(Ordering::Relaxed) {
            NONE => false,
            oldest => now.saturating_sub(Duration::from_nanos(oldest)) >= self.limit / 2,
        }
    }

    /// The worker begins a batch. Its first item was queued at `arrived`.
    pub fn begin(&self, arrived: Duration) {
        let from = nanoseconds(arrived).max(self.resumed.load(Ordering::Relaxed));
        // A paused worker begins no batch.
        self.oldest.store(from.min(NONE - 1), Ordering::Relaxed);
    }

    /// The batch is done.
    pub fn end(&self) {
        self.oldest.store(NONE, Ordering::Relaxed);
    }

    /// The worker pauses, for a reason other than overload. Waiting does not count until
    /// [`Self::resume`].
    pub fn pause(&self) {
        self.resumed.store(NONE, Ordering::Relaxed);
    }

    /// The pause is over.
    pub fn resume(&self, now: Duration) {
        self.resumed.store(nanoseconds(now).min(NONE - 1), Ordering::Relaxed);
    }

    /// Waits for the result of queued work. Returns `None` if the work waited too long and will not
    /// be begun. Once the work is begun, waits for its result without a limit.
    pub async fn answer<T>(
        &self,
        clock: &dyn Clock,
        queued: Queued<'_>,
        mut answered: oneshot::Receiver<T>,
    ) -> Option<Result<T, oneshot::error::RecvError>> {
        tokio::select! {
            biased;
            answer = &mut answered => return Some(answer),
            () = self.over(clock, queued.arrived, queued.few) => {}
        }
        if queued.turn.take() { None } else { Some(answered.await) }
    }

    /// Waits until work that was queued at `arrived` has waited for its limit. `few` says whether
    /// few items waited then.
    pub async fn over(&self, clock: &dyn Clock, arrived: Duration, few: bool) {
        let limit = if few { self.patience } else { self.limit };
        loop {
            let left = self.left(clock.monotonic(), arrived, limit);
            if left.is_zero() {
                return;
            }
            clock.sleep(left).await;
        }
    }

    /// The rest of `limit` for work that was queued at `arrived`.
    fn left(&self, now: Duration, arrived: Duration, limit: Duration) -> Duration {
        match self.resumed.load(Ordering::Relaxed) {
            NONE => limit,
            resumed => {
                let from = arrived.max(Duration::from_nanos(resumed));
                limit.saturating_sub(now.saturating_sub(from))
            }
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::clock::SimClock;

    const LIMIT: Duration = Duration::from_secs(2);

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    const fn queued(turn: &Turn, arrived: Duration, few: bool) -> Queued<'_> {
        Queued { turn, arrived, few }
    }

    #[test]
    fn work_is_late_once_the_first_of_a_batch_has_waited_for_half_of_the_limit() {
        let waits = Waits::new(LIMIT, LIMIT * 7);
        assert!(!waits.is_late(at(10_000), false), "no batch is in progress");
        waits.begin(at(10_000));
        assert_eq!(
            (waits.is_late(at(10_999), false), waits.is_late(at(11_000), false)),
            (false, true)
        );
        waits.end();
        assert!(!waits.is_late(at(20_000), false));
    }

    #[test]
    fn pauses_do_not_count() {
        let waits = Waits::new(LIMIT, LIMIT * 7);
        waits.pause();
        assert_eq!(waits.left(at(50_000), at(1_000), LIMIT), LIMIT);
        waits.resume(at(60_000));
        waits.begin(at(1_000));
        assert_eq!(
            (waits.is_late(at(60_999), false), waits.is_late(at(61_000), false)),
            (false, true)
        );
        assert_eq!(waits.left(at(60_500), at(1_000), LIMIT), at(1_500));
        assert_eq!(waits.left(at(60_500), at(60_200), LIMIT), at(1_700), "queued after the pause");
        assert_eq!(waits.left(at(62_000), at(1_000), LIMIT), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_not_begun_is_given_up_at_the_limit() {
        let (clock, waits, turn) = (SimClock::new(), Waits::new(LIMIT, LIMIT * 7), Turn::default());
        let (_worker, answered) = oneshot::channel::<u8>();
        let given_up =
            waits.answer(&clock, queued(&turn, clock.monotonic(), false), answered).await;
        assert_eq!((given_up, clock.monotonic()), (None, LIMIT));
        assert!(!turn.take(), "the worker may not begin it");
    }

    #[tokio::test(start_paused = true)]
    async fn few_are_patient_and_never_late() {
        let (clock, waits, turn) = (SimClock::new(), Waits::new(LIMIT, LIMIT * 7), Turn::default());
        waits.begin(Duration::ZERO);
        assert_eq!(
            (waits.is_late(LIMIT * 2, true), waits.is_late(LIMIT * 2, false)),
            (false, true)
        );
        let (_worker, answered) = oneshot::channel::<u8>();
        let given_up = waits.answer(&clock, queued(&turn, Duration::ZERO, true), answered).await;
        assert_eq!((given_up, clock.monotonic()), (None, LIMIT * 7));
        assert!(Waits::is_few(511, 4096) && !Waits::is_few(512, 4096) && !Waits::is_few(0, 7));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_begun_is_waited_for() {
        let (clock, waits, turn) = (SimClock::new(), Waits::new(LIMIT, LIMIT * 7), Turn::default());
        let (worker, answered) = oneshot::channel();
        assert!(turn.take());
        let slow = async {
            clock.sleep(LIMIT * 10).await;
            worker.send(7).unwrap();
        };
        let (answer, ()) = tokio::join!(
            waits.answer(&clock, queued(&turn, Duration::ZERO, false), answered),
            slow
        );
        assert_eq!(answer, Some(Ok(7)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_makes_nobody_give_up() {
        let (clock, waits, turn) = (SimClock::new(), Waits::new(LIMIT, LIMIT * 7), Turn::default());
        let (_worker, answered) = oneshot::channel::<u8>();
        waits.pause();
        let resumes = async {
            clock.sleep(LIMIT * 10).await;
            waits.resume(clock.monotonic());
        };
        let (given_up, ()) = tokio::join!(
            waits.answer(&clock, queued(&turn, Duration::ZERO, false), answered),
            resumes
        );
        assert_eq!((given_up, clock.monotonic()), (None, LIMIT * 11));
    }
}
