//! Seals open data extents that hold much garbage, or may hold it: only a sealed extent releases
//! its space.

use crate::capacity::ExtentInfo;
use crate::capacity::ExtentKind;
use crate::capacity::ExtentState;
use crate::reclaim::state::Reclaim;

/// An open extent is sealed when its garbage exceeds its length divided by this.
const LENGTH_DIVISOR: u64 = 8;

/// Seals extents with much garbage. The next append of the writer is refused, because the extent is
/// sealed, or gone if all of it was garbage; the writer rolls to a new extent. Live bytes stay.
pub(super) async fn roll(reclaim: &Reclaim) {
    // Only the writer of an extent of a cluster may seal it, and nobody else knows its garbage.
    if reclaim.capacity.is_shared() {
        return;
    }
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
    // The index seals logs and runs; it relies on being their only writer.
    info.kind == ExtentKind::Data
        && info.state == ExtentState::Open
        && info.freed >= waste_min.max(info.len / LENGTH_DIVISOR)
}

/// How often an audit polls whether writes that use the sealed extents have ended: for ten minutes
/// by default.
const POLLS_MAX: u32 = 6_000;

/// Seals open data extents before an audit that dropped shared bytes have triggered. It is unknown
/// which extents these bytes lie in, and open extents are not audited. Waits for the writes that
/// still use the extents, up to a limit.
pub(super) async fn roll_for_audit(reclaim: &Reclaim) {
    if reclaim.capacity.is_shared() {
        return;
    }
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
    for _ in 0..POLLS_MAX {
        let written = match reclaim.requests.written_extents().await {
            Ok(written) => sealed.iter().any(|extent| written.contains(extent)),
            // The audit asks again, and ends if there is still no answer.
            Err(_) => true,
        };
        if !written || reclaim.go_on().is_err() {
            return;
        }
        reclaim.env.clock.sleep(reclaim.config.audit_wait).await;
    }
}
