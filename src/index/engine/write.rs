//! The path of a write before the committer: into the queue, or evaluated ahead of its turn.

use std::sync::Arc;

use crate::env::Clock;
use crate::index::api::Error;
use crate::index::api::Write;
use crate::index::api::WriteId;
use crate::index::api::WriteReply;
use crate::index::engine::ahead;
use crate::index::engine::answers::not_carried_out;
use crate::index::engine::partition::{Entry, Partition};
use crate::index::engine::watches::Outcome;
use crate::index::load::Class;
use crate::types::Epoch;

impl Partition {
    /// Queues a write and waits for its commit. A write is refused immediately if the queue is full
    /// or slow. It is refused later if it has waited too long and is not begun; then it is never
    /// carried out.
    ///
    /// # Errors
    /// [`Error`].
    pub(crate) async fn write(
        &self,
        epoch: Epoch,
        write: impl Into<Arc<Write>> + Send,
    ) -> Result<WriteReply, Error> {
        self.write_once(epoch, None, write.into()).await
    }

    /// As [`Self::write`]. A write with a number is carried out once, and its answer is kept: see
    /// [`IndexHost::write_once`](crate::index::api::IndexHost::write_once).
    ///
    /// # Errors
    /// [`Error`].
    pub(crate) async fn write_once(
        &self,
        epoch: Epoch,
        id: Option<WriteId>,
        write: Arc<Write>,
    ) -> Result<WriteReply, Error> {
        if epoch != self.core.epoch || !write.place().is_in(&self.core.keys) {
            return Err(Error::WrongPartition);
        }
        self.core.room().await.map_err(|error| not_carried_out(id, error))?;
        let clock = &self.core.context.deps.env.clock;
        let meter = &self.core.meter;
        meter.note(Class::Write, || clock.monotonic(), || write.place().sample());
        let done = self.carry_out(write, id, clock.as_ref()).await;
        if matches!(done, Err(Error::Overloaded)) {
            meter.refuse();
        }
        done
    }

    async fn carry_out(
        &self,
        write: Arc<Write>,
        id: Option<WriteId>,
        clock: &dyn Clock,
    ) -> Result<WriteReply, Error> {
        let weight = write.weight();
        let waited = self.pass(&write, weight, clock).await?;
        if ahead::is_long(&write, weight) && write.reach().is_some() {
            return self.write_ahead((write, id), waited, clock).await;
        }
        let entry = Entry { write: Arc::clone(&write), id, evaluated: None, weight, waited };
        match self.take_turn(entry, clock).await? {
            Outcome::Done(reply) => Ok(reply),
            Outcome::Read(reply) => {
                self.confirm().await?;
                reply
            }
            Outcome::Again => self.write_ahead((write, id), waited, clock).await,
        }
    }
}
