//! A running backup. Its holds against reclaim are kept here and not by its task, which may wait
//! for a directory that does not answer. The node can give the backup up, which releases
//! everything. The task notices that before its next step and changes nothing any more.

use std::mem;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use crate::env::Clock;
use crate::index::Hold;
use crate::index::KeptExtents;

/// A backup of a node that serves is given up after this time without a step. It is longer than a
/// consistent cut may take.
pub(super) const GIVE_UP_AFTER: Duration = Duration::from_secs(600);

/// The node gave the backup up. Bytes that the copy needs may be freed.
#[derive(Debug)]
pub struct GivenUp;

/// The holds of a running backup against reclaim.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Content.
    pub(super) content: Option<Hold>,
    /// Logs and runs.
    pub(super) index: Option<KeptExtents>,
}

/// A backup. Its task and the node both have it.
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
    /// A backup that begins now.
    #[must_use]
    pub(super) fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        let last_step = clock.monotonic();
        let state = Mutex::new(State { last_step, given_up: false, kept: Kept::default() });
        Arc::new(Self { clock, state })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a step. Call it before every change of the directory.
    ///
    /// # Errors
    /// [`GivenUp`]: bytes that the copy needs may be freed.
    pub(super) fn go_on(&self) -> Result<(), GivenUp> {
        self.keep(|_| ())
    }

    /// Records a step, and changes the holds.
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

    /// Releases everything, because all of it is copied.
    pub(super) fn let_go(&self) -> Result<(), GivenUp> {
        let mut kept = Kept::default();
        self.keep(|all| kept = mem::take(all))
    }

    /// Whether the node gave the backup up.
    #[must_use]
    pub(super) fn is_given_up(&self) -> bool {
        self.state().given_up
    }

    /// Waits until the backup has made no step for `idle`. Then gives it up and releases
    /// everything.
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

    /// Gives the backup up.
    pub(super) fn give_up(&self) {
        let mut state = self.state();
        state.given_up = true;
        let kept = mem::take(&mut state.kept);
        // Dropping it takes other locks, which must not be taken while the state is locked.
        drop(state);
        drop(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::SimClock;
    use crate::index::InFlight;
    use crate::index::LocalRequests;

    const IDLE: Duration = Duration::from_secs(600);

    #[tokio::test(start_paused = true)]
    async fn what_makes_no_step_is_given_up_and_keeps_nothing() {
        let clock = Arc::new(SimClock::new());
        let attempt = Attempt::new(Arc::clone(&clock) as Arc<dyn Clock>);
        let of = Arc::clone(&clock) as Arc<dyn Clock>;
        let requests = LocalRequests::shared(InFlight::default(), of);
        let hold = Hold::begin(&requests, "a backup".to_owned()).await.unwrap();
        attempt.keep(|kept| kept.content = Some(hold)).unwrap();
        let steps = async {
            for _ in 0..3 {
                clock.sleep(IDLE - Duration::from_secs(1)).await;
                attempt.go_on().unwrap();
            }
            assert!(requests.oldest_read().await.unwrap().is_some());
        };
        tokio::join!(steps, attempt.give_up_after(IDLE));
        assert!(attempt.is_given_up());
        assert_eq!(requests.oldest_read().await.unwrap(), None);
        // The task does not get to keep more.
        let hold = Hold::begin(&requests, "a backup".to_owned()).await.unwrap();
        let late = attempt.keep(|kept| kept.content = Some(hold));
        assert!(matches!(late, Err(GivenUp)));
        assert!(matches!(attempt.let_go(), Err(GivenUp)));
        assert_eq!(requests.oldest_read().await.unwrap(), None);
    }
}
