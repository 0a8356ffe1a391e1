//! Commands of the maintenance, which the committer carries out between two batches.

use std::sync::Arc;

use crate::index::api::Full;
use crate::index::engine::commands::Command;
use crate::index::engine::commit::Committer;
use crate::index::engine::edit::Edit;
use crate::index::engine::failed::Failed;
use crate::index::engine::log::manifest::Manifest;
use crate::index::engine::run::reader::Run;
use crate::index::engine::sources::{Frozen, Sources};
use crate::index::engine::table::Tables;
use crate::index::invariant::Invariant;
use crate::types::Sequence;

/// A flush rolls the log if its newest extent has at least this length, so that the space of the
/// old extents is freed.
const ROLL_BYTES: u64 = 1 << 20;

impl Committer {
    pub(crate) async fn obey(&mut self, command: Command) {
        match command {
            Command::Freeze(answer) => {
                drop(answer.send(self.what_to_flush().await));
            }
            Command::Install(edit, answer) => {
                let installed = self.install(edit).await;
                drop(answer.send(installed));
            }
            Command::Hold(answer) => self.hold(answer).await,
            Command::LeaveLog(log) => self.leave_log(log).await,
            Command::Lose => self.stop_if_lost(&Failed::Fenced),
            Command::StopAfter(violation) => drop(self.stop_violated(violation)),
            #[cfg(test)]
            Command::Break(change) => (change.0)(self),
            Command::SendAway | Command::Stop => {}
        }
    }

    async fn what_to_flush(&mut self) -> Result<Option<Frozen>, Failed> {
        // The runs of a flush could not be installed.
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        match self.freeze() {
            Some(frozen) => frozen.map(Some),
            None => self.pass_over().await.map(|()| None),
        }
    }

    fn freeze(&mut self) -> Option<Result<Frozen, Failed>> {
        if let Some(frozen) = &self.sources.frozen {
            return Some(Ok(frozen.clone()));
        }
        if self.sources.active.is_empty() {
            return None;
        }
        let frozen = Frozen { tables: Arc::clone(&self.sources.active), through: self.sequence };
        let mut sources = Sources::clone(&self.sources);
        sources.active = Arc::new(Tables::new(Arc::clone(&self.core.context.budget)));
        sources.frozen = Some(frozen.clone());
        self.sources = Arc::new(sources);
        Some(self.publish().map(|()| frozen))
    }

    /// Without rows in memory the older log extents are not needed. Their commits may have no rows,
    /// or only rows of partitions that were split off together with this one.
    async fn pass_over(&mut self) -> Result<(), Failed> {
        if self.flushed < self.sequence && self.log.extents().len() > 1 {
            let sources = Arc::clone(&self.sources);
            self.persist_state(&sources, self.sequence).await?;
            self.flushed = self.sequence;
        }
        // The log is trimmed in any case: a crash may have come between the last flush and its
        // trim.
        self.trim().await;
        Ok(())
    }

    /// Makes the new state durable with a manifest, then visible. Replaced runs are released once
    /// no view reads them.
    async fn install(&mut self, edit: Edit) -> Result<(), Failed> {
        let mut sources = Sources::clone(&self.sources);
        let mut flushed = self.flushed;
        let mut left = Vec::new();
        let new = edit.runs();
        match edit {
            Edit::Flushed { through, runs } => {
                let is_frozen = sources.frozen.as_ref().is_some_and(|one| one.through == through);
                self.assert(Invariant::ReplayOnce, is_frozen, || {
                    format!("what was flushed up to {through} is not what is frozen")
                })?;
                sources.frozen = None;
                flushed = through;
                for run in runs {
                    sources.runs_mut(run.family()).insert(0, run);
                }
            }
            Edit::Compacted { family, merged, into } => {
                let runs = sources.runs_mut(family);
                let at = runs.iter().position(|run| merged.contains(&run.extent()));
                let gone = |run: &Arc<Run>| merged.contains(&run.extent());
                left = runs.iter().filter(|run| gone(run)).cloned().collect();
                self.assert(Invariant::AtomicChange, left.len() == merged.len(), || {
                    format!("{} of {} merged runs are there", left.len(), merged.len())
                })?;
                runs.retain(|run| !gone(run));
                if let (Some(at), Some(run)) = (at, into) {
                    runs.insert(at, run);
                }
            }
        }
        let untried = self.failed.is_some();
        new.iter().for_each(|run| run.keep());
        if let Err(failed) = self.persist_state(&sources, flushed).await {
            match failed {
                Failed::Full(_) | Failed::Refused(_) | Failed::Busy(_) => self.retire(&new),
                Failed::Fenced | Failed::Other(_) if untried => self.retire(&new),
                Failed::Fenced | Failed::Other(_) => self.doubtful.extend(new),
            }
            return Err(failed);
        }
        self.flushed = flushed;
        self.sources = Arc::new(sources);
        self.publish()?;
        self.core.runs_are_changed();
        self.retire(&left);
        self.trim().await;
        Ok(())
    }

    /// Releases runs that no manifest names, once no view reads them.
    fn retire(&self, runs: &[Arc<Run>]) {
        runs.iter().for_each(|run| run.retire(&self.core.extents));
    }

    async fn trim(&mut self) {
        if self.failed.is_some() {
            return;
        }
        if let Err(failed) = self.log.trim(self.flushed).await {
            // After a refusal the next flush trims the log.
            tracing::debug!(partition = %self.core.id, ?failed, "the log was not trimmed");
            self.stop_if_lost(&failed);
        }
        self.core.set_log_extents(self.log.extents());
    }

    async fn persist_state(&mut self, sources: &Sources, flushed: Sequence) -> Result<(), Failed> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let manifest = self.manifest(sources, flushed);
        let fits = self.log.check_manifest(&manifest);
        fits.map_err(|violation| self.stop_violated(violation))?;
        let mut doubt = None;
        if self.log.is_open() && self.log.end() < ROLL_BYTES {
            match self.append_state(&manifest).await {
                Ok(()) => return Ok(()),
                Err(Failed::Other(reason)) => doubt = Some(reason),
                Err(Failed::Full(_) | Failed::Refused(_) | Failed::Busy(_) | Failed::Fenced) => {}
            }
        }
        let mut failed = match self.roll(manifest.clone()).await {
            Ok(()) => return Ok(()),
            Err(failed) => failed,
        };
        // If the coordinator refuses, the open extent takes the manifest: a long log may grow a
        // little longer.
        let is_refused = matches!(
            failed,
            Failed::Full(Full::Coordinator(_)) | Failed::Refused(_) | Failed::Busy(_)
        );
        if is_refused && self.log.is_open() {
            match self.append_state(&manifest).await {
                Ok(()) => return Ok(()),
                Err(Failed::Other(reason)) => doubt = Some(reason),
                Err(other) => failed = other,
            }
        }
        self.stop_if_lost(&failed);
        match (failed, doubt) {
            // The manifest may be durable in the open extent.
            (Failed::Full(_) | Failed::Refused(_) | Failed::Busy(_), Some(reason)) => {
                Err(Failed::Other(reason))
            }
            (failed, _) => Err(failed),
        }
    }

    async fn append_state(&mut self, manifest: &Manifest) -> Result<(), Failed> {
        let record = manifest
            .encode()
            .ok_or_else(|| Failed::Refused("a manifest is too large for a record".into()))?;
        self.log.append(record, Sequence::new(0)).await
    }
}
