//! Stored bytes that no row names yet.

use std::sync::Arc;

use bytes::Bytes;

use crate::capacity::Capacity;
use crate::env::Tasks;
use crate::frontend::write::budget::BodyReservation;
use crate::index::NewContent;
use crate::index::inflight::WriteNote;
use crate::types::ExtentId;
use crate::types::KeyedNonce;
use crate::types::Location;

/// Durable bytes that a row will name. They are freed when this is dropped before
/// [`Stored::committing`], so that a request that fails leaves no garbage.
#[derive(Debug)]
pub struct Stored {
    inline: Bytes,
    /// The memory of `inline`.
    _held: Arc<[BodyReservation]>,
    pub(super) locations: Vec<Location>,
    /// Keep the audit from freeing the bytes until the row is committed.
    pub(super) notes: Vec<WriteNote>,
    free: Option<Freeing>,
    /// The nonce of content that is stored as authenticated chunks.
    nonce: Option<KeyedNonce>,
}

/// The means to free abandoned bytes in extents.
#[derive(Debug)]
struct Freeing {
    capacity: Arc<dyn Capacity>,
    tasks: Tasks,
}

impl Stored {
    /// Bytes that go into the row.
    pub(super) const fn inline(bytes: Bytes, held: Arc<[BodyReservation]>) -> Self {
        Self {
            inline: bytes,
            _held: held,
            locations: Vec::new(),
            notes: Vec::new(),
            free: None,
            nonce: None,
        }
    }

    /// Bytes in extents.
    pub(super) fn in_extents(
        locations: Vec<Location>,
        notes: Vec<WriteNote>,
        capacity: Arc<dyn Capacity>,
        tasks: Tasks,
    ) -> Self {
        Self {
            inline: Bytes::new(),
            _held: Arc::default(),
            locations,
            notes,
            free: Some(Freeing { capacity, tasks }),
            nonce: None,
        }
    }

    /// The extents the bytes lie in.
    pub(super) fn extents(&self) -> Vec<ExtentId> {
        self.notes.iter().map(WriteNote::extent).collect()
    }

    /// The content of the row.
    #[must_use]
    pub fn content(&self) -> NewContent {
        let content = if self.free.is_none() {
            NewContent::Inline(self.inline.clone())
        } else {
            NewContent::Stored(self.locations.clone())
        };
        match self.nonce {
            Some(nonce) => NewContent::Authenticated(nonce, Box::new(content)),
            None => content,
        }
    }

    /// Whether they are authenticated chunks.
    pub(crate) const fn is_encrypted(&self) -> bool {
        self.nonce.is_some()
    }

    /// The same bytes; with a nonce they are authenticated chunks.
    pub(crate) fn under(mut self, nonce: Option<KeyedNonce>) -> Self {
        self.nonce = nonce;
        self
    }

    /// From here on a row may name the bytes. They are freed only if the index refuses the row.
    #[must_use]
    pub fn committing(mut self) -> Committing {
        let free = self.free.take();
        Committing { stored: self, free }
    }
}

/// Bytes whose row is being committed. They stay when this is dropped, whatever the outcome for the
/// row.
#[derive(Debug)]
pub struct Committing {
    stored: Stored,
    free: Option<Freeing>,
}

impl Committing {
    /// The row was refused, so no row will ever name the bytes: they are freed.
    pub fn refused(mut self) {
        self.stored.free = self.free.take();
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        let Some(Freeing { capacity, tasks }) = self.free.take() else { return };
        let locations = std::mem::take(&mut self.locations);
        let notes = std::mem::take(&mut self.notes);
        if locations.is_empty() {
            return;
        }
        // Best effort: after a crash or with a full queue, the audit frees them.
        drop(tasks.spawn_part("free abandoned bytes", async move {
            if let Err(error) = capacity.free(&locations).await {
                tracing::debug!(%error, "abandoned bytes were not freed; the audit will free them");
            }
            drop(notes);
        }));
    }
}
