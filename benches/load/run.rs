//! Runs one workload: prepares its blobs, has the driver execute it, takes the server's figures.

use std::time::Duration;

use blockyard::cli::bench::driver::call::Call;
use blockyard::cli::bench::driver::data::name;
use blockyard::cli::bench::driver::run::Driver;
use blockyard::cli::bench::driver::tally::Tally;
use blockyard::cli::bench::driver::workload::Kind;
use blockyard::cli::bench::driver::workload::Set;
use blockyard::cli::bench::driver::workload::Workload;

use crate::hold::Moment;
use crate::hold::hold;
use crate::procstat;
use crate::report::Figures;
use crate::report::Server;
use crate::syncs;
use crate::workloads::WARM;

/// The pause before figures are taken: deferred work of a server (write-back, compaction) belongs
/// to the operations that caused it.
const SETTLE: Duration = Duration::from_millis(500);

/// The driver, and what is read of the server's process.
#[derive(Debug)]
pub(crate) struct Measured {
    /// The driver.
    pub(crate) driver: Driver,
    /// Process id of the server.
    pub(crate) pid: Option<u32>,
    /// Prometheus page of the server.
    pub(crate) metrics: Option<String>,
    /// Longest wait of `ready`.
    pub(crate) wait: Duration,
    /// Whether it waits for its caller before and after the measured part.
    pub(crate) hold: bool,
}

impl Measured {
    /// Prepares and runs `workload`.
    ///
    /// # Errors
    /// The preparation failed. Failures of measured operations are in the figures.
    pub(crate) async fn run(&self, workload: &Workload) -> Result<Figures, String> {
        match workload.kind {
            Kind::Idle => self.driver.way.env.clock.sleep(SETTLE).await,
            Kind::Ready(set) => return self.ready(workload, set).await,
            Kind::Audit(_) | Kind::Pages(..) => {}
            Kind::Put(_)
            | Kind::PutSigned(_)
            | Kind::Blocks(..)
            | Kind::Churn
            | Kind::Get(_)
            | Kind::Range(..)
            | Kind::Head(_)
            | Kind::Delete(_)
            | Kind::List(..)
            | Kind::Mixed(..) => self.driver.container().await?,
        }
        if matches!(workload.kind, Kind::Put(_) | Kind::PutSigned(_) | Kind::Blocks(..)) {
            self.driver.prepare(WARM, 0).await?;
        }
        self.driver.prepare_for(workload).await?;
        self.measure(workload).await
    }

    async fn measure(&self, workload: &Workload) -> Result<Figures, String> {
        let clock = &self.driver.way.env.clock;
        // Otherwise work of the server for the preparation would be counted here.
        clock.sleep(SETTLE).await;
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
            self.driver.measure(*workload, self.driver.pace.clone()).await?
        };
        clock.sleep(SETTLE).await;
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

    /// Requests the first blob of `set` every few milliseconds until the server serves it.
    async fn ready(&self, workload: &Workload, set: Set) -> Result<Figures, String> {
        let (driver, clock) = (&self.driver, &self.driver.way.env.clock);
        let begun = clock.monotonic();
        let call =
            Call::Get { name: name(set, 0), from: None, expect: driver.pool.body(0, set.size) };
        let mut client = driver.client();
        while let Err(error) = client.call(&call).await {
            // A 404 also shows that the server serves. `audit` checks whether the blob should
            // exist.
            if error.starts_with("404") {
                break;
            }
            if clock.monotonic().saturating_sub(begun) > self.wait {
                return Err(format!("not serving after {:?}: {error}", self.wait));
            }
            clock.sleep(Duration::from_millis(2)).await;
        }
        let mut tally = Tally { connects: 1, ..Tally::one()? };
        tally.seconds = clock.monotonic().saturating_sub(begun).as_secs_f64();
        let now = clock.now().since_unix().as_millis();
        tally.ended_unix_ms = u64::try_from(now).map_err(|e| e.to_string())?;
        Ok(Figures::new(workload, &tally))
    }
}
