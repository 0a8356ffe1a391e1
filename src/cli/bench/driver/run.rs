//! Prepares the blobs of a workload, and distributes its operations over the connections.

use std::cell::Cell;
use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::rc::Rc;

use futures_util::future::try_join_all;

use super::call::Call;
use super::client::Client;
use super::client::Way;
use super::connection;
use super::data::Pool;
use super::shared::Pace;
use super::shared::Shared;
use super::tally::Tally;
use super::target::Target;
use super::workload::Kind;
use super::workload::Set;
use super::workload::Unit;
use super::workload::Workload;

/// Connections that prepare a set.
const PREPARERS: usize = 16;

/// The driver of one endpoint.
#[derive(Debug)]
pub struct Driver {
    /// How the server is reached.
    pub way: Rc<Way>,
    /// Endpoint and container.
    pub target: Rc<Target>,
    /// Bodies.
    pub pool: Rc<Pool>,
    /// When measured workloads end, and their rate.
    pub pace: Pace,
    /// Number of their first operation.
    pub first: u64,
    /// Operations of the current workload, or of its preparation, that ended so far.
    pub ended: Rc<Cell<u64>>,
    /// Prints progress and failures.
    pub report: fn(&str),
    /// The number of blobs of each set that exist, by the set's name.
    made: RefCell<HashMap<&'static str, u64>>,
    /// Counts of all preparations.
    prepared: Cell<Prepared>,
}

/// The work that was done before workloads could begin.
#[derive(Debug, Clone, Copy, Default)]
pub struct Prepared {
    /// Blobs that were written.
    pub blobs: u64,
    /// Requests for that.
    pub requests: u64,
}

impl Driver {
    /// A driver that has not made any blob yet.
    #[must_use]
    pub fn new(way: Way, target: Target, pool: Pool) -> Self {
        Self {
            way: Rc::new(way),
            target: Rc::new(target),
            pool: Rc::new(pool),
            pace: Pace::default(),
            first: 0,
            ended: Rc::default(),
            report: |_| {},
            made: RefCell::default(),
            prepared: Cell::default(),
        }
    }

    /// A connection that is not open yet.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(Rc::clone(&self.target), Rc::clone(&self.way))
    }

    /// The preparations so far.
    #[must_use]
    pub const fn prepared(&self) -> Prepared {
        self.prepared.get()
    }

    /// Writes the blobs that `workload` reads or deletes.
    ///
    /// # Errors
    /// Some could not be written.
    pub async fn prepare_for(&self, workload: &Workload) -> Result<(), String> {
        match workload.kind {
            Kind::Put(_)
            | Kind::PutSigned(_)
            | Kind::Blocks(..)
            | Kind::Churn
            | Kind::Idle
            | Kind::Ready(_)
            | Kind::Audit(_)
            | Kind::Pages(..) => Ok(()),
            Kind::Get(set)
            | Kind::Range(set, _)
            | Kind::Head(set)
            | Kind::Delete(set)
            | Kind::List(set, _) => self.prepare(set, workload.ops).await,
            Kind::Mixed(read, written) => {
                self.prepare(read, workload.ops).await?;
                self.prepare(written, workload.ops).await
            }
        }
    }

    /// Executes the operations of `workload`.
    ///
    /// # Errors
    /// Something is wrong with the driver itself.
    pub async fn measure(&self, workload: Workload, pace: Pace) -> Result<Tally, String> {
        self.spread(workload, self.first, pace).await
    }

    /// Makes the container. An existing container is also a success.
    ///
    /// # Errors
    /// The server refused.
    pub async fn container(&self) -> Result<(), String> {
        self.client().call(&Call::CreateContainer { may_exist: true }).await.map(|_| ())
    }

    /// Writes the blobs of `set` that do not exist yet; one for each of `ops` if it has no count.
    ///
    /// # Errors
    /// Some could not be written.
    pub async fn prepare(&self, set: Set, ops: u64) -> Result<(), String> {
        let count = if set.count == 0 { ops } else { set.count };
        let had = self.made.borrow().get(set.name).copied().unwrap_or(0);
        if had < count {
            (self.report)(&format!("preparing {} blobs of {} bytes", count - had, set.size));
            let put = Workload {
                name: "prepare",
                kind: Kind::Put(set),
                ops: count,
                concurrency: PREPARERS,
                unit: Unit::Op,
            };
            let pace = Pace::counted(self.pace.stop.clone());
            let tally = self.spread(put, had, pace).await?;
            let Prepared { blobs, requests } = self.prepared.get();
            let (blobs, requests) = (blobs + tally.ops, requests + tally.requests);
            self.prepared.set(Prepared { blobs, requests });
            if let Some((why, _)) = tally.failures.first_key_value() {
                let name = set.name;
                return Err(format!(
                    "{} blobs of {name} could not be written: {why}",
                    tally.errors
                ));
            }
        }
        // Blobs that a workload deletes must be written again for the next one.
        let kept = if set.count == 0 { 0 } else { count };
        self.made.borrow_mut().insert(set.name, kept);
        Ok(())
    }

    /// Executes operations `first..ops` over all connections, or with another pace.
    async fn spread(&self, workload: Workload, first: u64, pace: Pace) -> Result<Tally, String> {
        let mut deletable = VecDeque::new();
        if let Kind::Mixed(_, written) = workload.kind {
            deletable.extend(0..written.count);
            // Deleted blobs must be written again for the next run.
            self.made.borrow_mut().insert(written.name, 0);
        }
        let clock = &self.way.env.clock;
        let unix_ms = || u64::try_from(clock.now().since_unix().as_millis()).unwrap_or(u64::MAX);
        let began_unix_ms = unix_ms();
        self.ended.set(0);
        let shared = Rc::new(Shared {
            workload,
            pool: Rc::clone(&self.pool),
            deletable: RefCell::new(deletable),
            pace,
            next: Cell::new(first),
            begun: clock.monotonic(),
            tally: RefCell::new(Tally::new()?),
            ended: Rc::clone(&self.ended),
            report: self.report,
        });
        let run = |place| connection::run(self.client(), Rc::clone(&shared), place);
        try_join_all((0..workload.concurrency).map(run)).await?;
        let mut total = shared.tally.replace(Tally::new()?);
        total.seconds = clock.monotonic().saturating_sub(shared.begun).as_secs_f64();
        total.began_unix_ms = began_unix_ms;
        total.ended_unix_ms = unix_ms();
        total.next = shared.next.get();
        Ok(total)
    }
}
