//! Rewriting: a partition's files keep nothing but the newest values of rows with secrets.
//!
//! Runs once in the life of a store, after the secrets of an older release were sealed: until then
//! their plain values are in logs and in runs, although no read shows them.

use std::sync::Arc;

use crate::index::api::Write;
use crate::index::engine::failed::Failed;
use crate::index::engine::partition::Partition;
use crate::index::engine::run::reader::Run;
use crate::index::rows::Family;
use crate::types::AccountId;
use crate::types::ContainerId;
use crate::types::RoutingKey;

impl Partition {
    /// Leaves the log for a new extent, and merges all runs that may hold rows of accounts or
    /// pending copies; false when a change of the map came between, or the partition stopped.
    ///
    /// # Errors
    /// [`Failed`]; what was done stays done.
    pub(crate) async fn rewrite_secret_rows(&self) -> Result<bool, Failed> {
        // The first commit of an owner is in an extent of its own: what is older can go.
        let proven = self.write(self.core.epoch, Write::Prove).await;
        proven.map_err(|error| Failed::Other(error.to_string().into()))?;
        self.flush().await?;
        for family in [Family::Main, Family::Work] {
            let _one = self.compacting.lock().await;
            if !self.core.may_write_log() {
                return Ok(false);
            }
            let sources = self.core.published().sources;
            let runs = sources.runs(family);
            let all = family == Family::Work || runs.iter().any(may_hold_accounts);
            // One run too: it may have been written before the newer values were.
            if all && !runs.is_empty() && !self.merge(family, runs, true).await? {
                return Ok(false);
            }
        }
        Ok(self.core.may_write_log())
    }
}

/// Whether a run may hold rows of accounts, which stand before all others.
fn may_hold_accounts(run: &Arc<Run>) -> bool {
    let (accounts, table) = (AccountId::new(0), ContainerId::new(0));
    let range = RoutingKey::container_range(accounts, table);
    let end = range.high();
    run.blocks().next().is_none_or(|first| end.is_none_or(|end| first < end.as_bytes()))
}
