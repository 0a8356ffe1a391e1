//! The container that is written to, and the removal at the end.

use std::cell::Cell;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Duration;

use futures_util::future::try_join_all;
use serde::Serialize;

use crate::cli::files::error::FilesError;
use crate::env::Env;

use super::args::BenchArgs;
use super::driver::call::Call;
use super::driver::client::Client;
use super::driver::data::Pool;
use super::driver::run::Driver;
use super::driver::shared::Pace;
use super::driver::target::Target;
use super::driver::workload::Kind;
use super::plan;
use super::plan::Step;
use super::service::Service;

/// Connections that delete.
const REMOVERS: usize = 16;
/// How often a list may begin with a name that was deleted: some servers are slow to forget.
const PATIENCE: u32 = 10;
/// The first rest between two such lists. Each further one is longer by as much.
const REST: Duration = Duration::from_millis(200);
/// Names in a page.
const PAGE: u32 = 1_000;

/// A container with a driver for it.
#[derive(Debug)]
pub(super) struct Bed {
    pub(super) driver: Driver,
    pub(super) container: String,
    /// The prefix of all names.
    prefix: String,
    is_s3: bool,
    /// Whether the user named the container.
    is_named: bool,
    /// Whether the container was there before.
    existing: bool,
    /// Requests that made the container, and removed it and its blobs.
    requests: Cell<u64>,
}

/// The numbers of removed items.
#[derive(Debug, Serialize)]
pub(super) struct Removed {
    /// The container.
    pub(super) container: String,
    /// Blobs that were written before workloads, to be read.
    pub(super) prepared_blobs: u64,
    /// Requests for that.
    pub(super) prepared_requests: u64,
    /// Requests that made the container, and that removed everything.
    pub(super) other_requests: u64,
    /// Why something is left, and what.
    pub(super) left: Option<String>,
}

impl Bed {
    /// A bed for the workloads that `args` name. Nothing is made yet.
    ///
    /// # Errors
    /// [`FilesError`].
    pub(super) fn new(args: &BenchArgs) -> Result<(Self, Vec<Step>), FilesError> {
        let service = Service::new(args)?;
        let is_s3 = service.is_s3();
        let Service { way, authority, root, dialect, container } = service;
        let id = drawn(&way.env);
        if args.existing && container.is_none() {
            return Err(FilesError::Usage("--existing: name the container".to_owned()));
        }
        let is_named = container.is_some();
        let container = container.unwrap_or_else(|| format!("blockyard-bench-{id}"));
        let prefix = format!("blockyard-bench-{id}/");
        let steps = plan::steps(args, &prefix, is_s3)?;
        let target = Target::new(&authority, &root, &container, dialect);
        let mut driver = Driver::new(way, target, Pool::new(plan::largest(&steps)));
        driver.pace.time = args.ops.is_none().then_some(args.duration.0);
        driver.pace.rate = args.rate;
        let (existing, requests) = (args.existing, Cell::new(0));
        Ok((Self { driver, container, prefix, is_s3, is_named, existing, requests }, steps))
    }

