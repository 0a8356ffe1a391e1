//! How often and how long a request is sent again because its partition map was stale.

use std::time::Duration;

use crate::index::Error;
use crate::index::Target;

/// How long a request is retried while its map is stale. A change of the map takes milliseconds.
/// The time is long enough for many changes in a row.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// The retries of a request whose partition map is stale.
#[derive(Debug, Default)]
pub(super) struct StaleRetry {
    /// When the request first met a stale map.
    begun: Option<Duration>,
    /// The partition that refused it last.
    refused: Option<Target>,
    /// How often in a row that partition has refused it, minus one.
    refusals: u32,
}

impl StaleRetry {
    /// How long ago the request first met a stale map.
    pub(super) fn waited(&self, now: Duration) -> Duration {
        now.saturating_sub(self.begun.unwrap_or(now))
    }

    /// Notes that `target` refused the request. Returns how often in a row it had refused it
    /// before.
    ///
    /// # Errors
    /// [`Error::Overloaded`] after [`PATIENCE`].
    pub(super) fn record(&mut self, target: Target, now: Duration) -> Result<u32, Error> {
        let begun = *self.begun.get_or_insert(now);
        if now.saturating_sub(begun) >= PATIENCE {
            return Err(Error::Overloaded);
        }
        let same = self.refused.replace(target) == Some(target);
        self.refusals = if same { self.refusals.saturating_add(1) } else { 0 };
        Ok(self.refusals)
    }
}
