//! Extents that a start finds on two disks.

use crate::capacity::home::Home;
use crate::types::ExtentOffset;

/// Keeps one of two files of an extent and removes the other. A failed creation may have left a
/// file before the extent was created on another disk; only the later one was appended to or
/// fenced. Or a move was interrupted; then both files end at the same offset. Returns false if the
/// other file is still there.
pub(super) async fn drop_twin(kept: &mut Home, other: Home) -> bool {
    let end = |home: &Home| home.extent.state().end;
    let used = |home: &Home| {
        let state = home.extent.state();
        (state.end, state.slot.epoch)
    };
    let lost = if used(kept) < used(&other) { std::mem::replace(kept, other) } else { other };
    let (extent, disk) = (lost.extent.id, lost.store.place);
    // After an interrupted move both files end at the same offset, because a copy is complete
    // before it gets its name. Another end means damage, so the file is kept.
    if end(&lost) > ExtentOffset::START && end(&lost) != end(kept) {
        tracing::error!(
            %extent, disk,
            "an extent is on two disks with different ends; the longer file is used and the \
             other is not removed"
        );
        return false;
    }
    tracing::warn!(
        %extent, disk,
        "an extent is on two disks; removing the file that a failed creation or a move left"
    );
    let removed = lost.store.remove(&lost.extent).await;
    if let Err(error) = &removed {
        tracing::warn!(
            %extent, disk, %error,
            "the file was not removed; the next start tries again"
        );
    }
    removed.is_ok()
}
