//! A copy that another node's copy completes, and appends that arrive again.

#![deny(clippy::indexing_slicing)]

use std::sync::Arc;

use bytes::Bytes;

use crate::capacity::Error;
use crate::capacity::Extension;
use crate::capacity::ExtentState;
use crate::capacity::disk::append::PlacedAppend;
use crate::capacity::disk::seal::check_epoch;
use crate::capacity::disk::store::Store;
use crate::capacity::extent::frame::Expected;
use crate::capacity::extent::frame::OFFSET_MAX;
use crate::capacity::extent::frame::Placed;
use crate::capacity::extent::memory::Extent;
use crate::capacity::units::offset_up;
use crate::capacity::units::size;
use crate::types::Epoch;
use crate::types::ExtentOffset;

impl Store {
    /// Adds frames of another copy at the end of this one, which is not sealed; see
    /// [`crate::capacity::Member::extend`].
    pub(crate) async fn extend(
        self: &Arc<Self>,
        extent: &Arc<Extent>,
        epoch: Epoch,
        added: &Extension,
    ) -> Result<ExtentOffset, Error> {
        let Extension { frames, dead_to } = added;
        let mut frames = &frames[..];
        self.health.check()?;
        let changing = Arc::clone(&extent.changing).lock_owned().await;
        check_epoch(extent, epoch)?;
        if extent.state().phase() == ExtentState::Sealed {
            return Err(Error::Sealed { extent: extent.id });
        }
        let mut end = self.write_tail(extent, &changing).await?;
        if let Some(beyond) = dead_to.filter(|to| *to > OFFSET_MAX) {
            return Err(extent.corrupt(beyond));
        }
        if frames.first().is_some_and(|first| first.offset < end) {
            return Err(Error::WrongOffset { extent: extent.id, expected: end });
        }
        let mut has_gap = false;
        while let Some(first) = frames.first() {
            let expected = Expected { extent: extent.id, end };
            let copied = Placed::copied(frames, expected);
            let (placed, rest) = copied.ok_or_else(|| extent.corrupt(first.offset))?;
            // A start finds the next frame where one ends, or on the next page.
            has_gap |= placed.padding.iter().any(|gap| gap.end != offset_up(gap.start));
            let file = self.ready_to_write(extent, placed.end).await?;
            end = self.write_direct(extent, &file, &placed).await?;
            self.metrics.frames.inc_by(placed.frames);
            frames = rest;
        }
        if let Some(to) = dead_to.filter(|to| *to > end) {
            let mut state = extent.state();
            state.dead.insert(end..to);
            state.padding.push(end..to);
            (state.end, state.written, state.direct) = (to, to, to);
            (end, has_gap) = (to, true);
        }
        self.sync_to(extent, end).await?;
        if has_gap {
            // A start does not find what is behind a gap. It begins to search where the slot says.
            self.write_slot(extent, true, |slot| slot.len = slot.len.max(end)).await?;
            self.note(self.padding_changes(extent)).await;
        }
        drop(changing);
        Ok(end)
    }

    /// Answers an append whose place has bytes already: it arrived again. It must have the same
    /// bytes. Returns the end of the append when it is durable.
    pub(crate) async fn repeat(
        self: &Arc<Self>,
        extent: &Arc<Extent>,
        append: &PlacedAppend,
    ) -> Result<ExtentOffset, Error> {
        let changing = Arc::clone(&extent.changing).lock_owned().await;
        extent.check_open(append.epoch)?;
        let placed = &append.placed;
        let expected = extent.state().end;
        let is_here = placed.end <= expected && self.holds(extent, placed).await?;
        if !is_here {
            return Err(Error::WrongOffset { extent: extent.id, expected });
        }
        let end = self.write_tail(extent, &changing).await?;
        drop(changing);
        self.sync_to(extent, end).await?;
        self.assert_synced(extent, placed.end)?;
        Ok(placed.end)
    }

    /// Whether the extent has exactly these bytes at their place.
    async fn holds(&self, extent: &Arc<Extent>, placed: &Placed) -> Result<bool, Error> {
        let mut at = placed.start;
        for piece in &placed.pieces {
            let mut rest: Bytes = piece.clone();
            while !rest.is_empty() {
                let stored = self.fetch(extent, at, size(rest.len())).await?;
                if stored.is_empty() || rest.get(..stored.len()) != Some(&stored[..]) {
                    return Ok(false);
                }
                at = at + size(stored.len());
                rest = rest.split_off(stored.len());
            }
        }
        Ok(true)
    }
}
