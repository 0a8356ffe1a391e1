//! Extents that a start finds open. A single node seals them: it has the only copy, and the writer
//! ended with the process before. A node of a cluster closes its copies: other nodes have copies
//! too, and all must agree on the length before they are sealed (ADR 0050).

#![deny(clippy::indexing_slicing)]

use std::sync::Arc;

use crate::capacity::OpenExtents;
use crate::capacity::disk::open_error::OpenError;
use crate::capacity::disk::recover::FoundExtent;
use crate::capacity::disk::recover::OpenExtent;
use crate::capacity::disk::recover::Recovery;
use crate::capacity::extent::header::DATA_AT;
use crate::capacity::extent::header::Slot;
use crate::capacity::extent::header::encode_padding;
use crate::capacity::extent::header::file_offset;
use crate::capacity::extent::header::padding_at;
use crate::capacity::extent::map::Body;
use crate::capacity::extent::memory::Extent;
use crate::capacity::extent::walk::Reach;
use crate::capacity::extent::walk::Walker;
use crate::capacity::units::PAGE;
use crate::env::DiskError;
use crate::types::Crc32c;
use crate::types::ExtentOffset;

impl Recovery<'_> {
    /// Seals or closes an open extent. `known_end` is the end of its last record in the journal.
    pub(super) async fn end_open(
        &self,
        open: OpenExtent<'_>,
        known_end: ExtentOffset,
    ) -> Result<FoundExtent, OpenError> {
        match self.opening.config.open_extents {
            OpenExtents::Seal => self.seal(open, known_end).await,
            OpenExtents::Close => self.close(open, known_end).await,
        }
    }

    /// Seals or closes an open extent whose first page was damaged.
    pub(super) async fn end_rescued(
        &self,
        open: OpenExtent<'_>,
        reach: Reach,
    ) -> Result<FoundExtent, OpenError> {
        match self.opening.config.open_extents {
            OpenExtents::Seal => self.seal_at(open, reach).await,
            OpenExtents::Close => self.close_at(open, reach, true).await,
        }
    }

    /// Seals an open extent where its frames end.
    async fn seal(
        &self,
        open: OpenExtent<'_>,
        known_end: ExtentOffset,
    ) -> Result<FoundExtent, OpenError> {
        let id = open.id;
        let mut walker = Walker::new(Body::plain(Arc::clone(open.file)), id);
        let mut reach = walker.follow(open.slot.len).await.map_err(|e| self.failed(e))?;
        while reach.end < known_end {
            // The journal proves that the bytes before `known_end` were durable, so this is damage
            // and not a torn tail. The frames that follow are kept. Reads of the damaged frame
            // fail.
            tracing::error!(
                extent = %id, offset = reach.end.get(),
                "acknowledged frames are damaged; reads of them fail, and the frames after them \
                 are kept"
            );
            let from = match walker.search(reach.end + 1..known_end).await {
                Ok(found) => found.unwrap_or(known_end),
                Err(error) => return Err(self.failed(error)),
            };
            let rest = walker.follow(from).await.map_err(|e| self.failed(e))?;
            reach.end = rest.end.max(from);
            reach.padding.extend(rest.padding);
        }
        self.seal_at(open, reach).await
    }

    /// Seals an extent where its frames end.
    async fn seal_at(&self, open: OpenExtent<'_>, reach: Reach) -> Result<FoundExtent, OpenError> {
        let OpenExtent { id, kind, slot, file } = open;
        let Reach { end, padding, .. } = reach;
        let list = encode_padding(&padding);
        let mut sealed = Slot {
            sequence: slot.sequence + 1,
            epoch: slot.epoch,
            sealed: true,
            incomplete: false,
            len: end,
            padding: u32::try_from(padding.len()).unwrap_or(0),
            padding_crc: Crc32c::of(&list),
            ..slot
        };
        self.with_room(PAGE, || file.set_len(file_offset(end).get())).await?;
        let work = async {
            if sealed.padding > 0 {
                match file.write_at(padding_at(end).get(), vec![list]).await {
                    // The list only serves accounting, and a full disk must start.
                    Err(DiskError::Full) => {
                        (sealed.padding, sealed.padding_crc) = (0, Crc32c::EMPTY);
                    }
                    other => other?,
                }
            }
            file.sync().await?;
            file.write_sync(sealed.offset().get(), vec![sealed.encode()]).await?;
            // The other slot gets the seal too, so that damage to one slot does not make the extent
            // open again.
            sealed.sequence += 1;
            file.write_at(sealed.offset().get(), vec![sealed.encode()]).await
        };
        work.await.map_err(|e| self.failed(e))?;
        self.opening.metrics.fsyncs.inc_by(2);
        tracing::info!(
            extent = %id, %end,
            "extent sealed at the start, because its writer has ended"
        );
        Ok(FoundExtent { extent: Extent::new(id, kind, sealed), dead: padding })
    }

    /// Closes an open copy where its sound prefix ends. `known_end` is the end of its last record
    /// in the journal.
    async fn close(
        &self,
        open: OpenExtent<'_>,
        known_end: ExtentOffset,
    ) -> Result<FoundExtent, OpenError> {
        let mut walker = Walker::new(Body::plain(open.file.clone()), open.id);
        let reach = walker.follow(open.slot.len).await.map_err(|e| self.failed(e))?;
        let len = open.file.len().await.map_err(|e| self.failed(e))?;
        let rest = reach.end + 1..ExtentOffset::new(len.saturating_sub(DATA_AT));
        let later = known_end > reach.end
            || walker.search(rest).await.map_err(|e| self.failed(e))?.is_some();
        self.close_at(open, reach, later).await
    }

    /// Closes an open copy at the end of `reach`. With `is_more`, bytes beyond it are known to have
    /// been written. The journal, which may have the only proof of that, is released afterwards, so
    /// the copy is marked as incomplete.
    async fn close_at(
        &self,
        open: OpenExtent<'_>,
        reach: Reach,
        is_more: bool,
    ) -> Result<FoundExtent, OpenError> {
        let OpenExtent { id, kind, mut slot, file } = open;
        self.opening.metrics.fsyncs.inc();
        file.sync().await.map_err(|e| self.failed(e))?;
        if is_more && !slot.incomplete {
            slot = Slot { sequence: slot.sequence + 1, incomplete: true, ..slot };
            self.opening.metrics.fsyncs.inc();
            let written = file.write_sync(slot.offset().get(), vec![slot.encode()]).await;
            written.map_err(|e| self.failed(e))?;
        }
        let Reach { end, padding, .. } = reach;
        tracing::info!(
            extent = %id, %end, incomplete = slot.incomplete,
            "copy closed at the start; it takes no appends until its length is agreed upon"
        );
        let extent = Extent::closed(id, kind, slot, end);
        extent.state().padding.clone_from(&padding);
        Ok(FoundExtent { extent, dead: padding })
    }
}
