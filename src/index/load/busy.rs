//! How long work holds a thread.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::env::Clock;

/// Runs `work` and adds to `busy` the nanoseconds for which it held its thread: not those in which it waited. On a machine with
/// more to do than processors a thread may be held without running, so this is at least the processor time.
pub(crate) async fn timed<T>(
    clock: &dyn Clock,
    busy: &AtomicU64,
    work: impl Future<Output = T>,
) -> T {
    let mut work = pin!(work);
    poll_fn(|context| {
        let began = clock.monotonic();
        let polled = work.as_mut().poll(context);
        let held = clock.monotonic().saturating_sub(began).as_nanos();
        busy.fetch_add(u64::try_from(held).unwrap_or(u64::MAX), Ordering::Relaxed);
        polled
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_trait::async_trait;

    use super::*;
    use crate::types::Timestamp;

    /// A millisecond passes with every look.
    #[derive(Debug, Default)]
    struct Ticking(AtomicU64);

    #[async_trait]
    impl Clock for Ticking {
        fn now(&self) -> Timestamp {
            Timestamp::ZERO
        }

        fn monotonic(&self) -> Duration {
            Duration::from_millis(self.0.fetch_add(1, Ordering::Relaxed))
        }

        async fn sleep(&self, _duration: Duration) {}
    }

    #[tokio::test]
    async fn only_the_time_between_waits_counts() {
        let (clock, busy) = (Ticking::default(), AtomicU64::new(0));
        let work = async {
            tokio::task::yield_now().await;
            clock.monotonic();
            7
        };
        assert_eq!(timed(&clock, &busy, work).await, 7);
        // One millisecond up to the wait, two from there.
        assert_eq!(busy.load(Ordering::Relaxed), 3_000_000);
    }
}
