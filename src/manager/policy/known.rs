//! The state that the policy keeps between ticks.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use crate::manager::policy::average::Average;
use crate::manager::policy::config::PolicyConfig;
use crate::types::HostId;
use crate::types::PartitionId;

/// The policy, with the state that it keeps of each partition.
#[derive(Debug, Default)]
pub struct Policy {
    pub(super) config: PolicyConfig,
    pub(super) known: BTreeMap<PartitionId, Known>,
}

/// The state that the policy keeps of one partition.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) since: Duration,
    pub(super) hot: u32,
    /// The load by which hosts are compared. With few requests a single tick is mostly chance.
    pub(super) average: Average,
    /// Since when it has been so cold that it may be merged.
    pub(super) cold: Option<Duration>,
    /// When its last move was planned, and to which host.
    pub(super) moved: Option<(Duration, HostId)>,
    /// When its last split for size was planned.
    pub(super) large: Option<Duration>,
    /// When its last split or merge was planned. If the partition still exists, that failed.
    pub(super) tried: Option<Duration>,
    /// The highest samples of the last ticks with enough samples, the oldest first.
    pub(super) highest: VecDeque<Bytes>,
}

impl Known {
    pub(super) const fn new(now: Duration) -> Self {
        Self {
            since: now,
            hot: 0,
            average: Average::NONE,
            cold: None,
            moved: None,
            large: None,
            tried: None,
            highest: VecDeque::new(),
        }
    }

    /// Whether its last split or merge was planned less than `pause` ago. A change that fails
    /// repeatedly must not delay others.
    pub(super) fn was_tried(&self, now: Duration, pause: Duration) -> bool {
        self.tried.is_some_and(|at| now.saturating_sub(at) < pause)
    }
}

impl Policy {
    /// A policy that remembers nothing.
    #[must_use]
    pub fn new(config: PolicyConfig) -> Self {
        Self { config, known: BTreeMap::new() }
    }
}
