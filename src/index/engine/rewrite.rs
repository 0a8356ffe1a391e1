//! Rewrites the logs and runs of a partition, so that they hold only the newest values of rows with
//! secrets.
//!
//! This is done once in the life of a store, after the secrets that an older release wrote were
//! sealed. Until then logs and runs still hold the plain values, although no read returns them.

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
    /// Moves the log to a new extent, and merges all runs that may hold rows of accounts or pending
    /// copies. Returns false if a change of the map interrupted it or the partition stopped.
    ///
    /// # Errors
    /// [`Failed`]. Steps already done stay done.
    pub(crate) async fn rewrite_secret_rows(&self) -> Result<bool, Failed> {
        // The first commit of an owner is in an extent of its own, so older extents can be dropped.
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
            // A single run is rewritten too: it may be older than the sealed values.
            if all && !runs.is_empty() && !self.merge_runs(family, runs, true).await? {
                return Ok(false);
            }
        }
        Ok(self.core.may_write_log())
    }
}

/// Whether a run may hold rows of accounts, which sort before all others.
fn may_hold_accounts(run: &Arc<Run>) -> bool {
    let (accounts, table) = (AccountId::new(0), ContainerId::new(0));
    let range = RoutingKey::container_range(accounts, table);
    let end = range.high();
    run.blocks().next().is_none_or(|first| end.is_none_or(|end| first < end.as_bytes()))
}
