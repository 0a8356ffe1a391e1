//! Work for a request. Its log lines have the id of the request, and its waits are measured.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;
use std::time::Duration;

use pin_project_lite::pin_project;
use uuid::Uuid;

use crate::env::Clock;
use crate::types::request;
use crate::types::request::CurrentRequest;
use crate::types::request::Stage;
use crate::types::request::StageWaits;

/// Runs `work` for the request `id`. Log lines of `work` have this id.
pub fn identified<F: Future>(id: Option<Uuid>, work: F) -> Identified<F> {
    working_on(id.map(CurrentRequest::of), work)
}

/// Runs `work` for a request. Log lines of `work` have its id.
pub const fn working_on<F: Future>(request: Option<CurrentRequest>, work: F) -> Identified<F> {
    Identified { request, work }
}

/// Measures how long the current request waits for `work`, if its waits are recorded.
pub fn waiting<F: Future>(clock: &dyn Clock, stage: Stage, work: F) -> Waiting<'_, F> {
    let noted = request::current_waits().map(|waits| {
        let begun = clock.monotonic();
        waits.begin(stage, begun);
        Wait { clock, stage, waits, begun }
    });
    Waiting { noted, work }
}

pin_project! {
    /// The work of [`identified`].
    #[derive(Debug)]
    pub struct Identified<F> {
        request: Option<CurrentRequest>,
        #[pin]
        work: F,
    }
}

pin_project! {
    /// The work of [`waiting`].
    #[derive(Debug)]
    pub struct Waiting<'a, F> {
        // Until the work is done.
        noted: Option<Wait<'a>>,
        #[pin]
        work: F,
    }
}

/// A wait that has not ended. It ends when this is dropped, also when the request was cancelled.
#[derive(Debug)]
struct Wait<'a> {
    clock: &'a dyn Clock,
    stage: Stage,
    waits: Arc<StageWaits>,
    begun: Duration,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.waits.end(self.stage, self.begun, self.clock.monotonic());
    }
}

impl<F: Future> Future for Identified<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _entered = request::exchange(this.request);
        this.work.poll(context)
    }
}

impl<F: Future> Future for Waiting<'_, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let polled = this.work.poll(context);
        if polled.is_ready() {
            *this.noted = None;
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::SimClock;
    use crate::env::Tasks;
    use crate::types::request::current;

    const fn id(number: u128) -> Option<Uuid> {
        Some(Uuid::from_u128(number))
    }

    #[tokio::test]
    async fn id_is_there_while_its_work_is_polled_and_at_no_other_time() {
        let work = |number| {
            identified(id(number), async move {
                for _ in 0..3 {
                    assert_eq!(current(), id(number));
                    tokio::task::yield_now().await;
                }
                identified(id(number + 10), async { assert_eq!(current(), id(number + 10)) }).await;
                assert_eq!(current(), id(number));
            })
        };
        tokio::join!(work(1), work(2), async { assert_eq!(current(), None) });
        assert_eq!(current(), None);
    }

    #[tokio::test]
    async fn id_is_gone_after_a_panic() {
        let work = identified(id(1), async { panic!("planned") });
        let caught = futures_util::FutureExt::catch_unwind(work).await;
        assert!(caught.is_err() && current().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn waits_of_a_request_and_its_parts_are_noted_if_wanted() {
        let (clock, tasks) = (Arc::new(SimClock::new()), Tasks::new());
        let wait = |stage, seconds| {
            let clock = Arc::clone(&clock);
            async move {
                let slept = clock.sleep(Duration::from_secs(seconds));
                waiting(clock.as_ref(), stage, slept).await;
            }
        };
        let work = async {
            wait(Stage::Index, 1).await;
            tasks.spawn_part("part", wait(Stage::Index, 2)).await.unwrap();
            tasks.spawn("other", wait(Stage::Journal, 4)).await.unwrap();
            wait(Stage::Read, 8).await;
        };
        let waits = Arc::<StageWaits>::default();
        let request =
            CurrentRequest { waits: Some(Arc::clone(&waits)), ..CurrentRequest::of(Uuid::nil()) };
        working_on(Some(request), work).await;
        let times = waits.times(clock.monotonic());
        let seconds = [times.index, times.journal, times.read].map(|time| time.as_secs());
        assert_eq!(seconds, [3, 0, 8]);
    }

    #[tokio::test(start_paused = true)]
    async fn waits_that_nobody_waits_for_any_more_are_noted() {
        let (clock, tasks) = (Arc::new(SimClock::new()), Tasks::new());
        let waits = Arc::<StageWaits>::default();
        let request =
            CurrentRequest { waits: Some(Arc::clone(&waits)), ..CurrentRequest::of(Uuid::nil()) };
        let of_clock = Arc::clone(&clock);
        let part = async move {
            waiting(of_clock.as_ref(), Stage::Journal, std::future::pending::<()>()).await;
        };
        let work = async {
            drop(tasks.spawn_part("part", part));
            waiting(clock.as_ref(), Stage::Index, std::future::pending::<()>()).await;
        };
        let client = clock.sleep(Duration::from_secs(3));
        tokio::select! {
            biased;
            () = working_on(Some(request), work) => {}
            () = client => {}
        }
        let times = waits.times(clock.monotonic());
        assert_eq!((times.index.as_secs(), times.journal.as_secs()), (3, 3));
    }

    #[tokio::test]
    async fn part_of_a_request_has_its_id_and_another_task_has_none() {
        let tasks = Tasks::new();
        let started = async {
            let part = tasks.spawn_part("part", async { current() });
            let other = tasks.spawn("other", async { current() });
            (part.await.unwrap(), other.await.unwrap())
        };
        assert_eq!(identified(id(1), started).await, (id(1), None));
    }
}
