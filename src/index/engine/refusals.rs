//! A pause after a refusal: what was refused is not tried again at once.

use std::time::Duration;

use crate::index::engine::failed::Failed;

/// The first pause; it doubles with every further refusal, up to the longest.
const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(5);

/// The refusals since something was last carried out.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    /// Monotonic, and why the last one was refused.
    not_before: Option<(Duration, Failed)>,
    pause: Duration,
}

impl Refusals {
    /// # Errors
    /// Why it was refused a moment ago.
    pub(crate) fn may_try(&self, now: Duration) -> Result<(), Failed> {
        match &self.not_before {
            Some((at, refused)) if now < *at => Err(refused.clone()),
            Some(_) | None => Ok(()),
        }
    }

    /// Notes a refusal; gives the pause that follows it.
    pub(crate) fn note(&mut self, now: Duration, refused: &Failed) -> Duration {
        self.pause = (self.pause * 2).clamp(FIRST, LONGEST);
        self.not_before = Some((now + self.pause, refused.clone()));
        self.pause
    }
}
