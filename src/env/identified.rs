//! Work for a request. Its log lines have the id of the request.

use std::pin::Pin;
use std::task::Context;
use std::task::Poll;

use pin_project_lite::pin_project;
use uuid::Uuid;

use crate::types::request;

/// Runs `work` for the request `id`. Log lines of `work` have this id.
pub const fn identified<F: Future>(id: Option<Uuid>, work: F) -> Identified<F> {
    Identified { id, work }
}

pin_project! {
    /// The work of [`identified`].
    #[derive(Debug)]
    pub struct Identified<F> {
        id: Option<Uuid>,
        #[pin]
        work: F,
    }
}

impl<F: Future> Future for Identified<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _entered = request::enter(*this.id);
        this.work.poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
