//! A full disk under the file: when changes are tried again, and the log lines about it.

use std::path::PathBuf;
use std::time::Duration;

use crate::coordinator::api::Error;

/// The pause after the first failed try to open the file again. It doubles up to the longest. The
/// pause after a change without room does the same, because each such change makes the file be
/// opened and read again.
pub(super) const REOPEN_PAUSE: Duration = Duration::from_millis(100);
pub(super) const REOPEN_PAUSE_MAX: Duration = Duration::from_secs(5);
/// The least time between two log lines about a full disk.
const LOG_EVERY: Duration = Duration::from_secs(60);
/// There is room again when a change has succeeded and none was refused for this long after it. On
/// a real disk small changes may find room while larger ones do not.
const ROOM_AFTER: Duration = REOPEN_PAUSE_MAX;

/// The room on the disk, as the task that commits knows it. Times are monotonic.
#[derive(Debug)]
pub(super) struct Room {
    path: PathBuf,
    /// Until when changes are refused, and their error.
    refusal: Option<(Duration, Error)>,
    /// The length of the next pause. It doubles until a change finds room.
    pause: Duration,
    /// When a full disk was logged last.
    logged: Option<Duration>,
    /// Whether the last log line says that the disk is full.
    is_full: bool,
    /// When there is room again, unless a change is refused before.
    has_room_at: Option<Duration>,
}

impl Room {
    pub(super) fn new(path: PathBuf) -> Self {
        let (refusal, logged, has_room_at) = (None, None, None);
        Self { path, refusal, pause: REOPEN_PAUSE, logged, is_full: false, has_room_at }
    }

    /// Notes that a change found no room and that the file is open again. Begins a pause, because
    /// each further change could make the file be read again.
    pub(super) fn found_none(&mut self, now: Duration, refusal: Error) {
        self.log_full(now, &refusal);
        self.refusal = Some((now + self.pause, refusal));
        self.pause = (self.pause * 2).min(REOPEN_PAUSE_MAX);
    }

    /// Logs that the disk is full, at most once in [`LOG_EVERY`].
    pub(super) fn log_full(&mut self, now: Duration, refusal: &Error) {
        self.has_room_at = None;
        if self.logged.is_some_and(|at| now.saturating_sub(at) < LOG_EVERY) {
            return;
        }
        (self.logged, self.is_full) = (Some(now), true);
        tracing::error!(
            path = %self.path.display(), error = %refusal,
            "the coordinator's file finds no room: requests that change it are refused until there \
             is room; free some space on its disk"
        );
    }

    /// Notes that a change found room.
    pub(super) fn found(&mut self, now: Duration) {
        self.pause = REOPEN_PAUSE;
        if self.is_full && self.has_room_at.is_none() {
            self.has_room_at = Some(now + ROOM_AFTER);
        }
    }

    /// The error of changes, while they are not tried.
    pub(super) fn refusal(&mut self, now: Duration) -> Option<&Error> {
        self.refusal.take_if(|(until, _)| *until <= now);
        self.refusal.as_ref().map(|(_, refusal)| refusal)
    }

    /// Until when changes are not tried, if there is a pause.
    pub(super) fn paused_until(&self) -> Option<Duration> {
        self.refusal.as_ref().map(|(until, _)| *until)
    }

    /// When [`Self::log_room_again`] will log.
    pub(super) fn has_room_at(&self) -> Option<Duration> {
        self.has_room_at
    }

    /// Logs that there is room again, if it is time to.
    pub(super) fn log_room_again(&mut self, now: Duration) {
        if self.has_room_at.take_if(|at| *at <= now).is_some() {
            // The next full disk is logged immediately, so that the last log line is always right.
            (self.is_full, self.logged) = (false, None);
            let path = self.path.display();
            tracing::info!(
                %path,
                "the coordinator's file finds room again: requests that change it succeed"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::api::Reason;
    use crate::telemetry::CapturedLog;

    /// The last log line is right, even if the disk is soon full again.
    #[test]
    fn each_time_without_room_has_its_lines() {
        let log = CapturedLog::default();
        let _kept = log.begin();
        let mut room = Room::new(PathBuf::from("/data/coordinator"));
        let at = Duration::from_secs;
        let refusal = || Error::Unavailable { reason: Reason::full("no room".to_owned()) };
        for (time, full) in [(0, 1), (20, 2), (40, 3)] {
            room.found_none(at(time), refusal());
            room.found_none(at(time + 1), refusal());
            assert_eq!(log.lines_with(&["ERROR", "finds no room"]), full, "{}", log.text());
            room.found(at(time + 2));
            room.log_room_again(room.has_room_at().expect("it has_room_at"));
            assert_eq!(log.lines_with(&["INFO", "finds room again"]), full, "{}", log.text());
        }
    }
}
