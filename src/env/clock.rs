//! The interface of time.

#![expect(clippy::disallowed_methods, reason = "the seam")]

#[cfg(test)]
mod trap;

use std::fmt::Debug;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use async_trait::async_trait;

use crate::env::system;
use crate::types::Timestamp;

#[cfg(test)]
pub(crate) use trap::TrapClock;

/// Time. Sleeping goes through here too, so that a simulation can skip it.
#[async_trait]
pub trait Clock: Send + Sync + Debug {
    /// Wall time. It may jump forward and back.
    fn now(&self) -> Timestamp;

    /// Time since a fixed point in this process. It never goes back.
    fn monotonic(&self) -> Duration;

    /// As [`Self::monotonic`], from another point, and it goes on while the machine is suspended if
    /// the operating system has such a clock.
    fn boot_time(&self) -> Duration {
        self.monotonic()
    }

    /// Processor time that the calling thread has used. Costs a system call.
    fn thread_cpu(&self) -> Duration;

    /// Waits. Cancel safe.
    async fn sleep(&self, duration: Duration);
}

/// The machine's clock.
#[derive(Debug)]
pub struct OsClock {
    start: Instant,
}

impl OsClock {
    /// A clock whose monotonic time starts now.
    #[must_use]
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for OsClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Clock for OsClock {
    fn now(&self) -> Timestamp {
        // A machine whose clock is set before 1970 shows 1970.
        Timestamp::from_unix(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn boot_time(&self) -> Duration {
        system::boot_time().unwrap_or_else(|| self.monotonic())
    }

    fn thread_cpu(&self) -> Duration {
        system::thread_cpu()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// Wall time at the start of every simulation: 2030-01-01T00:00:00Z.
const SIM_ORIGIN: Duration = Duration::from_secs(1_893_456_000);

/// Simulated time. It follows tokio's clock, which stands still between sleeps while it is paused.
#[derive(Debug)]
pub struct SimClock {
    start: tokio::time::Instant,
    /// Wall time at `start`, nanoseconds since 1970.
    origin_ns: AtomicU64,
}

impl SimClock {
    /// A clock that shows 2030-01-01T00:00:00Z. To be called in a tokio runtime.
    #[must_use]
    pub fn new() -> Self {
        Self {
            start: tokio::time::Instant::now(),
            origin_ns: AtomicU64::new(nanoseconds(SIM_ORIGIN)),
        }
    }

    /// Sets wall time to `now`, as an operator or a time server would. Monotonic time is not
    /// changed.
    pub fn set_wall(&self, now: Timestamp) {
        let origin = now.since_unix().saturating_sub(self.start.elapsed());
        self.origin_ns.store(nanoseconds(origin), Ordering::SeqCst);
    }
}

impl Default for SimClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let origin = Duration::from_nanos(self.origin_ns.load(Ordering::SeqCst));
        Timestamp::from_unix(origin + self.start.elapsed())
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    /// Simulated time: the work of a simulated program between two waits takes no time.
    fn thread_cpu(&self) -> Duration {
        self.start.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// Nanoseconds since 1970 fit in 64 bits until the year 2554.
fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn sim_clock_moves_only_by_sleeping() {
        let clock = SimClock::new();
        let before = clock.now();
        assert_eq!(before.since_unix(), SIM_ORIGIN);
        clock.sleep(Duration::from_secs(60)).await;
        assert_eq!(clock.monotonic(), Duration::from_secs(60));
        assert_eq!(clock.now().since_unix(), SIM_ORIGIN + Duration::from_secs(60));
    }

    #[tokio::test(start_paused = true)]
    async fn sim_wall_time_jumps_back_while_monotonic_time_goes_on() {
        let clock = SimClock::new();
        clock.sleep(Duration::from_secs(60)).await;
        let earlier = Timestamp::from_unix(Duration::from_secs(1_000));
        clock.set_wall(earlier);
        assert_eq!(clock.now(), earlier);
        clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(clock.now().since_unix(), Duration::from_secs(1_001));
        assert_eq!(clock.monotonic(), Duration::from_secs(61));
    }

    #[test]
    fn os_clock_is_past_the_day_this_was_written() {
        let clock = OsClock::new();
        assert!(clock.now().since_unix() > Duration::from_secs(1_700_000_000));
        let first = clock.monotonic();
        assert!(clock.monotonic() >= first);
        let (first, mut spun) = (clock.thread_cpu(), 0_u64);
        while clock.thread_cpu() == first {
            spun += 1;
        }
        assert!(clock.thread_cpu() > first, "after {spun} tries");
    }
}
