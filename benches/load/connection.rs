//! One connection of a workload: it executes operations until there is none left.

use std::cell::Cell;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use crate::client::Client;
use crate::data::Pool;
use crate::step;
use crate::step::Own;
use crate::tally::Done;
use crate::tally::Tally;
use crate::tally::record;
use crate::workloads::Kind;
use crate::workloads::Workload;

/// A workload of counted operations ends after more failures than this.
const ENOUGH_ERRORS: u64 = 50;

/// The pause of a connection after a failure.
const REST: Duration = Duration::from_millis(50);

/// When a workload ends, and its rate.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    /// It ends after this time, in place of its number of operations.
    pub(crate) time: Option<Duration>,
    /// It ends when this becomes true, in place of its number of operations.
    pub(crate) closed: Option<Arc<AtomicBool>>,
    /// Operations that begin per second over all connections, even if earlier ones have not ended.
    pub(crate) rate: Option<f64>,
    /// Whether figures are kept for each second.
    pub(crate) each_second: bool,
}

/// What the connections of one workload share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// What to do.
    pub(crate) workload: Workload,
    /// Bodies.
    pub(crate) pool: Rc<Pool>,
    /// Blobs of `mixed` that can be deleted.
    pub(crate) deletable: RefCell<VecDeque<u64>>,
    /// When it ends, and how fast it goes.
    pub(crate) pace: Pace,
    /// The number of the next operation.
    pub(crate) next: Cell<u64>,
    /// When the first one began.
    pub(crate) begun: Instant,
    /// What was done.
    pub(crate) tally: RefCell<Tally>,
}

impl Pace {
    /// A number of operations, each begun when the last one was answered.
    pub(crate) const fn counted() -> Self {
        Self { time: None, closed: None, rate: None, each_second: false }
    }

    /// Whether the workload ends at a time or a signal, not after a number of operations.
    fn is_open(&self) -> bool {
        self.time.is_some() || self.closed.is_some()
    }
}

impl Shared {
    /// The number of the next operation, if there is one.
    fn take(&self) -> Option<u64> {
        let number = self.next.get();
        let ended = match (self.pace.time, &self.pace.closed) {
            (Some(time), _) => self.begun.elapsed() >= time,
            (None, Some(closed)) => closed.load(Ordering::Relaxed),
            (None, None) => number >= self.workload.ops,
        };
        // An audit continues after failures, because their number is its result.
        let bears = self.pace.is_open() || matches!(self.workload.kind, Kind::Audit(_));
        if ended || !bears && self.tally.borrow().errors > ENOUGH_ERRORS {
            return None;
        }
        self.next.set(number + 1);
        Some(number)
    }

    /// When operation `turn` of connection `place` is due. Operations of all connections are evenly
    /// spread over time.
    fn due(&self, place: usize, turn: u32) -> Option<Instant> {
        let round = Duration::from_secs_f64(self.workload.concurrency as f64 / self.pace.rate?);
        let offset = round.mul_f64(place as f64 / self.workload.concurrency as f64);
        Some(self.begun + offset + round * turn)
    }
}

/// Executes operations on one connection until the workload ends. `place` is the number of the
/// connection.
///
/// # Errors
/// Something is wrong with the driver itself; failures of operations are counted.
pub(crate) async fn run(
    mut client: Client,
    shared: Rc<Shared>,
    place: usize,
) -> Result<(), String> {
    let mut own = Own::new(place);
    let each_second = shared.pace.each_second;
    if shared.pace.rate.is_some() {
        // All connections are opened at once, as without a rate. One that fails is opened again at
        // its first operation.
        drop(client.connect().await);
        record(&mut shared.tally.borrow_mut().connecting, client.connecting)?;
    }
    for turn in 0.. {
        let mut begun = Instant::now();
        if let Some(due) = shared.due(place, turn) {
            if shared.pace.time.is_some_and(|time| due >= shared.begun + time) {
                break;
            }
            if begun < due {
                tokio::time::sleep_until(due.into()).await;
                // The delay of a late timer is not counted; a late answer is.
                begun = Instant::now();
            } else {
                begun = due;
            }
        }
        let Some(number) = shared.take() else { break };
        client.connecting = Duration::ZERO;
        let result = step::run(&mut client, &shared, number, &mut own).await;
        let since = begun.saturating_duration_since(shared.begun);
        match result {
            Ok(units) => {
                let (took, connecting) = (begun.elapsed(), client.connecting);
                let mut tally = shared.tally.borrow_mut();
                tally.note(Done { began: since, took, connecting, units }, each_second)?;
                if !connecting.is_zero() {
                    record(&mut tally.connecting, connecting)?;
                }
            }
            Err(error) => {
                shared.tally.borrow_mut().fail(since, &error, each_second)?;
                if shared.tally.borrow().errors <= 3 {
                    eprintln!("  operation {number} failed: {error}");
                }
                tokio::time::sleep(REST).await;
            }
        }
    }
    if let Err(error) = step::last(&mut client, &shared, &own).await {
        eprintln!("  the last look failed: {error}");
        shared.tally.borrow_mut().fail(shared.begun.elapsed(), &error, each_second)?;
    }
    shared.tally.borrow_mut().connects += client.connects;
    Ok(())
}
