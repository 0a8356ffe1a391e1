//! Makes the record of a batch durable: in the open extent of the log, else in a new one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::coordinator::Reason;
use crate::index::api::Full;
use crate::index::engine::commit::Committer;
use crate::index::engine::failed::Failed;
use crate::types::Sequence;

/// How often a record is appended elsewhere, in a cluster, when members fail.
const TRIES_ELSEWHERE: usize = 4;
/// No further try begins after this time: meanwhile nothing else is committed.
const TRY_MAX: Duration = Duration::from_secs(4);
/// The pause before the next try: a node that was just found to fail is passed over then.
const TRY_PAUSE: Duration = Duration::from_millis(100);

impl Committer {
    /// Appends a record. If that fails, tries again in a new extent, whose link leaves out the
    /// failed append. A failure says that nothing was written only if that holds for all tries.
    pub(super) async fn persist(&mut self, record: Bytes, highest: Sequence) -> Result<(), Failed> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let mut first = Failed::Full(Full::Disks);
        if self.log.is_open() {
            match self.append(record.clone(), highest).await {
                Ok(()) => return Ok(()),
                Err(failed) => first = failed,
            }
            if self.failed.is_some() {
                return Err(first);
            }
        }
        let failed = match first {
            Failed::Fenced => Failed::Fenced,
            Failed::Full(_) | Failed::Refused(_) | Failed::Busy(_) | Failed::Other(_) => {
                match self.persist_elsewhere(record, highest, &mut first).await {
                    Ok(()) => return Ok(()),
                    Err(failed) => failed,
                }
            }
        };
        let failure = match (first, failed) {
            // Another owner has the partition and perhaps the record of an earlier try. The callers
            // must not try again there as if nothing had been written.
            (Failed::Other(reason), Failed::Fenced) => {
                self.stop_after(&Failed::Fenced);
                return Err(Failed::Other(reason));
            }
            (_, Failed::Fenced) => Failed::Fenced,
            (
                Failed::Full(_) | Failed::Refused(_) | Failed::Busy(_),
                unknown @ Failed::Other(_),
            ) if self.log.doubt().is_some() => {
                // The outcome of the roll before the record is unknown. The record was certainly
                // not written, so its writes may wait until the partition is opened again.
                self.stop_if_lost(&unknown);
                return Err(Failed::Fenced);
            }
            // The callers may get an error that says "nothing was written" only if that holds for
            // all tries.
            (Failed::Other(reason), _) | (_, Failed::Other(reason)) => Failed::Other(reason),
            (_, failed) => failed,
        };
        self.stop_if_lost(&failure);
        Err(failure)
    }

    /// Moves the log and appends there. In a cluster the members of the new extent may fail in
    /// their turn, so it is tried several times. Returns the last failure; `before` becomes that of
    /// a try after which the record may be there.
    async fn persist_elsewhere(
        &mut self,
        record: Bytes,
        highest: Sequence,
        before: &mut Failed,
    ) -> Result<(), Failed> {
        let context = &self.core.context;
        let (clock, is_cluster) = (Arc::clone(&context.deps.env.clock), context.has_leases());
        let mut tries = if is_cluster { TRIES_ELSEWHERE } else { 1 };
        let until = clock.monotonic() + TRY_MAX;
        loop {
            tracing::debug!(
                partition = %self.core.id, failed = ?before,
                "an append failed; the log moves to a new extent"
            );
            let Err(failed) = self.roll_and_append(record.clone(), highest).await else {
                return Ok(());
            };
            tries -= 1;
            let next = clock.monotonic() + TRY_PAUSE;
            let is_over = self.failed.is_some()
                || self.log.doubt().is_some()
                || self.rolls.may_try(next).is_err()
                || next >= until;
            let passes = matches!(failed, Failed::Refused(_) | Failed::Busy(_) | Failed::Other(_));
            if is_over || !passes || tries == 0 {
                tracing::debug!(partition = %self.core.id, ?before, ?failed, "it was not appended");
                return Err(failed);
            }
            if matches!(failed, Failed::Other(_)) && !matches!(before, Failed::Other(_)) {
                *before = failed;
            }
            clock.sleep(TRY_PAUSE).await;
        }
    }

    /// Moves the log to a new extent, whose link leaves out a record of unknown outcome, and
    /// appends there.
    async fn roll_and_append(&mut self, record: Bytes, highest: Sequence) -> Result<(), Failed> {
        let manifest = self.manifest_now();
        self.roll(manifest).await?;
        self.append(record, highest).await
    }

    /// Appends a record once.
    async fn append(&mut self, record: Bytes, highest: Sequence) -> Result<(), Failed> {
        let appended = self.log.append(record, highest).await;
        if !self.core.context.has_leases() {
            return appended;
        }
        // What one of several members refuses, others may have taken, and then the next owner finds
        // it. A caller that sends its write to that owner must not have it done twice, and one that
        // gives it up must not free its bytes.
        match appended {
            Err(Failed::Fenced) => {
                self.stop_after(&Failed::Fenced);
                let reason = "another owner has fenced the log, and may have the record";
                Err(Failed::Other(reason.into()))
            }
            Err(Failed::Full(full)) => Err(Failed::Other(Reason::full(full.to_string()))),
            appended => appended,
        }
    }
}
