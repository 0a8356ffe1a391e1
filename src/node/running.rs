//! A node that serves. Its roles start from the bottom up and stop from the top down.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use crate::admin::ErrorForm;
use crate::admin::Phase;
use crate::admin::UnservedServer;
use crate::env::Env;
use crate::frontend::Secrets;
use crate::telemetry::Registry;

use super::assembly::Base;
use super::config::AdminAddress;
use super::config::Config;
use super::config::UnservedService;
use super::disks::NodeDisks;
use super::error::NodeError;
use super::foundation::Foundation;
use super::keys::master_key;
use super::listeners::Bound;
use super::listeners::Listeners;
use super::metrics;
use super::roles::FrontEndSetup;
use super::roles::Roles;
use super::storage::Owner;
use super::storage::Storage;

/// The addresses of a node.
#[derive(Debug)]
pub struct Serving {
    /// The bound address of the blob listener.
    pub blob: SocketAddr,
    /// The bound address of the listener of S3 alone, if there is one.
    pub s3: Option<SocketAddr>,
    /// The bound address of the admin listener.
    pub admin: AdminAddress,
    /// The bound addresses of services that are not served.
    pub unserved: Vec<(UnservedService, SocketAddr)>,
    /// Set if https is served. The inner value is the file of the node's own authority, if it has
    /// one.
    pub certificate: Option<Option<PathBuf>>,
}

/// A node that serves.
#[derive(Debug)]
pub struct Node {
    /// Its addresses.
    pub serving: Serving,
    foundation: Foundation,
    storage: Storage,
    roles: Roles,
}

impl Node {
    /// Starts the roles from the bottom up. The admin listener answers first, so that the start can
    /// be observed.
    ///
    /// # Errors
    /// [`NodeError`] when the node cannot start; nothing was lost.
    pub async fn start(config: &Config, env: Env, listeners: Listeners) -> Result<Self, NodeError> {
        let dialects = listeners.dialects(config);
        let Listeners { blob, s3, admin, unserved, .. } = listeners;
        let mut all = Registry::default();
        let mut foundation = Foundation::start(config, env, admin, &mut all).await?;
        let env = foundation.env.clone();
        let is_new = Storage::is_new(&config.data);
        let storage = foundation.open_storage(config, Owner::Alone, &mut all).await?;
        let registry = metrics::of_roles(&mut all);
        let (blob_address, s3_address) = (blob.address, s3.as_ref().map(|bound| bound.address));
        let (coordinator, now) = (storage.coordinator.as_ref(), env.clock.now());
        let key_ring = master_key::open(&config.master_key_file, coordinator, is_new, now).await?;
        let plain = key_ring.plain;
        let secrets = Secrets::new(key_ring.ring, Arc::clone(&env.rand));
        let front = FrontEndSetup {
            blob,
            s3,
            dialects,
            tls: foundation.tls(),
            secrets: &secrets,
            audit_log: &foundation.audit_log,
        };
        let roles = Roles::start(config, Base::of(&storage, &env), front, registry).await?;
        if plain {
            roles.erase_plain_secrets(&storage, &secrets);
        }
        let (capacity, coordinator) =
            (Arc::clone(&storage.capacity), Arc::clone(&storage.coordinator));
        let disks = NodeDisks::start(capacity, coordinator, roles.index(), env.clone()).await?;
        let admin = &foundation.admin;
        admin.disks.set(Arc::new(disks)).expect("set once");
        let backups = roles.backups(&storage, &env, registry);
        admin.backups.set(Arc::new(backups)).expect("set once");
        admin.registry.set(all).expect("set once");
        let keys = roles.keys(&config.master_key_file, secrets.clone());
        admin.keys.set(Arc::new(keys)).expect("set once");
        admin.control.set(roles.control()).expect("set once");
        let unserved = start_unserved(unserved, config, &foundation);
        admin.readiness.set(Phase::Ready);
        foundation.keep_certificate();
        let serving = Serving {
            blob: blob_address,
            s3: s3_address,
            admin: foundation.admin_address.clone(),
            unserved,
            certificate: foundation.authority(),
        };
        Ok(Self { serving, foundation, storage, roles })
    }

    /// The path of a new link that logs one browser in to the console, once, within a minute.
    /// `None` if the operating system returns no random bytes.
    #[must_use]
    pub fn login_link(&self) -> Option<String> {
        self.foundation.login_link()
    }

    /// Stops the roles from the top down, each when nothing uses it any more. The admin listener
    /// stops last, so that the drain can be observed.
    pub async fn stop(self) {
        self.foundation.admin.readiness.set(Phase::Draining);
        self.roles.stop().await;
        self.storage.capacity.shutdown().await;
        self.foundation.stop().await;
    }
}

/// Answers on the ports of services that are not served. Returns their addresses.
fn start_unserved(
    ports: Vec<(UnservedService, Bound)>,
    config: &Config,
    foundation: &Foundation,
) -> Vec<(UnservedService, SocketAddr)> {
    let start = |(service, bound): (UnservedService, Bound)| {
        let form = match service {
            UnservedService::Queue => ErrorForm::Xml,
            UnservedService::Table => ErrorForm::Odata,
        };
        let server = UnservedServer {
            listener: bound.listener,
            tls: foundation.tls(),
            service: service.name(),
            form,
            stall: config.response_stall,
        };
        server.start(&foundation.env, foundation.stopping().clone());
        (service, bound.address)
    };
    ports.into_iter().map(start).collect()
}
