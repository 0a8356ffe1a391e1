//! Disks that stall: for seconds no call ends, or no sync ends, and then everything continues.
//! Writes that wait for too long are refused meanwhile, and the reference assumes that a refused
//! write never happens.

use std::convert::Infallible;
use std::time::Duration;

use blockyard::env::Clock;
use blockyard::env::SimDisk;

use crate::counts::Counts;
use crate::draw::Draw;

/// Times in a session, at most: with the next, shorter together than a request looks for a new
/// owner.
const TIMES_MAX: u64 = 2;
/// Longest, in milliseconds.
const LONGEST: u64 = 4_500;

/// Lets disks stumble now and then while others work; surely, and only with their syncs, when
/// `stalls`.
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
