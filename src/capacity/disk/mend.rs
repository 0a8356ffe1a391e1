//! Mends a damaged frame with the same frame of another copy. All copies of an extent have the same
//! frames at the same offsets.

#![deny(clippy::indexing_slicing)]

use std::sync::Arc;

use crate::capacity::Error;
use crate::capacity::RawFrame;
use crate::capacity::disk::files::unreadable;
use crate::capacity::disk::store::Store;
use crate::capacity::extent::map::Body;
use crate::capacity::extent::memory::Extent;
use crate::capacity::extent::memory::Status;
use crate::capacity::extent::walk::Found;
use crate::capacity::extent::walk::Walker;
use crate::capacity::units::size;

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mended {
    /// It was damaged, and is intact and durable now.
    Mended,
    /// It is intact.
    Intact,
    /// It is not mended here: it was freed, or the extent takes appends.
    Left,
    /// No frame of the copy can be found: its first page, its map or its file is damaged.
    Lost,
}

impl Store {
    /// Writes a frame of another copy where that of a sealed extent is damaged. Other frames are
    /// not touched, so a crash in between leaves the damage as it is.
    ///
    /// # Errors
    /// [`Error::Corrupt`]: the other frame is damaged too; [`Error::NoSuchExtent`] if the extent was
    /// removed; [`Error::Unreadable`] if the disk does not take the bytes; [`Error::Poisoned`].
    pub(crate) async fn mend(
        &self,
        extent: &Arc<Extent>,
        frame: &RawFrame,
    ) -> Result<Mended, Error> {
        self.health.check()?;
        if frame.verified(extent.id).is_none() {
            return Err(extent.corrupt(frame.offset));
        }
        // Nobody frees, compacts or removes it meanwhile.
        let _changing = extent.changing.lock().await;
        let place = frame.offset..frame.offset + size(frame.bytes.len());
        {
            let state = extent.state();
            if state.status == Status::Removed {
                return Err(extent.missing());
            }
            let is_live = place.end <= state.end && !state.dead.overlaps(&place);
            if !state.slot.sealed || !is_live {
                return Ok(Mended::Left);
            }
        }
        let body = match self.body(extent).await {
            Err(Error::Corrupt { .. } | Error::NoSuchExtent { .. }) => return Ok(Mended::Lost),
            body => body?,
        };
        if is_intact(&body, extent, frame).await {
            return Ok(Mended::Intact);
        }
        // A page that cannot be read may take new bytes. If it does not, other frames go on.
        body.write(frame.offset, &frame.bytes).await.map_err(|error| unreadable(extent, &error))?;
        self.metrics.fsyncs.inc();
        body.file.sync().await.map_err(|error| self.poison("mend", &error))?;
        extent.set_window(None);
        if !is_intact(&body, extent, frame).await {
            return Err(extent.corrupt(frame.offset));
        }
        self.metrics.mended_frames.inc();
        tracing::warn!(
            extent = %extent.id, offset = frame.offset.get(),
            "a damaged frame was mended with that of another copy"
        );
        Ok(Mended::Mended)
    }
}

/// Whether the copy has an intact frame there.
async fn is_intact(body: &Body, extent: &Extent, frame: &RawFrame) -> bool {
    let found = Walker::new(body.clone(), extent.id).examine(frame.offset).await;
    matches!(found, Ok(Found::Frame { .. }))
}
