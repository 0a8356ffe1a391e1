//! Which request a log line is about.
//!
//! The id lies in the memory of the thread that works on the request, and a line that is written
//! takes it from there. A span of `tracing` would cost every request allocations and locks, for
//! lines that few requests write.

use std::cell::Cell;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;

use pin_project_lite::pin_project;
use uuid::Uuid;

thread_local! {
    static CURRENT: Cell<Option<Uuid>> = const { Cell::new(None) };
}

/// The id of the request that this thread works on.
#[must_use]
pub fn current() -> Option<Uuid> {
    CURRENT.get()
}

/// Runs `work` for the request `id`: log lines that it writes carry the id.
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
        let _before = Before(CURRENT.replace(*this.id));
        this.work.poll(context)
    }
}

/// The request before; back when this is dropped, after a panic too.
struct Before(Option<Uuid>);

impl Drop for Before {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
