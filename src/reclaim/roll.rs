//! Seals open data extents that hold much garbage: only a sealed extent gives its space back.

use crate::capacity::ExtentInfo;
use crate::capacity::ExtentKind;
use crate::capacity::ExtentState;
use crate::reclaim::service::Reclaim;

/// Garbage that an open extent may keep: one part in so many of its length.
const SHARE: u64 = 8;

/// Seals what is worth it. Its writer meets a sealed extent at its next append and rolls to a new one, as it does on any
/// trouble; what it has appended stays.
pub(super) async fn roll(reclaim: &Reclaim) {
    for info in reclaim.capacity.extents().await {
        if !is_wasteful(&info, reclaim.config.open_waste_min) {
            continue;
        }
        if let Err(error) = reclaim.capacity.seal(info.extent, info.epoch).await {
            tracing::warn!(extent = %info.extent, %error, "not sealed for its garbage; tried again");
            continue;
        }
        reclaim.metrics.rolled_extents.inc();
    }
}

fn is_wasteful(info: &ExtentInfo, waste_min: u64) -> bool {
    // Logs and runs are sealed by the index, which relies on who writes them.
    info.kind == ExtentKind::Data
        && info.state == ExtentState::Open
        && info.freed >= waste_min.max(info.len / SHARE)
}
