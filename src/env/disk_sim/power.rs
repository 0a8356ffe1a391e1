//! What a power cut or a failed sync leaves of changes that were not yet durable.

use std::ops::Range;

use bytes::Bytes;

use crate::env::disk_sim::dice::Dice;
use crate::env::disk_sim::image::Image;

/// What a device writes or does not write, never half.
const SECTOR_BYTES: u64 = 512;

/// A change of a file that is visible but not yet durable.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// Order of the call among all of the disk.
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
    /// Whether it may give space back.
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

/// How kind a cut is to one file; each happens in life, and each finds other bugs.
#[derive(Clone, Copy, Debug)]
enum Mood {
    /// Nothing unsynced was written back.
    LoseAll,
    /// All of it was.
    KeepAll,
    /// Some writes were, some in part.
    Mix,
}

/// Leaves in `durable` what survives of `changes`.
///
/// Any subset of the writes may survive, any sectors of each: that covers every order in which a
/// cache may have been written back. Changes of the file's shape go through the file system's log,
/// so they survive in order up to some point; bytes written where a later-lost cut or hole was made
/// cannot have reached the device either.
///
/// A sync that fails loses writes only (`shape_at_risk` is false): the log of the file system is
/// not in its way.
pub(super) fn settle(
    durable: &mut Image,
    changes: &[Change],
    shape_at_risk: bool,
    dice: &mut Dice,
) {
    let mood = match dice.below(4) {
        0 => Mood::LoseAll,
        1 => Mood::KeepAll,
        _ => Mood::Mix,
    };
    let mut shape_kept = !shape_at_risk || !matches!(mood, Mood::LoseAll);
    let mut lost: Vec<Range<u64>> = Vec::new();
    for change in changes {
        if let What::Write { offset, bytes } = &change.what {
            let range = *offset..*offset + bytes.len() as u64;
            let blocked = lost.iter().any(|hole| hole.start < range.end && range.start < hole.end);
            match mood {
                Mood::LoseAll => {}
                Mood::KeepAll => change.what.apply(durable),
                Mood::Mix if blocked => {}
                Mood::Mix => settle_write(durable, *offset, bytes, dice),
            }
            continue;
        }
        if shape_at_risk && matches!(mood, Mood::Mix) && dice.below(4) == 0 {
            shape_kept = false;
        }
        if shape_kept {
            change.what.apply(durable);
        } else {
            lost.extend(removed_by(&change.what));
        }
    }
}

fn settle_write(durable: &mut Image, offset: u64, bytes: &Bytes, dice: &mut Dice) {
    let end = offset + bytes.len() as u64;
    // The device may have the bytes while the file system has not logged the new length.
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
