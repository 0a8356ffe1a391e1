//! Settles the copies of this node that nobody else settles: those that it found open when it
//! started, those whose end was agreed on while it was away, and those whose writer is dead.

use super::At;
use super::ClusterCapacity;
use crate::capacity::CopyInfo;
use crate::capacity::Error;
use crate::capacity::ExtentInfo;
use crate::capacity::ExtentKind;
use crate::capacity::ExtentState;
use crate::types::ExtentId;
use crate::types::Incarnation;

/// What became of the copies of a node.
#[derive(Clone, Debug, Default)]
pub struct Settled {
    /// Copies that were sealed.
    pub sealed: usize,
    /// Copies that are open or wait: their writers live, or the owner of a log decides.
    pub left: usize,
    /// One that could not be sealed now, and why.
    pub failed: Option<(ExtentId, Error)>,
}

impl ClusterCapacity {
    /// Settles the copies of this node. `is_dead` says of a writer that it will not append any
    /// more; if it does, its append is refused and it goes on in another extent.
    ///
    /// The end of a log is agreed on by the owner of its partition alone. Its copies are settled
    /// here after that.
    pub async fn settle_copies(
        &self,
        copies: Vec<ExtentInfo>,
        is_dead: impl Fn(Incarnation) -> bool,
    ) -> Settled {
        let mut settled = Settled::default();
        for info in copies {
            if info.state == ExtentState::Sealed || self.writers.get(info.extent).is_some() {
                continue;
            }
            match self.settle_copy(&info, &is_dead).await {
                Ok(true) => settled.sealed += 1,
                Ok(false) => settled.left += 1,
                // It is removed when its record is followed.
                Err(Error::NoSuchExtent { .. }) => {}
                Err(error) => settled.failed = Some((info.extent, error)),
            }
        }
        settled
    }

    /// Whether the copy was sealed.
    async fn settle_copy(
        &self,
        info: &ExtentInfo,
        is_dead: impl Fn(Incarnation) -> bool,
    ) -> Result<bool, Error> {
        let found = self.find(info.extent).await?;
        let is_recorded = found.record.length(info.extent).is_some();
        let is_dead = is_dead(found.record.writer());
        if !is_recorded && !is_dead && info.state == ExtentState::Open {
            return Ok(false);
        }
        let is_ours_to_decide = is_dead && info.kind == ExtentKind::Data;
        let copies = self.copies_at(&self.reachable(&found.record), info.extent).await;
        let is_sealed = |(_, copy): &(At, CopyInfo)| copy.state == ExtentState::Sealed;
        if !is_recorded && !is_ours_to_decide && !copies.iter().any(is_sealed) {
            return Ok(false);
        }
        // A copy answers to no lower epoch than its own.
        let highest = copies.iter().map(|(_, copy)| copy.epoch).max();
        self.agree(found, highest.unwrap_or(info.epoch), None).await?;
        Ok(true)
    }
}
