//! What is remembered between ticks.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use crate::manager::policy::average::Average;
use crate::manager::policy::config::PolicyConfig;
use crate::types::HostId;
use crate::types::PartitionId;

/// Remembers of each partition what one tick does not show.
#[derive(Debug, Default)]
pub struct Policy {
    pub(super) config: PolicyConfig,
    pub(super) known: BTreeMap<PartitionId, Known>,
}

/// What is known of one partition.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) since: Duration,
    pub(super) hot: u32,
    /// What hosts are compared by: a tick alone shows mostly chance when requests are few.
    pub(super) average: Average,
    /// Since when it has been so cold that it may be merged.
    pub(super) cold: Option<Duration>,
    /// When it was last told to move, and where to.
    pub(super) moved: Option<(Duration, HostId)>,
    /// When it was last asked to be split for its size.
    pub(super) large: Option<Duration>,
    /// When it was last planned to be replaced by others; it is still there if that failed.
    pub(super) tried: Option<Duration>,
    /// The highest samples of the last ticks in which there were enough to tell, the oldest first.
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

    /// Whether that was less than `pause` ago: what fails again and again must not keep others
    /// waiting.
    pub(super) fn was_tried(&self, now: Duration, pause: Duration) -> bool {
        self.tried.is_some_and(|at| now.saturating_sub(at) < pause)
    }
}

impl Policy {
    /// A policy that has seen nothing.
    #[must_use]
    pub fn new(config: PolicyConfig) -> Self {
        Self { config, known: BTreeMap::new() }
    }
}
