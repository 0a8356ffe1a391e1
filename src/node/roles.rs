//! The roles above storage: index and front end. They start from the bottom up and stop from the
//! top down.

mod front_role;
mod index_role;

use std::path::Path;
use std::sync::Arc;

use crate::admin::Control;
use crate::env::Env;
use crate::env::Tasks;
use crate::frontend::Secrets;
use crate::index::IndexServer;
use crate::index::LocalPartitions;
use crate::telemetry::Registry;

use super::assembly::Base;
use super::assembly::FrontParts;
use super::assembly::Requests;
use super::backup::NodeBackups;
use super::backup::Source;
use super::config::Config;
use super::error::NodeError;
use super::keys::Erase;
use super::keys::NodeKeys;
use super::storage::Storage;

pub(super) use front_role::FrontEndSetup;
pub(super) use front_role::FrontRole;
pub(super) use front_role::seal_all;
pub(super) use index_role::IndexRole;
pub(super) use index_role::balancing;

/// The running roles of a node alone.
#[derive(Debug)]
pub(super) struct Roles {
    index: IndexRole,
    front: FrontRole,
    /// Whether this start sealed the secrets of all partitions.
    all_sealed: bool,
}

/// The same environment with tasks of its own, so that a stop can wait for one role while those
/// below it still work.
pub(super) fn with_own_tasks(env: &Env) -> Env {
    Env { tasks: Tasks::new().reporting_to(&env.tasks), ..env.clone() }
}

impl Roles {
    /// Recovers the index, creates the configured accounts, and serves the blob listener.
    ///
    /// # Errors
    /// [`NodeError`]; nothing was lost.
    pub(super) async fn start(
        config: &Config,
        base: Base,
        front_end: FrontEndSetup<'_>,
        registry: &mut Registry,
    ) -> Result<Self, NodeError> {
        let (env, requests) = (with_own_tasks(&base.env), Requests::of_one(&base.env));
        let index = IndexRole::start(config, base.clone(), front_end.audit_log, registry).await?;
        let parts = FrontParts::new(base, index.host(), requests.clone(), &env).await?;
        let all_sealed = seal_all(config, &parts.router, front_end.secrets).await?;
        let front = FrontRole::start(config, (parts, env), front_end, (None, registry)).await?;
        index.start_reclaim(index.host(), requests.all, registry);
        front.show_partitions(Arc::new(LocalPartitions::alone(index.index())));
        Ok(Self { index, front, all_sealed })
    }

    /// The parts of the node that the admin listener shows and changes.
    pub(super) fn control(&self) -> Control {
        self.front.control.clone()
    }

    /// The partitions served here.
    #[must_use]
    pub(super) fn index(&self) -> Arc<IndexServer> {
        self.index.index()
    }

    /// Backups of the store.
    #[must_use]
    pub(super) fn backups(
        &self,
        storage: &Storage,
        env: &Env,
        registry: &mut Registry,
    ) -> NodeBackups {
        let requests = Arc::clone(&self.front.parts.requests.all);
        let source = Source::serving(storage, self.index(), requests);
        NodeBackups::new(source, env.clone()).registered(registry)
    }

    /// The master keys, as the admin listener shows and rotates them.
    #[must_use]
    pub(super) fn keys(&self, file: &Path, secrets: Secrets) -> NodeKeys {
        let FrontRole { parts, env, .. } = &self.front;
        NodeKeys::new(file, secrets, Arc::clone(&parts.router), env.clone())
    }

    /// Rewrites files in which older releases left secrets plain.
    pub(super) fn erase_plain_secrets(&self, storage: &Storage, secrets: &Secrets) {
        let erase = Erase {
            index: self.index(),
            capacity: Arc::clone(&storage.capacity),
            coordinator: Arc::clone(&storage.coordinator),
            ring: secrets.ring().id(),
            sealed: self.all_sealed,
            router: Arc::clone(&self.front.parts.router),
            secrets: secrets.clone(),
        };
        erase.start(&self.index.reclaim);
    }

    /// Finishes running requests and refuses new ones. The next start has nothing to replay.
    pub(super) async fn stop(self) {
        self.front.stop().await;
        self.index.stop().await;
    }
}

#[cfg(test)]
mod tests;
