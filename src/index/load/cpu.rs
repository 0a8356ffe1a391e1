//! The processor time of work.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::env::Clock;

/// Runs `work` and adds `times` its processor time, in nanoseconds, to `cpu`. The work stands for
/// `times` similar ones. Time in which the work waited, or in which its thread waited on an
/// overloaded machine, does not count.
pub(crate) async fn timed<T>(
    clock: &dyn Clock,
    (cpu, times): (&AtomicU64, u64),
    work: impl Future<Output = T>,
) -> T {
    if times == 0 {
        return work.await;
    }
    let mut work = pin!(work);
    poll_fn(|context| {
        let began = clock.thread_cpu();
        let polled = work.as_mut().poll(context);
        let took = clock.thread_cpu().saturating_sub(began).as_nanos();
        let took = u64::try_from(took).unwrap_or(u64::MAX).saturating_mul(times);
        cpu.fetch_add(took, Ordering::Relaxed);
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

    /// Each call of `thread_cpu` takes a millisecond.
    #[derive(Debug, Default)]
    struct Ticking(AtomicU64);

    #[async_trait]
    impl Clock for Ticking {
        fn now(&self) -> Timestamp {
            Timestamp::ZERO
        }

        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }

        fn thread_cpu(&self) -> Duration {
            Duration::from_millis(self.0.fetch_add(1, Ordering::Relaxed))
        }

        async fn sleep(&self, _duration: Duration) {}
    }

    #[tokio::test]
    async fn only_the_time_between_waits_counts() {
        let (clock, cpu) = (Ticking::default(), AtomicU64::new(0));
        let work = async {
            tokio::task::yield_now().await;
            clock.thread_cpu();
            7
        };
        assert_eq!(timed(&clock, (&cpu, 1), work).await, 7);
        // One millisecond up to the wait, two from there.
        assert_eq!(cpu.load(Ordering::Relaxed), 3_000_000);
        timed(&clock, (&cpu, 16), async {}).await;
        timed(&clock, (&cpu, 0), async {}).await;
        assert_eq!(cpu.load(Ordering::Relaxed), 19_000_000);
    }
}
