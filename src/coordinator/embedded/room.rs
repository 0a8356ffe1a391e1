//! A disk without room for the file, from the first change that finds none until changes find some
//! again: when the next one is tried, and what the log says.

use std::path::PathBuf;
use std::time::Duration;

use crate::coordinator::api::Error;

/// The pause after the first try to open a file again that failed; it doubles up to the longest.
/// So does the pause after changes without room: each one that fails reads the whole file again.
pub(super) const REOPEN_PAUSE: Duration = Duration::from_millis(100);
pub(super) const REOPEN_PAUSE_MAX: Duration = Duration::from_secs(5);
/// Between two lines of the log while there is no room.
const SAY_EVERY: Duration = Duration::from_secs(60);
/// There is room again when a change has found some, and so much later none was refused. On a real
/// disk small changes find some while larger ones do not.
const SETTLED: Duration = REOPEN_PAUSE_MAX;

/// What the one task that commits knows of it. Times are of the monotonic clock.
#[derive(Debug)]
pub(super) struct Room {
    path: PathBuf,
    /// What changes are told until then.
    refusal: Option<(Duration, Error)>,
    /// How long the next pause is: it doubles until a change finds room.
    pause: Duration,
    /// When the log said last that there is none.
    said: Option<Duration>,
    /// Whether that is the last it said.
    is_full: bool,
    /// When there is room again, unless a change is refused before.
    settles: Option<Duration>,
}

impl Room {
    pub(super) fn new(path: PathBuf) -> Self {
        let (refusal, said, settles) = (None, None, None);
        Self { path, refusal, pause: REOPEN_PAUSE, said, is_full: false, settles }
    }

    /// A change found none, and the file is open again: others would read it again in vain.
    pub(super) fn lacked(&mut self, now: Duration, refusal: Error) {
        self.say(now, &refusal);
        self.refusal = Some((now + self.pause, refusal));
        self.pause = (self.pause * 2).min(REOPEN_PAUSE_MAX);
    }

    /// Tells the operator that there is none, unless that was done just now.
    pub(super) fn say(&mut self, now: Duration, refusal: &Error) {
        self.settles = None;
        if self.said.is_some_and(|at| now.saturating_sub(at) < SAY_EVERY) {
            return;
        }
        (self.said, self.is_full) = (Some(now), true);
        tracing::error!(
            path = %self.path.display(), error = %refusal,
            "the coordinator's file finds no room: what changes it is refused until there is; \
             free some space on its disk"
        );
    }

    /// A change found some.
    pub(super) fn found(&mut self, now: Duration) {
        self.pause = REOPEN_PAUSE;
        if self.is_full && self.settles.is_none() {
            self.settles = Some(now + SETTLED);
        }
    }

    /// What changes are told now, if they are not to be tried.
    pub(super) fn refusal(&mut self, now: Duration) -> Option<&Error> {
        self.refusal.take_if(|(until, _)| *until <= now);
        self.refusal.as_ref().map(|(_, refusal)| refusal)
    }

    /// Until when changes are not tried, if there was a pause.
    pub(super) fn paused_until(&self) -> Option<Duration> {
        self.refusal.as_ref().map(|(until, _)| *until)
    }

    /// When [`Self::settle`] has something to say.
    pub(super) fn settles(&self) -> Option<Duration> {
        self.settles
    }

    /// Tells the operator that there is room again, if it is time to.
    pub(super) fn settle(&mut self, now: Duration) {
        if self.settles.take_if(|at| *at <= now).is_some() {
            // The next full disk is logged immediately; otherwise the log would end with "room".
            (self.is_full, self.said) = (false, None);
            let path = self.path.display();
            tracing::info!(%path, "the coordinator's file finds room again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::api::Reason;
    use crate::telemetry::CapturedLog;

    /// The last line of the log says how it is, however soon a disk is full again.
    #[test]
    fn each_time_without_room_has_its_lines() {
        let log = CapturedLog::default();
        let _kept = log.begin();
        let mut room = Room::new(PathBuf::from("/data/coordinator"));
        let at = Duration::from_secs;
        let refusal = || Error::Unavailable { reason: Reason::full("no room".to_owned()) };
        for (time, full) in [(0, 1), (20, 2), (40, 3)] {
            room.lacked(at(time), refusal());
            room.lacked(at(time + 1), refusal());
            assert_eq!(log.lines_with(&["ERROR", "finds no room"]), full, "{}", log.text());
            room.found(at(time + 2));
            room.settle(room.settles().expect("it settles"));
            assert_eq!(log.lines_with(&["INFO", "finds room again"]), full, "{}", log.text());
        }
    }
}