    /// The protocol, for figures.
    pub(super) const fn protocol(&self) -> &'static str {
        if self.is_s3 { "s3" } else { "blob" }
    }

    /// The pace of a workload: deletes have as many blobs as were written for them.
    pub(super) fn pace_of(&self, step: &Step) -> Pace {
        let mut pace = self.driver.pace.clone();
        if matches!(step.workload.kind, Kind::Delete(_)) {
            pace.time = None;
        }
        pace
    }

    /// Creates the container, unless an existing one is used.
    ///
    /// # Errors
    /// [`FilesError`]: it exists, or cannot be made.
    pub(super) async fn make(&self) -> Result<(), FilesError> {
        if self.existing {
            return Ok(());
        }
        let mut client = self.driver.client();
        let made = match client.call(&Call::ProbeContainer).await {
            Ok(_) => Err(FilesError::Usage(format!(
                "`{}` exists already; name a container that does not, or none, or give --existing",
                self.container
            ))),
            Err(error) if error.starts_with("404") => {
                match client.call(&Call::CreateContainer { may_exist: false }).await {
                    Ok(_) => Ok(()),
                    // Refused: it was not created. After 408 the outcome is unknown.
                    Err(error) if error.starts_with('4') && !error.starts_with("408") => {
                        Err(FilesError::Wrong(error))
                    }
                    Err(error) => Err(FilesError::Wrong(self.doubtful(&error).await)),
                }
            }
            Err(error) => Err(FilesError::Wrong(error)),
        };
        self.count(&client);
        made
    }

    /// Removes the container of a creation that may have been carried out. Returns a message.
    async fn doubtful(&self, why: &str) -> String {
        if self.is_named && !self.is_s3 {
            // Another user may have created it, with blobs that a deletion would remove too.
            let name = &self.container;
            return format!(
                "{why}; `{name}` may have been made: `blockyard rm --recursive --container` removes it"
            );
        }
        let mut client = self.driver.client();
        let removed = client.call(&Call::DeleteContainer).await;
        self.count(&client);
        match removed {
            Err(error) if !error.starts_with("404") => format!("{why}; {}", self.left(&error)),
            Ok(_) | Err(_) => format!("{why}; nothing is left"),
        }
    }

    /// Removes everything that was written, and the container if it was made.
    pub(super) async fn clear(&self) -> Removed {
        let cleared = self.cleared().await;
        let prepared = self.driver.prepared();
        Removed {
            container: self.container.clone(),
            prepared_blobs: prepared.blobs,
            prepared_requests: prepared.requests,
            other_requests: self.requests.get(),
            left: cleared.err().map(|why| self.left(&why)),
        }
    }

    /// The message about items that are left.
    pub(super) fn left(&self, why: &str) -> String {
        let Self { container, prefix, .. } = self;
        match self.existing {
            true => format!("blobs below {prefix} of `{container}` were not removed: {why}"),
            false => format!("`{container}` was not removed: {why}"),
        }
    }

    async fn cleared(&self) -> Result<(), String> {
        // A container of Blob goes with its blobs. A bucket must be empty.
        if self.existing || self.is_s3 {
            self.remove_blobs().await?;
            self.remove_unfinished().await?;
        }
        if self.existing {
            return Ok(());
        }
        let mut client = self.driver.client();
        let deleted = client.call(&Call::DeleteContainer).await;
        self.count(&client);
        deleted.map(drop)
    }

    /// Deletes all blobs page by page, until a page is empty.
    async fn remove_blobs(&self) -> Result<(), String> {
        let mut lister = self.driver.client();
        let mut listed = Listed::default();
        loop {
            let prefix = self.prefix.clone();
            let page = lister.call(&Call::List { prefix, limit: PAGE, marker: None }).await?;
            let names = self.driver.target.entries(&page.page);
            let Some((first, _)) = names.first() else {
                self.count(&lister);
                return Ok(());
            };
            self.rest(listed.page(first)?).await;
            names.iter().try_for_each(|(name, _)| self.own(name))?;
            let calls = names.into_iter().map(|(name, _)| Call::Delete { name }).collect();
            self.each(RefCell::new(calls)).await?;
        }
    }

    /// Drops blocks that no blob has, which failures leave.
    async fn remove_unfinished(&self) -> Result<(), String> {
        let mut client = self.driver.client();
        let mut listed = Listed::default();
        loop {
            let page = client.call(&Call::Unfinished { prefix: self.prefix.clone() }).await?;
            let unfinished = self.driver.target.unfinished(&page.page);
            let Some((first, _)) = unfinished.first() else {
                self.count(&client);
                return Ok(());
            };
            self.rest(listed.page(first)?).await;
            unfinished.iter().try_for_each(|(name, _)| self.own(name))?;
            for (name, upload) in unfinished {
                client.call(&Call::Abort { name: name.clone(), upload }).await?;
                if !self.is_s3 {
                    client.call(&Call::Delete { name }).await?;
                }
            }
        }
    }

    /// Makes calls on some connections. A missing blob is not a failure.
    async fn each(&self, calls: RefCell<VecDeque<Call>>) -> Result<(), String> {
        let one = |_| async {
            let mut client = self.driver.client();
            loop {
                let Some(call) = calls.borrow_mut().pop_front() else { break };
                match client.call(&call).await {
                    Err(error) if !error.starts_with("404") => return Err(error),
                    Ok(_) | Err(_) => {}
                }
            }
            self.count(&client);
            Ok(())
        };
        try_join_all((0..REMOVERS).map(one)).await.map(drop)
    }

    /// Refuses a name that this command has not written: the server has not kept to the prefix.
    fn own(&self, name: &str) -> Result<(), String> {
        match name.starts_with(&self.prefix) {
            true => Ok(()),
            false => Err(format!("the server listed {name:?}, which does not begin as asked")),
        }
    }

    /// Gives a server time to finish deletions, more each time.
    async fn rest(&self, times: u32) {
        if times > 0 {
            self.driver.way.env.clock.sleep(REST * times).await;
        }
    }

    fn count(&self, client: &Client) {
        self.requests.set(self.requests.get() + client.requests);
    }
}

/// Detects a list that does not get shorter.
#[derive(Debug, Default)]
struct Listed {
    first: String,
    times: u32,
}

impl Listed {
    /// Takes the first name of a page whose names are about to be deleted. Returns how often it was
    /// first before.
    fn page(&mut self, first: &str) -> Result<u32, String> {
        let is_again = self.first == first;
        self.times = if is_again { self.times + 1 } else { 0 };
        first.clone_into(&mut self.first);
        match self.times < PATIENCE {
            true => Ok(self.times),
            false => Err(format!("the server still lists {first:?} after it was deleted")),
        }
    }
}

/// A random name.
fn drawn(env: &Env) -> String {
    format!("{:08x}", env.rand.below(1 << 32))
}
