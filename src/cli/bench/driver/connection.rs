//! One connection of a workload: it executes operations until none is left.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::client::Client;
use super::shared::Shared;
use super::step;
use super::step::Own;
use super::tally::Done;
use super::tally::record;

/// The pause of a connection after a failure.
const REST: Duration = Duration::from_millis(50);

/// Executes operations on one connection until the workload ends. `place` is the number of the
/// connection.
///
/// # Errors
/// Something is wrong with the driver itself; failures of operations are counted.
pub async fn run(mut client: Client, shared: Rc<Shared>, place: usize) -> Result<(), String> {
    let mut own = Own::new(place);
    let each_second = shared.pace.each_second;
    if shared.pace.rate.is_some() {
        // All connections are opened at the start, as without a rate. One that fails is opened
        // again at its first operation.
        drop(client.connect().await);
        record(&mut shared.tally.borrow_mut().connecting, client.connecting)?;
    }
    let clock = Arc::clone(&client.way.env.clock);
    for turn in 0.. {
        let mut begun = clock.monotonic();
        if let Some(due) = shared.due(place, turn) {
            if shared.pace.time.is_some_and(|time| due >= shared.begun + time) {
                break;
            }
            if begun < due {
                shared.pace.rest(clock.as_ref(), due - begun).await;
                // The delay of a late timer is not counted; a late answer is.
                begun = clock.monotonic();
            } else {
                begun = due;
            }
        }
        let Some(number) = shared.take(clock.monotonic()) else { break };
        client.connecting = Duration::ZERO;
        let result = step::run(&mut client, &shared, number, &mut own).await;
        let since = begun.saturating_sub(shared.begun);
        shared.ended.set(shared.ended.get() + 1);
        match result {
            Ok(worth) => {
                let took = clock.monotonic().saturating_sub(begun);
                let connecting = client.connecting;
                let mut tally = shared.tally.borrow_mut();
                tally.note(Done { began: since, took, connecting, worth }, each_second)?;
                if !connecting.is_zero() {
                    record(&mut tally.connecting, connecting)?;
                }
            }
            Err(error) => {
                shared.tally.borrow_mut().fail(since, &error, each_second)?;
                if shared.tally.borrow().errors <= 3 {
                    (shared.report)(&format!("operation {number} failed: {error}"));
                }
                shared.pace.rest(clock.as_ref(), REST).await;
            }
        }
    }
    if let Err(error) = step::last(&mut client, &shared, &own).await {
        (shared.report)(&format!("the last comparison failed: {error}"));
        let since = clock.monotonic().saturating_sub(shared.begun);
        shared.tally.borrow_mut().fail(since, &error, each_second)?;
    }
    let mut tally = shared.tally.borrow_mut();
    tally.connects += client.connects;
    tally.requests += client.requests;
    Ok(())
}
