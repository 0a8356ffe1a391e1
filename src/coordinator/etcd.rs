//! The coordinator of a cluster, on an etcd of version 3.4 or newer.
//!
//! It speaks etcd's gRPC over the program's own HTTP/2, TLS and network (`etcd/grpc.rs`,
//! `etcd/link.rs`; ADR 0051 says why no library does). `etcd/client.rs` repeats a call while that
//! is safe, `etcd/meaning.rs` decides what a failure means, `etcd/txn.rs` and `etcd/watch.rs` have
//! the transactions and watches, `etcd/range.rs` the pages of a range.
//!
//! Limits, those of etcd's defaults ("System limits" and "Configuration options" of its
//! documentation): 128 conditions and 128 changes of a transaction, 1.5 MiB of a request, 2 GiB of
//! all data. A full etcd refuses changes until its operator frees space and disarms its alarm
//! ("Maintenance").
//!
//! Unlike in the other stores, the revision also grows by changes outside of the prefix; sessions
//! live for whole seconds and at least two; and of several changes of one key in a transaction only
//! the last one is made.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::env::Env;
use crate::env::net::Dial;
use crate::env::net::TcpDial;

use super::api::Compare;
use super::api::Coordinator;
use super::api::Error;
use super::api::Op;
use super::api::Reason;
use super::api::Revision;
use super::api::Session;
use super::api::Snapshot;
use super::api::TxnReply;
use super::api::Versioned;
use super::api::Watch;

use client::Client;
use client::Repeat;
use grpc::CallError;
use keys::Keys;
use link::Link;
use meaning::Meaning;
use meaning::meaning;
use meaning::of_change;
use meaning::of_read;
use wire::KeyValue;
use wire::LeaseGrantRequest;
use wire::LeaseKeepAliveRequest;
use wire::LeaseRevokeRequest;
use wire::RangeRequest;
use wire::StatusRequest;
use wire::TxnRequest;

mod client;
mod config;
mod grpc;
mod keys;
mod link;
mod meaning;
mod range;
mod txn;
mod watch;
mod wire;

pub use config::CALL_TIMEOUT;
pub use config::CONNECT_TIMEOUT;
pub use config::EtcdConfig;
pub use config::EtcdIdentity;
pub use config::EtcdTls;
pub use config::EtcdUser;
pub use config::PREFIX;

/// The oldest version that is served: major and minor.
const VERSION_MIN: (u32, u32) = (3, 4);
/// The shortest life of a session, seconds. With its default timeouts etcd rounds shorter ones up
/// to it: a lease must outlive an election.
const TTL_MIN: i64 = 2;
/// The longest, seconds. Etcd refuses longer ones.
const TTL_MAX: i64 = 9_000_000_000;

/// The coordinator on an etcd. Cheap to clone. Its connections and watches end with the tasks of
/// its [`Env`].
///
/// A call takes at most [`EtcdConfig::call_timeout`], except a range, whose pages have that time
/// each, and the opening of a watch, which takes two calls. Within it a call is repeated, at
/// another member too, as long as nothing can have been changed twice. A transaction is not
/// repeated once it was sent, unless etcd says that it did not begin it.
#[derive(Clone, Debug)]
pub struct EtcdCoordinator {
    client: Arc<Client>,
    keys: Keys,
}

impl EtcdCoordinator {
    /// Connects, and checks the version, the user and the right to read.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the configuration is wrong, or if no member answers in time, is
    /// too old or refuses to be read.
    pub async fn connect(config: EtcdConfig, env: &Env) -> Result<Self, Error> {
        Self::connect_over(Arc::new(TcpDial), config, env).await
    }

    async fn connect_over(
        dial: Arc<dyn Dial>,
        config: EtcdConfig,
        env: &Env,
    ) -> Result<Self, Error> {
        if config.prefix.is_empty() {
            return Err(unavailable("the prefix of keys in etcd is empty"));
        }
        let link = Link::new(&config, dial, env).map_err(|why| unavailable(&why))?;
        let keys = Keys::new(&config.prefix);
        let client = Client::new(link, config.user, config.call_timeout, env);
        let coordinator = Self { client: Arc::new(client), keys };
        let status = coordinator.client.call(&StatusRequest {}, Repeat::Harmless).await;
        check_version(&status.map_err(|error| of_read(&error))?.version)?;
        coordinator.get(b"").await?;
        Ok(coordinator)
    }

    /// The error of a transaction for which etcd has no room. It says so also when it did carry the
    /// transaction out and only then found that it grew too large (`quotaApplierV3` in its source).
    /// `before` is a revision that the store had before the transaction was sent.
    async fn full(&self, before: i64, request: &TxnRequest, error: &CallError) -> Error {
        let read = self.client.call(&txn::read_back(request), Repeat::Harmless).await;
        let Ok(answer) = read else { return Error::Ambiguous };
        let revision = self.client.note(answer.header);
        let mut ranges = answer.responses.into_iter().filter_map(|one| one.range);
        // It would have changed all of these keys, so one that was not changed since proves enough.
        let is_old = |kv: &KeyValue| kv.mod_revision <= before;
        if revision == before || ranges.any(|range| range.kvs.iter().any(is_old)) {
            return Error::Unavailable { reason: Reason::full(meaning::text(error)) };
        }
        Error::Ambiguous
    }
}

