//! Writes a large body into an extent: deferred frames of 1 MiB, and one sync at the end.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use crate::capacity;
use crate::capacity::Durability;
use crate::capacity::FRAME_PAYLOAD_MAX;
use crate::capacity::merge;
use crate::env::waiting;
use crate::frontend::errors;
use crate::frontend::write::BodyBudget;
use crate::frontend::write::BodyMemory;
use crate::frontend::write::BodyReservation;
use crate::frontend::write::extent::AppendedPayloads;
use crate::frontend::write::extent::ExtentWriter;
use crate::frontend::write::extent::NotStored;
use crate::frontend::write::extent::WriterContext;
use crate::frontend::write::lane::Lane;
use crate::frontend::write::stored::Stored;
use crate::protocol::model::Refusal;
use crate::types::request::Stage;

#[expect(clippy::cast_possible_truncation, reason = "one MiB")]
const FRAME: usize = FRAME_PAYLOAD_MAX as usize;

/// Writes one large body. Its bytes are freed when it is dropped before [`StreamWriter::finish`].
#[derive(Debug)]
pub struct StreamWriter {
    shared: Arc<WriterContext>,
    lane: Arc<Lane>,
    /// Pieces of less than a frame.
    pending: Vec<Bytes>,
    pending_len: usize,
    /// The memory of `pending`.
    held: Vec<BodyReservation>,
    budget: BodyBudget,
    /// All memory of its body.
    memory: Arc<BodyMemory>,
    written: Stored,
}

impl StreamWriter {
    pub(super) fn new(
        shared: Arc<WriterContext>,
        lane: Arc<Lane>,
        budget: BodyBudget,
        memory: Arc<BodyMemory>,
    ) -> Self {
        lane.users.fetch_add(1, Ordering::Relaxed);
        let written = shared.stored(Vec::new(), Vec::new());
        Self {
            shared,
            lane,
            pending: Vec::new(),
            pending_len: 0,
            held: Vec::new(),
            budget,
            memory,
            written,
        }
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// `InsufficientStorage` when the disks are full, `InternalError` when they fail, `ServerBusy`
    /// when bodies of other requests take all memory.
    pub async fn push(&mut self, mut bytes: Bytes) -> Result<(), Refusal> {
        self.held.push(self.budget.take(&self.memory, bytes.len())?);
        while self.pending_len + bytes.len() >= FRAME {
            let fits = bytes.split_to(FRAME - self.pending_len);
            self.pending.push(fits);
            self.append().await?;
            // The rest of this piece is not counted again: it is less than a frame.
        }
        if !bytes.is_empty() {
            self.pending_len += bytes.len();
            self.pending.push(bytes);
        }
        Ok(())
    }

    /// Makes everything durable.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub async fn finish(mut self) -> Result<Stored, Refusal> {
        if self.pending_len > 0 {
            self.append().await?;
        }
        for extent in self.written.extents() {
            // Pinned here: a future that is moved into another one takes its space twice.
            let flushed = pin!(ExtentWriter::flush(&self.shared, extent));
            let flushed = waiting(self.shared.env.clock.as_ref(), Stage::Journal, flushed).await;
            flushed.map_err(|e| errors::from_capacity(&e))?;
        }
        let empty = self.shared.stored(Vec::new(), Vec::new());
        Ok(std::mem::replace(&mut self.written, empty))
    }

    /// Appends in a task of its own. If an append were cancelled, the lane's writer would not know
    /// the end of its extent, and the bytes would be lost until the audit. When the request is
    /// cancelled, the task ends and the bytes are freed.
    async fn append(&mut self) -> Result<(), NotStored> {
        let payload = std::mem::take(&mut self.pending);
        self.pending_len = 0;
        let held = std::mem::take(&mut self.held);
        let (shared, lane) = (Arc::clone(&self.shared), Arc::clone(&self.lane));
        let appending = self.shared.env.tasks.spawn_part("append body", async move {
            let mut writer = lane.writer.lock().await;
            let AppendedPayloads { locations, note } =
                writer.append(vec![payload], Durability::Deferred).await?;
            drop((writer, held));
            Ok::<_, NotStored>(shared.stored(locations, vec![note]))
        });
        let appended = waiting(self.shared.env.clock.as_ref(), Stage::Journal, appending).await;
        let appended = appended.unwrap_or_else(|error| {
            tracing::error!(%error, "the task that appends a body failed");
            Err(capacity::Error::Ended { doing: "append" }.into())
        })?;
        self.written.add(appended);
        Ok(())
    }
}

impl Drop for StreamWriter {
    fn drop(&mut self) {
        self.lane.users.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Stored {
    /// Adds the bytes that follow; contiguous frames become one location.
    fn add(&mut self, mut next: Self) {
        for location in std::mem::take(&mut next.locations) {
            match self.locations.last().and_then(|last| merge(last, &location)) {
                Some(merged) => {
                    self.locations.pop();
                    self.locations.push(merged);
                }
                None => self.locations.push(location),
            }
        }
        for note in std::mem::take(&mut next.notes) {
            if !self.notes.iter().any(|g| g.extent() == note.extent()) {
                self.notes.push(note);
            }
        }
    }
}
