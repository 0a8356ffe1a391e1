//! A pause after a refusal: a refused step is not tried again immediately.

use std::time::Duration;

use crate::index::engine::failed::Failed;

/// The first pause. Each further refusal doubles it, up to the longest.
const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(5);

/// The refusals since the step last succeeded.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    /// When the step may be tried again, monotonic, and why it was refused last.
    not_before: Option<(Duration, Failed)>,
    pause: Duration,
}

impl Refusals {
    /// # Errors
    /// The last refusal, while its pause lasts.
    pub(crate) fn may_try(&self, now: Duration) -> Result<(), Failed> {
        match &self.not_before {
            Some((at, refused)) if now < *at => Err(refused.clone()),
            Some(_) | None => Ok(()),
        }
    }

    /// Notes a refusal, and returns the pause that follows it.
    pub(crate) fn note(&mut self, now: Duration, refused: &Failed) -> Duration {
        self.pause = (self.pause * 2).clamp(FIRST, LONGEST);
        self.not_before = Some((now + self.pause, refused.clone()));
        self.pause
    }
}
