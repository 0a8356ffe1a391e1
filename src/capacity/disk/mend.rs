//! Mends damaged frames with the same frames of another copy. All copies of an extent have the same
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
use crate::capacity::units::size;
use crate::types::ExtentOffset;

/// What became of some frames, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mended {
    /// How many were damaged, and are intact and durable now.
    pub frames: u64,
    /// Where the first of them starts that was intact behind the last damaged one.
    pub intact_at: Option<ExtentOffset>,
    /// How many are damaged, and the disk does not take their bytes.
    pub failed: u64,
    /// No frame of the copy can be found: its first page, its map or its file is damaged.
    pub is_lost: bool,
}

impl Store {
    /// Writes frames of another copy where those of a sealed extent are damaged. Other frames are
    /// not touched, so a crash in between leaves damage where there was damage. Frames that were
    /// freed are left.
    ///
    /// # Errors
    /// [`Error::Corrupt`]: one of the other frames is damaged too; [`Error::NoSuchExtent`] if the
    /// extent was removed; [`Error::Poisoned`] if the disk was poisoned before.
    pub(crate) async fn mend(
        &self,
        extent: &Arc<Extent>,
        frames: &[RawFrame],
    ) -> Result<Mended, Error> {
        if let Some(wrong) = frames.iter().find(|frame| frame.verified(extent.id).is_none()) {
            return Err(extent.corrupt(wrong.offset));
        }
        // Nobody frees, compacts or removes it meanwhile.
        let _changing = extent.changing.lock().await;
        self.health.check()?;
        if extent.state().status == Status::Removed {
            return Err(extent.missing());
        }
        let body = match self.body(extent).await {
            Err(Error::Corrupt { .. } | Error::NoSuchExtent { .. }) => {
                return Ok(Mended { is_lost: true, ..Mended::default() });
            }
            body => body?,
        };
        let (mut done, mut written) = (Mended::default(), Vec::new());
        for frame in frames.iter().filter(|frame| may_be_mended(extent, frame)) {
            if is_intact(&body, extent, frame).await {
                done.intact_at = done.intact_at.or(Some(frame.offset));
                continue;
            }
            done.intact_at = None;
            // A page that cannot be read may take new bytes. If it does not, others may.
            match body.write(frame.offset, &frame.bytes).await {
                Ok(()) => written.push(frame),
                Err(error) => {
                    let error = unreadable(extent, &error);
                    tracing::debug!(%error, "a damaged frame cannot be written");
                    done.failed += 1;
                }
            }
        }
        // A replay may hold what was there before.
        extent.set_window(None);
        if written.is_empty() {
            return Ok(done);
        }
        {
            let _one = extent.syncing.lock().await;
            self.health.check()?;
            self.metrics.fsyncs.inc();
            // What is read then comes from the device. Nothing else is unwritten in the file of a
            // sealed extent, so a place that the device refuses is no reason to poison the disk.
            if let Err(error) = body.file.drop_cache().await {
                tracing::error!(extent = %extent.id, %error, "mended frames are not on the disk");
                done.failed += size(written.len());
                return Ok(done);
            }
        }
        for frame in written {
            if is_intact(&body, extent, frame).await {
                done.frames += 1;
            } else {
                done.failed += 1;
            }
        }
        self.metrics.mended_frames.inc_by(done.frames);
        Ok(done)
    }
}

/// Whether a frame lies in a sealed extent, and was not freed.
fn may_be_mended(extent: &Extent, frame: &RawFrame) -> bool {
    let place = frame.offset..frame.offset + size(frame.bytes.len());
    let state = extent.state();
    state.slot.sealed && place.end <= state.end && !state.dead.overlaps(&place)
}

/// Whether the copy has an intact frame there. Nothing else is read: the damage may be near.
async fn is_intact(body: &Body, extent: &Extent, frame: &RawFrame) -> bool {
    let read = body.read(frame.offset, size(frame.bytes.len())).await;
    let read = read.map(|bytes| RawFrame { offset: frame.offset, bytes });
    read.is_ok_and(|here| here.verified(extent.id).is_some())
}
