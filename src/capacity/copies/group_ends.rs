//! The ends that are recorded in the records of groups.

use std::sync::Arc;

use async_trait::async_trait;

use super::EndRecord;
use super::Recorded;
use crate::capacity::groups;
use crate::capacity::groups::Refusal;
use crate::coordinator::Coordinator;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Generation;

/// The ends of extents, as the records of their groups have them.
#[derive(Clone, Debug)]
pub struct GroupEnds {
    coordinator: Arc<dyn Coordinator>,
}

impl GroupEnds {
    /// The ends in this coordinator.
    #[must_use]
    pub const fn new(coordinator: Arc<dyn Coordinator>) -> Self {
        Self { coordinator }
    }
}

#[async_trait]
impl EndRecord for GroupEnds {
    async fn recorded(&self, extent: ExtentId) -> Result<Recorded, String> {
        let group = extent.group();
        let read = groups::read(self.coordinator.as_ref(), group).await;
        let at = read.map_err(|error| error.to_string())?;
        let record = at.ok_or_else(|| format!("there is no group {group}"))?.record;
        if record.is_gone(extent) {
            return Err(format!("extent {extent} is gone"));
        }
        let members_changed = record.generation() != Generation::FIRST;
        let members = record.members().len();
        Ok(Recorded { end: record.length(extent), members, members_changed })
    }

    async fn record(&self, extent: ExtentId, end: ExtentOffset) -> Result<ExtentOffset, String> {
        let group = extent.group();
        let settled = |record: &groups::GroupRecord| record.settled(extent, end);
        match groups::change(self.coordinator.as_ref(), group, &[], settled).await {
            Ok(_) => Ok(end),
            Err(groups::Error::Refused { refusal: Refusal::Settled { end, .. }, .. }) => Ok(end),
            Err(error) => Err(error.to_string()),
        }
    }
}
