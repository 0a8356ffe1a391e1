//! Seals open data extents that hold much garbage, or may: only a sealed extent gives its space
//! back.

use crate::capacity::ExtentInfo;
use crate::capacity::ExtentKind;
use crate::capacity::ExtentState;
use crate::reclaim::state::Reclaim;

/// Garbage that an open extent may keep: one part in so many of its length.
const SHARE: u64 = 8;

/// Seals what is worth it. Its writer meets a sealed extent at its next append and rolls to a new
/// one, as it does on any trouble; what it has appended stays.
pub(super) async fn roll(reclaim: &Reclaim) {
    for info in reclaim.capacity.extents().await {
        if !is_wasteful(&info, reclaim.config.open_waste_min) {
            continue;
        }
        if let Err(error) = reclaim.capacity.seal(info.extent, info.epoch).await {
            tracing::warn!(
                extent = %info.extent, %error,
                "an extent with much garbage could not be sealed; it is tried again"
            );
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

/// How often an audit looks whether running writes have left what was sealed for it: ten minutes by
/// default.
const LOOKS_MAX: u32 = 6_000;

/// Seals open data extents before an audit that dropped shared bytes called for: nobody counts
/// which extents those lie in, and an open one is not audited. Waits a while for the writes that
/// still have bytes in them.
pub(super) async fn roll_for_audit(reclaim: &Reclaim) {
    let mut sealed = Vec::new();
    for info in reclaim.capacity.extents().await {
        let open = info.kind == ExtentKind::Data && info.state == ExtentState::Open;
        if !open || info.len < reclaim.config.open_waste_min {
            continue;
        }
        match reclaim.capacity.seal(info.extent, info.epoch).await {
            Ok(_) => {
                reclaim.metrics.rolled_extents.inc();
                sealed.push(info.extent);
            }
            Err(error) => {
                tracing::warn!(
                    extent = %info.extent, %error,
                    "an extent could not be sealed for an audit"
                );
            }
        }
    }
    for _ in 0..LOOKS_MAX {
        let written = sealed.iter().any(|extent| reclaim.inflight.is_written(*extent));
        if !written || reclaim.go_on().is_err() {
            return;
        }
        reclaim.env.clock.sleep(reclaim.config.audit_wait).await;
    }
}
