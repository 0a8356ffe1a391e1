//! Extents found on two disks at a start.

use crate::capacity::home::Home;

/// A creation that failed may have left its file behind, and succeeded on another disk then. Only
/// that one was ever appended to or fenced. Or an extent was being moved: then both end at the same
/// offset. False while a file of it is left on the other disk.
pub(super) async fn drop_twin(kept: &mut Home, other: Home) -> bool {
    let end = |home: &Home| home.extent.state().end;
    let used = |home: &Home| {
        let state = home.extent.state();
        (state.end, state.slot.epoch)
    };
    let lost = if used(kept) < used(&other) { std::mem::replace(kept, other) } else { other };
    let (extent, disk) = (lost.extent.id, lost.store.number);
    // A move to another disk that ended before the old file was removed: the copy was whole before
    // it had its name.
    if end(&lost) > 0 && end(&lost) != end(kept) {
        tracing::error!(%extent, disk, "an extent is on two disks; the shorter file is left alone");
        return false;
    }
    tracing::warn!(%extent, disk, "removing the file that a failed creation or a move left");
    let removed = lost.store.remove(&lost.extent).await;
    if let Err(error) = &removed {
        tracing::warn!(
            %extent, disk, %error,
            "the file was not removed; the next start tries again"
        );
    }
    removed.is_ok()
}
