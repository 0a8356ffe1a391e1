//! Warns of uploads that are cut.

use std::time::Duration;

use crate::frontend::answers::flow::Fault;
use crate::types::AccountName;

/// A line is written once in so long, however many uploads are cut.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// When the last line was written, and what it did not tell yet.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    last: Option<Duration>,
    /// Uploads that were cut since then.
    uploads: u64,
}

impl Warnings {
    /// Tells of an upload that is cut; `account` finds the name of its account.
    pub(super) fn tell(
        &mut self,
        (fault, now): (Fault, Duration),
        account: impl FnOnce() -> Option<AccountName>,
    ) {
        self.uploads += 1;
        if self.last.is_some_and(|last| now.saturating_sub(last) < WARN_EVERY) {
            return;
        }
        let (uploads, reason) = (std::mem::take(&mut self.uploads), fault.as_str());
        self.last = Some(now);
        let account = account().map(|name| name.to_string()).unwrap_or_default();
        if fault == Fault::InTheWay {
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
