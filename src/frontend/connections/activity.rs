//! The state of one connection. Requests record it in atomics; the table reads them only when it
//! must make room.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::Notify;

/// The state of one connection, written by its requests.
#[derive(Debug)]
pub(super) struct Activity {
    /// Requests in progress.
    running: AtomicU32,
    /// When the last request ended, or when the connection was accepted: monotonic milliseconds.
    idle_since: AtomicU64,
    /// When it last reported to the table that its requests are authenticated: monotonic
    /// milliseconds plus one; 0 for never.
    reported: AtomicU64,
    leave: Notify,
    is_leaving: AtomicBool,
}

impl Activity {
    /// A connection without a request so far.
    pub(super) fn new(now: Duration) -> Self {
        Self {
            running: AtomicU32::new(0),
            idle_since: AtomicU64::new(milliseconds(now)),
            reported: AtomicU64::new(0),
            leave: Notify::new(),
            is_leaving: AtomicBool::new(false),
        }
    }

    pub(super) fn begin(&self) {
        self.running.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn end(&self, now: Duration) {
        // The time first: a reader that sees no request in progress must see this time.
        self.idle_since.fetch_max(milliseconds(now), Ordering::AcqRel);
        self.running.fetch_sub(1, Ordering::AcqRel);
    }

    /// Since when no request is in progress; `None` while one is.
    pub(super) fn idle_since(&self) -> Option<Duration> {
        let idle = self.running.load(Ordering::Acquire) == 0;
        idle.then(|| Duration::from_millis(self.idle_since.load(Ordering::Acquire)))
    }

    /// Whether the connection must report again that its requests are authenticated. Of concurrent
    /// callers only one gets `true`.
    pub(super) fn is_due(&self, now: Duration, every: Duration) -> bool {
        let last = self.reported.load(Ordering::Relaxed);
        let now = milliseconds(now) + 1;
        let due = last == 0 || now - last.min(now) >= milliseconds(every);
        due && self
            .reported
            .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Whether a request of it was authenticated.
    pub(super) fn is_authenticated(&self) -> bool {
        self.reported.load(Ordering::Relaxed) != 0
    }

    /// Signals the connection to close. If it does not wait for the signal yet, it gets it when it
    /// does.
    pub(super) fn leave(&self) {
        self.is_leaving.store(true, Ordering::Release);
        self.leave.notify_one();
    }

    /// Whether it was signalled to close.
    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Acquire)
    }

    pub(super) async fn leave_requested(&self) {
        self.leave.notified().await;
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_since_the_last_of_several_requests_ended() {
        let at = Duration::from_secs;
        let activity = Activity::new(at(1));
        assert_eq!(activity.idle_since(), Some(at(1)));
        activity.begin();
        activity.begin();
        activity.end(at(2));
        assert_eq!(activity.idle_since(), None);
        activity.end(at(3));
        assert_eq!(activity.idle_since(), Some(at(3)));
    }

    #[test]
    fn reports_come_once_in_a_while() {
        let (at, every) = (Duration::from_secs, Duration::from_secs(60));
        let activity = Activity::new(at(0));
        assert!(!activity.is_authenticated());
        let due: Vec<bool> = [0, 1, 59, 60, 61, 120].map(|s| activity.is_due(at(s), every)).into();
        assert_eq!(due, [true, false, false, true, false, true]);
        assert!(activity.is_authenticated());
    }
}
