//! A group commit in the making.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::index::api::Error;
use crate::index::api::WriteId;
use crate::index::api::WriteReply;
use crate::index::engine::answers::{Answers, KeptAnswer, Known};
use crate::index::engine::commands::Answer;
use crate::index::engine::failed::Failed;
use crate::index::engine::log::record::BatchBuilder;
use crate::index::engine::view::Snapshot;
use crate::index::engine::watches::{ChangedRow, Outcome, Watching};
use crate::index::invariant::Violation;
use crate::rpc::NodeIdentity;
use crate::types::Sequence;
use crate::types::Timestamp;

/// A group commit in the making: all writes of it become durable with one append.
pub(super) struct GroupCommit {
    /// The record for the log.
    pub(super) rows: BatchBuilder,
    /// The number of its last commit.
    pub(super) last: Sequence,
    /// Its rows, which are in the active memtable already.
    pub(super) added: Vec<ChangedRow>,
    /// The answer to each write, to be sent once the commit is durable.
    pub(super) answers: Vec<(Answer, Result<WriteReply, Error>)>,
    /// Answers that are to be kept, by process and number. They become durable with the commit.
    pub(super) kept: BTreeMap<(NodeIdentity, u64), KeptAnswer>,
    /// Watches of the writes that were evaluated ahead. They are kept until the batch is visible,
    /// so that [`Watches::settled`](crate::index::engine::watches::Watches::settled) considers the
    /// times of these writes.
    pub(super) watches: Vec<Arc<Watching>>,
    /// The first invariant violation that was found.
    pub(super) sound: Result<(), Violation>,
}

impl GroupCommit {
    /// An empty group commit that follows commit `sequence`, with room for rows of so many bytes.
    pub(super) fn after(sequence: Sequence, bytes: usize) -> Self {
        Self {
            rows: BatchBuilder::new(sequence.plus(1), bytes),
            last: sequence,
            added: Vec::new(),
            answers: Vec::new(),
            kept: BTreeMap::new(),
            watches: Vec::new(),
            sound: Ok(()),
        }
    }

    /// Notes the invariant violation that a read of the view found.
    pub(super) fn note(&mut self, view: &Snapshot) {
        if let (Ok(()), Some(violation)) = (&self.sound, view.violation.get()) {
            self.sound = Err(violation.clone());
        }
    }

    /// What is known about a numbered write, before the commit and in it.
    pub(super) fn known(&self, id: &WriteId, durable: &mut Answers) -> Known {
        match self.kept.get(&(id.process, id.number)) {
            // It is sent when the commit is durable, as the other answers are.
            Some(kept) => Known::Answered(kept.reply()),
            None => durable.look_up(id),
        }
    }

    /// Keeps the answer to a numbered write.
    pub(super) fn keep(&mut self, kept: Option<KeptAnswer>) {
        self.kept.extend(kept.map(|kept| ((kept.process, kept.number), kept)));
    }

    /// Encodes the record; `time` is that of the last commit. `None` if it is too large.
    pub(super) fn finish(&mut self, time: Timestamp) -> Option<Bytes> {
        let kept: Vec<KeptAnswer> = self.kept.values().cloned().collect();
        self.rows.finish_with(time, &kept)
    }

    /// Sends the answers: the commit is durable and published.
    pub(super) fn answer(self) {
        for (to, reply) in self.answers {
            // A caller that has left needs no answer.
            drop(to.send(reply.map(Outcome::Done)));
        }
    }

    /// As [`Self::answer`], if nothing was appended: the answers are those of reads.
    pub(super) fn answer_as_reads(self) {
        for (to, reply) in self.answers {
            drop(to.send(Ok(Outcome::Read(reply))));
        }
    }

    /// Answers every write with the failure, refused ones too: a refusal may depend on rows that
    /// did not become durable.
    pub(super) fn refuse(self, failed: &Failed) {
        for (to, _) in self.answers {
            drop(to.send(Err(failed.clone().into())));
        }
    }
}
