//! One open data extent and its single writer. It appends at the known end, and rolls to a new
//! extent after an error or when the extent is full.

use std::sync::Arc;

use crate::capacity;
use crate::capacity::AppendRequest;
use crate::capacity::Capacity;
use crate::capacity::Durability;
use crate::capacity::ExtentIds;
use crate::capacity::ExtentKind;
use crate::capacity::Payload;
use crate::env::Env;
use crate::frontend::errors;
use crate::frontend::write::stored::Stored;
use crate::index::InFlight;
use crate::index::inflight::WriteNote;
use crate::protocol::model::Refusal;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;

/// How often an append is tried, each time in another extent.
const TRIES_MAX: usize = 5;

/// Data extents have one writer for their whole life, so their epoch never changes.
const EPOCH: Epoch = Epoch::new(1);

/// Why bytes were not stored.
#[derive(Clone, Debug)]
pub(super) enum NotStored {
    /// The coordinator has no space to record a new extent; the disks may have space for it.
    NoId,
    /// The disks refused.
    Capacity(capacity::Error),
}

impl From<capacity::Error> for NotStored {
    fn from(error: capacity::Error) -> Self {
        Self::Capacity(error)
    }
}

impl From<NotStored> for Refusal {
    fn from(failed: NotStored) -> Self {
        match failed {
            NotStored::NoId => errors::first_disk_full(),
            NotStored::Capacity(error) => errors::from_capacity(&error),
        }
    }
}

/// The state that all writers of the pool share.
#[derive(Debug)]
pub(super) struct WriterContext {
    pub(super) capacity: Arc<dyn Capacity>,
    pub(super) ids: Arc<dyn ExtentIds>,
    pub(super) inflight: InFlight,
    pub(super) env: Env,
    /// An extent that is longer is sealed; logical bytes.
    pub(super) extent_bytes_max: u64,
}

impl WriterContext {
    /// Bytes in extents that no row names yet. They are freed when this is dropped.
    pub(super) fn stored(&self, locations: Vec<Location>, notes: Vec<WriteNote>) -> Stored {
        let (capacity, tasks) = (Arc::clone(&self.capacity), self.env.tasks.clone());
        Stored::in_extents(locations, notes, capacity, tasks)
    }
}

/// An extent that is appended to.
#[derive(Clone, Copy, Debug)]
struct OpenExtent {
    id: ExtentId,
    /// Where the next append begins.
    end: ExtentOffset,
}

/// Payloads that were appended.
#[derive(Debug)]
pub(super) struct AppendedPayloads {
    /// One for each payload.
    pub(super) locations: Vec<Location>,
    /// Keeps the audit away from the extent.
    pub(super) note: WriteNote,
}

/// The writer of one open extent at a time.
#[derive(Debug)]
pub(super) struct ExtentWriter {
    shared: Arc<WriterContext>,
    open: Option<OpenExtent>,
}

impl ExtentWriter {
    pub(super) const fn new(shared: Arc<WriterContext>) -> Self {
        Self { shared, open: None }
    }

    /// Appends payloads; rolls when the current extent refuses. In a cluster the members of the
    /// next one may refuse too, so it is tried several times.
    pub(super) async fn append(
        &mut self,
        payloads: Vec<Payload>,
        durability: Durability,
    ) -> Result<AppendedPayloads, NotStored> {
        if self.open.is_some_and(|open| open.end.get() >= self.shared.extent_bytes_max) {
            self.seal();
        }
        let mut tries = 1;
        loop {
            let error = match self.try_append(payloads.clone(), durability).await {
                Ok(done) => return Ok(done),
                // A full disk refuses a new extent too. The old one is used again when there is
                // space.
                Err(NotStored::Capacity(capacity::Error::Full)) => {
                    return Err(capacity::Error::Full.into());
                }
                Err(NotStored::NoId) => return Err(NotStored::NoId),
                Err(NotStored::Capacity(error)) => error,
            };
            // Reclaim seals an open extent that holds much garbage, and removes it once all of it
            // is garbage.
            let is_sealed = matches!(
                error,
                capacity::Error::Sealed { .. } | capacity::Error::NoSuchExtent { .. }
            );
            if is_sealed {
                tracing::debug!(%error, "the extent is sealed: rolling to a new one");
            } else {
                tracing::warn!(%error, "an append failed: rolling to a new extent");
            }
            self.seal();
            let passes = is_sealed || matches!(error, capacity::Error::NoAnswer { .. });
            if tries == TRIES_MAX || tries > 1 && !passes {
                return Err(error.into());
            }
            tries += 1;
        }
    }

    async fn try_append(
        &mut self,
        payloads: Vec<Payload>,
        durability: Durability,
    ) -> Result<AppendedPayloads, NotStored> {
        let OpenExtent { id: extent, end: offset } = match self.open {
            Some(open) => open,
            None => self.open().await?,
        };
        // Before the first byte: from here on the audit frees nothing of this extent.
        let note = self.shared.inflight.write(extent);
        let request = AppendRequest { extent, epoch: EPOCH, offset, payloads, durability };
        let appended = self.shared.capacity.append(request).await?;
        self.open = Some(OpenExtent { id: extent, end: appended.end });
        Ok(AppendedPayloads { locations: appended.locations, note })
    }

    async fn open(&mut self) -> Result<OpenExtent, NotStored> {
        let extent = self.shared.ids.next_extent(ExtentKind::Data).await.map_err(|error| {
            if error.is_full() {
                return NotStored::NoId;
            }
            tracing::error!(%error, "no extent id could be obtained");
            let (extent, reason) = (ExtentId::new(0), error.to_string());
            capacity::Error::Unreadable { extent, reason }.into()
        })?;
        self.shared.capacity.create(extent, ExtentKind::Data, EPOCH).await?;
        let open = OpenExtent { id: extent, end: ExtentOffset::START };
        self.open = Some(open);
        Ok(open)
    }

    /// Stops using the extent. It is sealed in the background; a restart seals those that were
    /// missed.
    pub(super) fn seal(&mut self) {
        let Some(OpenExtent { id: extent, .. }) = self.open.take() else { return };
        let capacity = Arc::clone(&self.shared.capacity);
        drop(self.shared.env.tasks.spawn_part("seal data extent", async move {
            if let Err(error) = capacity.seal(extent, EPOCH).await {
                tracing::warn!(%error, %extent, "sealing failed; the next start seals it");
            }
        }));
    }

    /// Makes everything appended to `extent` durable.
    pub(super) async fn flush(
        shared: &WriterContext,
        extent: ExtentId,
    ) -> Result<(), capacity::Error> {
        shared.capacity.flush(extent, EPOCH).await
    }
}