/// Refuses versions that are too old.
fn check_version(version: &str) -> Result<(), Error> {
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found >= VERSION_MIN {
        return Ok(());
    }
    let (major, minor) = VERSION_MIN;
    Err(unavailable(&format!("etcd has version {version}; {major}.{minor} is the oldest served")))
}

fn unavailable(reason: &str) -> Error {
    Error::Unavailable { reason: reason.into() }
}

fn revision(number: i64) -> Revision {
    Revision(u64::try_from(number).unwrap_or(0))
}

fn versioned(kv: KeyValue) -> Versioned {
    Versioned { value: kv.value, mod_revision: revision(kv.mod_revision) }
}

/// Whole seconds, rounded up: a session never ends early.
fn seconds(ttl: Duration) -> i64 {
    let whole = ttl.as_secs().saturating_add(u64::from(ttl.subsec_nanos() > 0));
    i64::try_from(whole).unwrap_or(TTL_MAX).clamp(TTL_MIN, TTL_MAX)
}

#[async_trait]
impl Coordinator for EtcdCoordinator {
    /// As the trait says: a read through etcd's quorum.
    async fn get(&self, key: &[u8]) -> Result<Option<Versioned>, Error> {
        let read = RangeRequest { key: self.keys.outer(key), ..RangeRequest::default() };
        let answer = self.client.call(&read, Repeat::Harmless).await;
        let answer = answer.map_err(|error| of_read(&error))?;
        self.client.note(answer.header);
        Ok(answer.kvs.into_iter().next().map(versioned))
    }

    async fn range(&self, prefix: &[u8]) -> Result<Snapshot, Error> {
        range::range(&self.client, &self.keys, prefix).await
    }

    /// As the trait says. If a condition does not hold, that is the answer, even if a session of
    /// the changes has ended. A full etcd is [`Error::Ambiguous`] until it is certain that the
    /// transaction was not carried out.
    async fn txn(&self, when: &[Compare], then: &[Op]) -> Result<TxnReply, Error> {
        let request = txn::request(&self.keys, when, then)?;
        let before = self.client.newest();
        let repeat = if then.is_empty() { Repeat::Harmless } else { Repeat::NotDone };
        match self.client.call(&request, repeat).await {
            Ok(answer) => {
                let at = revision(self.client.note(answer.header));
                let is_done = answer.succeeded;
                Ok(if is_done { TxnReply::Committed(at) } else { TxnReply::Rejected(at) })
            }
            Err(error) if then.is_empty() => Err(of_read(&error)),
            Err(error) if meaning(&error) == Meaning::Full => {
                Err(self.full(before, &request, &error).await)
            }
            Err(error) => Err(of_change(&error)),
        }
    }

    /// As the trait says. [`Watch::next`] reports [`Error::Unavailable`] when etcd was not reached
    /// for the timeout of a call, and goes on without a gap when it is asked again.
    async fn watch(&self, prefix: &[u8], after: Revision) -> Result<Box<dyn Watch>, Error> {
        Ok(Box::new(watch::watch(&self.client, &self.keys, prefix, after).await?))
    }

    /// As the trait says. `ttl` is rounded up to whole seconds, and to 2 s. After an election of
    /// etcd's leader, sessions begin their time anew.
    async fn open_session(&self, ttl: Duration) -> Result<Session, Error> {
        let grant = LeaseGrantRequest { ttl: seconds(ttl) };
        // A lease of whose grant nothing was heard ends by itself.
        let granted = self.client.call(&grant, Repeat::Harmless).await;
        let granted = granted.map_err(|error| of_read(&error))?;
        let id = u64::try_from(granted.id).ok().filter(|id| *id > 0 && granted.error.is_empty());
        let id = id.ok_or_else(|| unavailable(&format!("etcd grants no lease: {}", granted.error)));
        Ok(Session(id?))
    }

    async fn keep_alive(&self, session: Session) -> Result<(), Error> {
        let id = txn::lease_of(session).ok_or(Error::SessionEnded)?;
        let kept = self.client.call(&LeaseKeepAliveRequest { id }, Repeat::Harmless).await;
        let kept = kept.map_err(|error| of_read(&error))?;
        if kept.ttl > 0 { Ok(()) } else { Err(Error::SessionEnded) }
    }

    async fn close_session(&self, session: Session) -> Result<(), Error> {
        let Some(id) = txn::lease_of(session) else { return Ok(()) };
        // Twice does no harm: a lease that is gone is what was wanted.
        match self.client.call(&LeaseRevokeRequest { id }, Repeat::Harmless).await {
            Ok(_) => Ok(()),
            Err(error) if meaning(&error) == Meaning::NoLease => Ok(()),
            Err(error) => Err(of_change(&error)),
        }
    }
}

#[cfg(test)]
mod tests;
