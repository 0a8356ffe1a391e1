//! Runs one workload: prepares its blobs, distributes the operations over the connections, takes
//! the figures.

use std::cell::Cell;
use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use tokio::task::JoinSet;

use crate::call::Call;
use crate::client::Client;
use crate::connection;
use crate::connection::Pace;
use crate::connection::Shared;
use crate::data::Pool;
use crate::data::name;
use crate::hold::Moment;
use crate::hold::hold;
use crate::procstat;
use crate::report::Figures;
use crate::report::Server;
use crate::syncs;
use crate::tally::Tally;
use crate::target::Target;
use crate::workloads::Kind;
use crate::workloads::Set;
use crate::workloads::Unit;
use crate::workloads::WARM;
use crate::workloads::Workload;

/// The pause before figures are taken: deferred work of a server (write-back, compaction) belongs
/// to the operations that caused it.
const SETTLE: Duration = Duration::from_millis(500);

/// Connections that prepare a set.
const PREPARERS: usize = 16;

/// The driver of one endpoint.
#[derive(Debug)]
pub(crate) struct Driver {
    /// Endpoint and container.
    pub(crate) target: Rc<Target>,
    /// Bodies.
    pub(crate) pool: Rc<Pool>,
    /// Process id of the server.
    pub(crate) pid: Option<u32>,
    /// Prometheus page of the server.
    pub(crate) metrics: Option<String>,
    /// Longest wait of `ready`.
    pub(crate) wait: Duration,
    /// When measured workloads end, and their rate.
    pub(crate) pace: Pace,
    /// Number of their first operation.
    pub(crate) first: u64,
    /// Whether it waits for its caller before and after the measured part.
    pub(crate) hold: bool,
    /// The number of blobs of each set that exist, by the set's name.
    made: RefCell<HashMap<&'static str, u64>>,
}

impl Driver {
    /// A driver that has not made any blob yet.
    pub(crate) fn new(target: Target, pid: Option<u32>, metrics: Option<String>) -> Self {
        Self {
            target: Rc::new(target),
            pool: Rc::new(Pool::new()),
            pid,
            metrics,
            wait: Duration::from_secs(120),
            pace: Pace::counted(),
            first: 0,
            hold: false,
            made: RefCell::default(),
        }
    }

    /// Prepares and runs `workload`.
    ///
    /// # Errors
    /// The preparation failed. Failures of measured operations are in the figures.
    pub(crate) async fn run(&self, workload: &Workload) -> Result<Figures, String> {
        match workload.kind {
            Kind::Idle => tokio::time::sleep(SETTLE).await,
            Kind::Ready(set) => return self.ready(workload, set).await,
            Kind::Put(_) | Kind::PutSigned(_) | Kind::Blocks(..) => self.prepare(WARM, 0).await?,
            Kind::Churn => self.container().await?,
            Kind::Audit(_) | Kind::Pages(..) => {}
            Kind::Get(set)
            | Kind::Range(set, _)
            | Kind::Head(set)
            | Kind::Delete(set)
            | Kind::List(set, _) => self.prepare(set, workload.ops).await?,
            Kind::Mixed(read, written) => {
                self.prepare(read, workload.ops).await?;
                self.prepare(written, workload.ops).await?;
            }
        }
        self.measure(workload).await
    }

    async fn measure(&self, workload: &Workload) -> Result<Figures, String> {
        // Otherwise work of the server for the preparation would be counted here.
        tokio::time::sleep(SETTLE).await;
        if let Some(pid) = self.pid {
            procstat::forget_peak(pid);
        }
        if self.hold {
            hold(workload.name, Moment::Begin)?;
        }
        let before = self.pid.map(procstat::usage);
        let syncs_before = self.syncs().await?;
        let tally = if matches!(workload.kind, Kind::Idle) {
            Tally::one()?
        } else {
            self.spread(*workload, self.first, self.pace.clone()).await?
        };
        tokio::time::sleep(SETTLE).await;
        if self.hold {
            hold(workload.name, Moment::End)?;
        }
        let mut figures = Figures::new(workload, &tally);
        if let (Some(pid), Some(before)) = (self.pid, before) {
            let after = procstat::usage(pid);
            figures.server =
                Some(Server::between(before, after, tally.units.max(1.0), tally.ops.max(1) as f64));
        }
        if let (Some(before), Some(after)) = (syncs_before, self.syncs().await?) {
            figures.syncs_per_op = Some((after - before) / tally.ops.max(1) as f64);
        }
        Ok(figures)
    }

    async fn syncs(&self) -> Result<Option<f64>, String> {
        match &self.metrics {
            Some(url) => syncs::count(url).await.map(Some),
            None => Ok(None),
        }
    }

    async fn container(&self) -> Result<(), String> {
        Client::new(Rc::clone(&self.target)).call(&Call::CreateContainer).await.map(|_| ())
    }

    /// Writes the blobs of `set` that do not exist yet.
    async fn prepare(&self, set: Set, ops: u64) -> Result<(), String> {
        self.container().await?;
        let count = if set.count == 0 { ops } else { set.count };
        let had = self.made.borrow().get(set.name).copied().unwrap_or(0);
        if had < count {
            eprintln!("  preparing {} blobs of {} bytes", count - had, set.size);
            let put = Workload {
                name: "prepare",
                kind: Kind::Put(set),
                ops: count,
                concurrency: PREPARERS,
                unit: Unit::Op,
            };
            let tally = self.spread(put, had, Pace::counted()).await?;
            if tally.errors > 0 {
                return Err(format!("{} blobs of {} could not be written", tally.errors, set.name));
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
        let began_unix_ms = unix_ms()?;
        let shared = Rc::new(Shared {
            workload,
            pool: Rc::clone(&self.pool),
            deletable: RefCell::new(deletable),
            pace,
            next: Cell::new(first),
            begun: Instant::now(),
            tally: RefCell::new(Tally::new()?),
        });
        let mut connections = JoinSet::new();
        for place in 0..workload.concurrency {
            let client = Client::new(Rc::clone(&self.target));
            connections.spawn_local(connection::run(client, Rc::clone(&shared), place));
        }
        while let Some(one) = connections.join_next().await {
            one.map_err(|e| e.to_string())??;
        }
        let mut total = shared.tally.replace(Tally::new()?);
        total.seconds = shared.begun.elapsed().as_secs_f64();
        total.began_unix_ms = began_unix_ms;
        total.ended_unix_ms = unix_ms()?;
        total.next = shared.next.get();
        Ok(total)
    }

    /// Requests the first blob of `set` every few milliseconds until the server serves it.
    async fn ready(&self, workload: &Workload, set: Set) -> Result<Figures, String> {
        let begun = Instant::now();
        let call =
            Call::Get { name: name(set, 0), from: None, expect: self.pool.body(0, set.size) };
        let mut client = Client::new(Rc::clone(&self.target));
        while let Err(error) = client.call(&call).await {
            // A 404 also shows that the server serves. `audit` checks whether the blob should
            // exist.
            if error.starts_with("404") {
                break;
            }
            if begun.elapsed() > self.wait {
                return Err(format!("not serving after {:?}: {error}", self.wait));
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let mut tally = Tally { connects: 1, ..Tally::one()? };
        tally.seconds = begun.elapsed().as_secs_f64();
        tally.ended_unix_ms = unix_ms()?;
        Ok(Figures::new(workload, &tally))
    }
}

fn unix_ms() -> Result<u64, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|e| e.to_string())?;
    u64::try_from(now.as_millis()).map_err(|e| e.to_string())
}
