//! Log lines about uploads that are cut off.

use std::time::Duration;

use crate::frontend::answers::flow::CutOffReason;
use crate::types::AccountName;

/// At most one line is written in this time, however many uploads are cut off.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// The time of the last line, and the uploads that were not logged since.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    last: Option<Duration>,
    /// Uploads that were cut off since then.
    uploads: u64,
}

impl Warnings {
    /// Records an upload that is cut off; `account` finds the name of its account.
    pub(super) fn record(
        &mut self,
        cut: CutOffReason,
        now: Duration,
        account: impl FnOnce() -> Option<AccountName>,
    ) {
        self.uploads += 1;
        if self.last.is_some_and(|last| now.saturating_sub(last) < WARN_EVERY) {
            return;
        }
        let (uploads, reason) = (std::mem::take(&mut self.uploads), cut.as_str());
        self.last = Some(now);
        let account = account().map(|name| name.to_string()).unwrap_or_default();
        if cut == CutOffReason::Contention {
            tracing::warn!(
                uploads,
                account,
                "uploads were cut: they came slowly, and other accounts needed their memory or their \
                 place among the requests"
            );
        } else {
            tracing::warn!(
                uploads,
                account,
                reason,
                "uploads were cut: their clients sent too slowly or nothing at all; \
                 --body-idle-seconds and --request-min-rate set the limits"
            );
        }
    }
}
