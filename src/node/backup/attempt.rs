//! A backup in the making. What it keeps from reclaim is held here and not by its task, which may
//! wait for a directory that does not answer: the node can give the backup up, and nothing is kept
//! for it from then on. The task learns that before its next step and changes nothing any more.

use std::mem;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use crate::env::Clock;
use crate::index::KeptExtents;
use crate::index::ReadGuard;

/// A backup of a node that serves is given up when it has made no step for as long as this. It is
/// longer than a cut may take.
pub(super) const GIVE_UP_AFTER: Duration = Duration::from_secs(600);

/// The node gave the backup up. What the copy needs may be gone.
#[derive(Debug)]
pub struct GivenUp;

/// What a running backup keeps.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Content.
    pub(super) read: Option<ReadGuard>,
    /// Logs and runs.
    pub(super) index: Option<KeptExtents>,
}

/// A backup, as its task and the node share it.
#[derive(Debug)]
pub(super) struct Attempt {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// When it made its last step, by the monotonic clock.
    last_step: Duration,
    given_up: bool,
    kept: Kept,
}

impl Attempt {
    /// One that begins now.
    #[must_use]
    pub(super) fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        let last_step = clock.monotonic();
        let state = Mutex::new(State { last_step, given_up: false, kept: Kept::default() });
        Arc::new(Self { clock, state })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a step. To be called before every change of the directory.
    ///
    /// # Errors
    /// [`GivenUp`]: what the copy needs may be gone.
    pub(super) fn go_on(&self) -> Result<(), GivenUp> {
        self.keep(|_| ())
    }

    /// Notes a step, and what is kept from now on.
    pub(super) fn keep(&self, change: impl FnOnce(&mut Kept)) -> Result<(), GivenUp> {
        let now = self.clock.monotonic();
        let mut state = self.state();
        if state.given_up {
            return Err(GivenUp);
        }
        state.last_step = now;
        change(&mut state.kept);
        Ok(())
    }

    /// Keeps nothing any more, since all of it is copied.
    pub(super) fn let_go(&self) -> Result<(), GivenUp> {
        let mut kept = Kept::default();
        self.keep(|all| kept = mem::take(all))
    }

    /// Whether the node gave it up.
    #[must_use]
    pub(super) fn is_given_up(&self) -> bool {
        self.state().given_up
    }

    /// Waits until it has made no step for as long as this. Then gives it up: nothing is kept for
    /// it any more.
    pub(super) async fn give_up_after(&self, idle: Duration) {
        loop {
            let since = self.clock.monotonic().saturating_sub(self.state().last_step);
            let left = idle.saturating_sub(since);
            if left.is_zero() {
                return self.give_up();
            }
            self.clock.sleep(left).await;
        }
    }

    /// Gives it up.
    pub(super) fn give_up(&self) {
        let mut state = self.state();
        state.given_up = true;
        let kept = mem::take(&mut state.kept);
        // The locks that this takes are not taken under that of the state.
        drop(state);
        drop(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::SimClock;
    use crate::index::InFlight;

    const IDLE: Duration = Duration::from_secs(600);

    #[tokio::test(start_paused = true)]
    async fn what_makes_no_step_is_given_up_and_keeps_nothing() {
        let clock = Arc::new(SimClock::new());
        let attempt = Attempt::new(Arc::clone(&clock) as Arc<dyn Clock>);
        let inflight = InFlight::default();
        let read = inflight.read(clock.monotonic());
        attempt.keep(|kept| kept.read = Some(read)).unwrap();
        let steps = async {
            for _ in 0..3 {
                clock.sleep(IDLE - Duration::from_secs(1)).await;
                attempt.go_on().unwrap();
            }
            assert!(inflight.oldest_read().is_some());
        };
        tokio::join!(steps, attempt.give_up_after(IDLE));
        assert!(attempt.is_given_up());
        assert_eq!(inflight.oldest_read(), None);
        // The task does not get to keep more.
        let read = inflight.read(clock.monotonic());
        let late = attempt.keep(|kept| kept.read = Some(read));
        assert!(matches!(late, Err(GivenUp)));
        assert!(matches!(attempt.let_go(), Err(GivenUp)));
        assert_eq!(inflight.oldest_read(), None);
    }
}
