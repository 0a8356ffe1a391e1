//! Gives a copy what it lacks from another one.

use crate::capacity::CopyId;
use crate::capacity::Error;
use crate::capacity::Extension;
use crate::capacity::Member;
use crate::types::Epoch;
use crate::types::ExtentOffset;

/// Bytes of frames that one call asks for.
const PULL_BYTES: u64 = 1 << 20;

/// A copy that has all bytes, and where it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(super) member: &'a dyn Member,
    pub(super) end: ExtentOffset,
}

/// Adds frames of the source to a copy that is not sealed, until it ends where the source ends. The
/// copy is durable then. A copy that does not exist is created.
///
/// # Errors
/// Those of [`Member::frames`] and [`Member::extend`]. What was added stays.
pub(super) async fn pull(
    to: &dyn Member,
    copy: CopyId,
    epoch: Epoch,
    from: Source<'_>,
) -> Result<(), Error> {
    let mut end = match to.copy(copy.extent).await? {
        Some(info) => info.end,
        None => ExtentOffset::START,
    };
    while end < from.end {
        let mut frames = from.member.frames(copy.extent, end, PULL_BYTES).await?;
        frames.retain(|frame| frame.offset < from.end);
        // Dead bytes have no frames.
        let dead_to = frames.is_empty().then_some(from.end);
        end = match to.extend(copy, epoch, Extension { frames, dead_to }).await {
            // The answer to an earlier call was lost, or somebody else extends the copy too.
            Err(Error::WrongOffset { expected, .. }) if expected > end => expected,
            done => done?,
        };
    }
    Ok(())
}
