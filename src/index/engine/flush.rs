//! Flush: a memtable becomes runs, and log extents with only its rows are removed.

use std::sync::Arc;

use crate::index::engine::chores::Chore;
use crate::index::engine::codec;
use crate::index::engine::commands::Command;
use crate::index::engine::edit::Edit;
use crate::index::engine::extents::ids;
use crate::index::engine::failed::Failed;
use crate::index::engine::merge_rows::MergedRows;
use crate::index::engine::partition::Partition;
use crate::index::engine::sources::Frozen;
use crate::index::engine::write_run::{RunPlan, write_run};
use crate::index::rows::Family;

impl Partition {
    /// Writes all rows committed before the call to runs. Writers go on meanwhile.
    ///
    /// # Errors
    /// [`Failed`]. The flush may be tried again, unless another owner has the partition or it is
    /// unknown which extent its log continues in.
    pub(crate) async fn flush(&self) -> Result<(), Failed> {
        let _one = self.flushing.lock().await;
        let context = &self.core.context;
        // Two rounds if an earlier flush left a frozen memtable.
        for _ in 0..2 {
            let frozen = match self.command(Command::Freeze).await? {
                Ok(frozen) => frozen,
                Err(failed) => return Err(self.not_flushed(failed)),
            };
            let Some(Frozen { tables, through }) = frozen else { break };
            let sources = self.core.published().sources;
            let mut runs = Vec::new();
            if let Err(failed) = self.reserve_for_a_flush(tables.families()).await {
                return Err(self.not_flushed(failed));
            }
            for family in Family::ALL {
                let merge =
                    MergedRows::of_tables(Arc::clone(&tables), family, through, &self.core.keys);
                let rows_max = codec::wide(tables.len(family));
                let is_bottom = sources.runs(family).is_empty();
                let plan = RunPlan { family, rows_max, is_bottom };
                match write_run(context, self.core.owner(), plan, merge).await {
                    Ok(run) => runs.extend(run),
                    Err(failed) => return Err(self.not_flushed(failed)),
                }
            }
            let install = |answer| Command::Install(Edit::Flushed { through, runs }, answer);
            if let Err(failed) = self.command(install).await? {
                return Err(self.not_flushed(failed));
            }
            context.deps.metrics.flushed();
        }
        self.core.set_full(None);
        if ids::are_few(&self.core.extents) {
            context.chores.add(Chore::Refill(Arc::clone(&self.core.extents)));
        }
        context.wake.notify_one();
        Ok(())
    }

    fn not_flushed(&self, failed: Failed) -> Failed {
        let full = if let Failed::Full(full) = &failed { Some(full.clone()) } else { None };
        self.core.set_full(full);
        failed
    }
}
