//! Disks that stall: for seconds no call ends, or no sync ends, and then everything continues.
//! Writes that wait too long are refused meanwhile, and the reference model assumes that a refused
//! write never happens.

use std::convert::Infallible;
use std::time::Duration;

use blockyard::env::Clock;
use blockyard::env::SimDisk;

use crate::counts::Counts;
use crate::draw::Draw;

/// The most stalls of a session. Their lengths together are shorter than a request's search for a
/// new owner.
const TIMES_MAX: u64 = 2;
/// The longest stall, milliseconds.
const LONGEST: u64 = 4_500;

/// Makes disks stall sometimes while clients work. If `stalls`, they always stall, and only their
/// syncs.
pub(crate) async fn run(
    (draw, stalls, counts): (&Draw, bool, &Counts),
    sims: &[SimDisk],
    clock: &dyn Clock,
) -> Infallible {
    let times = if stalls || draw.percent(30) { draw.between(1, TIMES_MAX) } else { 0 };
    for _ in 0..times {
        clock.sleep(Duration::from_millis(draw.between(10, 400))).await;
        let time = Duration::from_millis(draw.between(500, LONGEST));
        if stalls || draw.percent(50) {
            sims.iter().for_each(|sim| sim.stall_syncs(time));
            counts.add("syncs stalled", 1);
        } else {
            sims.iter().for_each(|sim| sim.stall(time));
            counts.add("stumbles of a disk", 1);
        }
        clock.sleep(time).await;
    }
    std::future::pending().await
}
