//! Reports to a manager: the load of the partitions of all hosts of this process since the last
//! report.

use std::sync::Arc;

use bytes::Bytes;

use crate::env::Clock;
use crate::index::api::Error;
use crate::index::api::LoadReport;
use crate::index::engine::Partition;
use crate::index::metrics::Metrics;
use crate::index::server::IndexServer;
use crate::index::server::host::Host;
use crate::index::server::measure::LoadSample;
use crate::index::server::spread::border;
use crate::types::HostId;
use crate::types::PartitionId;

/// Reports the load of all partitions of a server to one manager. A report ends the tick of each
/// partition's meter and counts in the metrics, so a server has one manager at a time.
#[derive(Debug)]
pub struct LoadReports {
    server: Arc<IndexServer>,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
    sample: LoadSample,
    /// The versions of the hosts' sets of partitions that the sample follows.
    followed: Option<Vec<u64>>,
}

impl IndexServer {
    /// Begins to report load. The first report covers the time since the partitions were opened.
    ///
    /// # Errors
    /// [`Error::Unavailable`] for a server without hosts.
    pub fn load_reports(self: &Arc<Self>) -> Result<LoadReports, Error> {
        let deps = self.deps()?;
        let clock = Arc::clone(&deps.env.clock);
        let hosts = self.hosts.iter().map(|host| host.context.host).collect();
        let sample = LoadSample::new(clock.monotonic(), hosts);
        let (server, metrics) = (Arc::clone(self), deps.metrics.clone());
        Ok(LoadReports { server, clock, metrics, sample, followed: None })
    }

    fn in_key_order(&self) -> Vec<(Arc<Partition>, HostId)> {
        let of_host = |host: &Host| {
            let id = host.context.host;
            host.opened.all().into_iter().map(move |partition| (partition, id))
        };
        let mut all: Vec<_> = self.hosts.iter().flat_map(of_host).collect();
        all.sort_by_cached_key(|(one, _)| (one.core.range().low().clone(), one.core.keys.stripe()));
        all
    }
}

impl LoadReports {
    /// Takes a report.
    pub fn take(&mut self) {
        let now = self.clock.monotonic();
        let hosts = self.server.hosts.iter();
        let versions: Vec<u64> = hosts.map(|host| host.opened.version()).collect();
        // Thousands of partitions are sorted only when the set has changed.
        if self.followed.as_ref() != Some(&versions) {
            self.sample.follow(self.server.in_key_order());
            self.followed = Some(versions);
        }
        self.sample.take(now, &self.server.claims.taken());
        let loads = self.sample.report().partitions.iter().map(|partition| partition.load);
        self.metrics.sample(&self.sample.added, loads);
    }

    /// The last report.
    #[must_use]
    pub fn latest(&self) -> &LoadReport {
        self.sample.report()
    }

    /// The keys of recent requests to a partition of the last report, in order, with repeats. Each
    /// is the position before the blob of the request. From now on, until [`Self::rest`], the
    /// partition samples enough requests for a manager that asks after every report.
    #[must_use]
    pub fn recent_keys(&self, partition: PartitionId) -> Vec<Bytes> {
        let found = self.sample.of(partition);
        let now = self.sample.report().at;
        let samples = found.map(|(of, meter)| meter.samples(now, of.load.requests()));
        samples.into_iter().flatten().filter_map(border).collect()
    }

    /// Makes a partition sample few requests until its keys are requested again.
    pub fn rest(&self, partition: PartitionId) {
        if let Some((_, meter)) = self.sample.of(partition) {
            meter.rest();
        }
    }
}
