//! Which changes survive a power failure or a failed sync.

use std::ops::Range;

use bytes::Bytes;

use crate::env::disk_sim::dice::Dice;
use crate::env::disk_sim::image::Image;

/// The unit that a device writes atomically.
const SECTOR_BYTES: u64 = 512;

/// A change of a file that is visible but not yet durable.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// Number of the operation that made it.
    pub(super) number: u64,
    pub(super) what: What,
}

/// The four ways a file changes.
#[derive(Clone, Debug)]
pub(super) enum What {
    Write { offset: u64, bytes: Bytes },
    Allocate { offset: u64, len: u64 },
    Punch { offset: u64, len: u64 },
    SetLen { len: u64 },
}

impl What {
    /// Whether it may free space.
    pub(super) const fn frees(&self) -> bool {
        matches!(self, Self::Punch { .. } | Self::SetLen { .. })
    }

    pub(super) fn apply(&self, image: &mut Image) {
        match self {
            Self::Write { offset, bytes } => image.write(*offset, bytes),
            Self::Allocate { offset, len } => image.allocate(*offset, *len),
            Self::Punch { offset, len } => image.punch(*offset, *len),
            Self::SetLen { len } => image.set_len(*len),
        }
    }
}

/// Which unsynced changes of a file survive. Each case happens in reality, and each finds other
/// bugs.
#[derive(Clone, Copy, Debug)]
enum Survival {
    /// No unsynced change.
    LoseAll,
    /// All of them.
    KeepAll,
    /// Some writes, some of them in part.
    Mix,
}

/// Applies the surviving part of `changes` to `durable`.
///
/// Any subset of the writes may survive, and any sectors of each. This covers every order in which
/// a cache may be written back. Changes of the file's shape go through the file system's log, so
/// they survive in order up to some point. Bytes that were written after a lost change, where it
/// had removed pages, cannot have reached the device either.
///
/// A failed sync loses writes only (`shape_at_risk` is false), because changes of shape are in the
/// file system's log.
pub(super) fn apply_survivors(
    durable: &mut Image,
    changes: &[Change],
    shape_at_risk: bool,
    dice: &mut Dice,
) {
    let survival = match dice.below(4) {
        0 => Survival::LoseAll,
        1 => Survival::KeepAll,
        _ => Survival::Mix,
    };
    let mut shape_kept = !shape_at_risk || !matches!(survival, Survival::LoseAll);
    let mut lost: Vec<Range<u64>> = Vec::new();
    for change in changes {
        if let What::Write { offset, bytes } = &change.what {
            let range = *offset..*offset + bytes.len() as u64;
            let blocked = lost.iter().any(|hole| hole.start < range.end && range.start < hole.end);
            match survival {
                Survival::LoseAll => {}
                Survival::KeepAll => change.what.apply(durable),
                Survival::Mix if blocked => {}
                Survival::Mix => apply_surviving_sectors(durable, *offset, bytes, dice),
            }
            continue;
        }
        if shape_at_risk && matches!(survival, Survival::Mix) && dice.below(4) == 0 {
            shape_kept = false;
        }
        if shape_kept {
            change.what.apply(durable);
        } else {
            lost.extend(removed_by(&change.what));
        }
    }
}

fn apply_surviving_sectors(durable: &mut Image, offset: u64, bytes: &Bytes, dice: &mut Dice) {
    let end = offset + bytes.len() as u64;
    // The device may have the bytes although the file system has not logged the new length.
    let limit = if end > durable.len() && dice.below(4) == 0 { durable.len() } else { end };
    let keep = match dice.below(4) {
        0 => return,
        1 => 1_000_000,
        _ => 500_000,
    };
    let mut at = offset;
    while at < limit {
        let next = ((at / SECTOR_BYTES + 1) * SECTOR_BYTES).min(limit);
        if dice.happens(keep) {
            let from = usize::try_from(at - offset).expect("inside the buffer");
            let to = usize::try_from(next - offset).expect("inside the buffer");
            durable.write(at, &bytes[from..to]);
        }
        at = next;
    }
}

fn removed_by(what: &What) -> Option<Range<u64>> {
    match what {
        What::Punch { offset, len } => Some(*offset..*offset + *len),
        What::SetLen { len } => Some(*len..u64::MAX),
        What::Write { .. } | What::Allocate { .. } => None,
    }
}
