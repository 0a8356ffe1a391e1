//! What the members of a partition's newest log said last.

use std::time::Duration;

use crate::types::ExtentId;

/// A question to all members of the newest log, with their answer.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// Monotonic time.
    pub(super) sent: Duration,
    /// Whether no other owner served when it was sent.
    pub(super) is_confirmed: bool,
    /// The logs of which a member gave no lease.
    pub(super) named: Vec<ExtentId>,
}
