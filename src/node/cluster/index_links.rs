//! How this process reaches the index, and how the others ask it about its requests.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use async_trait::async_trait;

use crate::coordinator;
use crate::coordinator::Coordinator;
use crate::coordinator::hosts::HostClaims;
use crate::coordinator::nodes;
use crate::coordinator::nodes::NodeAt;
use crate::coordinator::nodes::NodeTable;
use crate::env::Env;
use crate::index::ClusterRequests;
use crate::index::Error;
use crate::index::InFlight;
use crate::index::LocalRequests;
use crate::index::Processes;
use crate::index::WriteNumbers;
use crate::index::WriterSessions;
use crate::index::inflight::REQUESTS_SERVICE;
use crate::index::inflight::RequestsService;
use crate::index::remote::ClusterIndex;
use crate::index::remote::INDEX_SERVICE;
use crate::index::remote::IndexClients;
use crate::index::remote::IndexService;
use crate::index::remote::KnownWriters;
use crate::index::remote::Peers;
use crate::index::remote::ServedIndex;
use crate::node::assembly::Requests;
use crate::rpc::NodeIdentity;
use crate::rpc::RemoteNode;
use crate::rpc::Services;
use crate::types::NodeRoles;

use super::reached::ReachedNodes;

/// What other processes may ask of this one, before it can ask them.
#[derive(Debug)]
pub(super) struct IndexServices {
    here: NodeIdentity,
    served: Arc<ServedIndex>,
    sessions: Arc<Sessions>,
    inflight: InFlight,
    own: LocalRequests,
}

/// The index of the cluster, as this process reaches it, and the requests of all processes.
#[derive(Debug)]
pub(super) struct IndexLinks {
    /// What this process serves of the index.
    pub(super) served: Arc<ServedIndex>,
    pub(super) index: Arc<ClusterIndex>,
    /// Which processes serve partitions.
    pub(super) claims: Arc<HostClaims>,
    pub(super) requests: Requests,
    /// Which processes have ended that number their writes.
    pub(super) writers: Arc<dyn WriterSessions>,
}

/// The processes that ask the index and have a session, as the table of nodes says.
#[derive(Debug)]
struct Sessions {
    here: NodeIdentity,
    table: Arc<NodeTable>,
    refreshed: Refreshed,
}

/// Refreshes of the table.
#[derive(Debug, Default)]
struct Refreshed {
    /// How many have begun.
    begun: AtomicU64,
    /// The number of the last one that succeeded. Held during a refresh.
    last: tokio::sync::Mutex<u64>,
}

fn asking(at: &NodeAt) -> Option<NodeIdentity> {
    let life = at.life.as_ref().filter(|life| life.roles.has_some(NodeRoles::ASKING))?;
    Some(NodeIdentity { node: at.id, incarnation: life.incarnation })
}

#[async_trait]
impl IndexClients for Sessions {
    /// This process too, whatever the table says: its own requests count while it serves.
    fn all(&self) -> Vec<NodeIdentity> {
        let others = self.table.all();
        let others = others.iter().filter_map(asking).filter(|other| *other != self.here);
        others.chain([self.here]).collect()
    }

    fn has(&self, process: NodeIdentity) -> bool {
        let at = self.table.get(process.node);
        process == self.here || at.as_ref().and_then(asking) == Some(process)
    }

    /// One refresh serves all that wait for one when it begins.
    async fn refresh(&self) -> Result<(), Error> {
        let seen = self.refreshed.begun.load(Ordering::SeqCst);
        let mut last = self.refreshed.last.lock().await;
        if *last > seen {
            return Ok(());
        }
        let begun = self.refreshed.begun.fetch_add(1, Ordering::SeqCst) + 1;
        self.read_table().await?;
        *last = begun;
        Ok(())
    }
}

impl Sessions {
    async fn read_table(&self) -> Result<(), Error> {
        let unread = |error: coordinator::Error| Error::Unavailable(error.to_string());
        self.table.refresh().await.map_err(unread)?;
        if self.table.incarnation(self.here.node) == Some(self.here.incarnation) {
            return Ok(());
        }
        // What its requests need may have been freed.
        Err(Error::Unavailable("the session of this process has ended".to_owned()))
    }
}

/// The processes that may have running requests.
#[derive(Debug)]
struct Known {
    coordinator: Arc<dyn Coordinator>,
    claims: Arc<HostClaims>,
    index: Arc<ClusterIndex>,
    sessions: Arc<Sessions>,
    reached: Arc<ReachedNodes>,
}

#[async_trait]
impl Processes for Known {
    async fn all(&self) -> Result<Vec<NodeIdentity>, Error> {
        self.index.index_clients(&*self.sessions).await
    }

    async fn settled(&self) -> Result<(BTreeSet<NodeIdentity>, u64), Error> {
        let unread = |error: coordinator::Error| Error::NoAnswer(error.to_string());
        // First: a session that begins later changes it.
        let last = nodes::last_life(&*self.coordinator).await.map_err(unread)?;
        self.sessions.refresh().await?;
        // After that: who claims later knows, before it opens a partition, whose session has ended.
        self.claims.refresh(&*self.coordinator).await.map_err(unread)?;
        let with_session: BTreeSet<NodeIdentity> = self.sessions.all().into_iter().collect();
        if !self.all().await?.iter().eq(&with_session) {
            return Err(Error::NoAnswer("a process comes or goes".to_owned()));
        }
        Ok((with_session, last.0))
    }

    fn peer(&self, process: NodeIdentity) -> Option<Arc<RemoteNode>> {
        self.reached.peer(process.node)
    }
}

impl IndexServices {
    pub(super) fn new(env: &Env, here: NodeIdentity, table: &Arc<NodeTable>) -> Self {
        let inflight = InFlight::default();
        let own = LocalRequests::new(inflight.clone(), Arc::clone(&env.clock));
        let (table, refreshed) = (Arc::clone(table), Refreshed::default());
        let sessions = Arc::new(Sessions { here, table, refreshed });
        let served = Arc::new(ServedIndex::new(here));
        Self { here, served, sessions, inflight, own }
    }

    /// Answers the calls of other processes.
    pub(super) fn add_to(&self, services: &mut Services, env: &Env) {
        let index_clients = Arc::clone(&self.sessions) as Arc<dyn IndexClients>;
        let index =
            IndexService::new(Arc::clone(&self.served), index_clients, Arc::clone(&env.clock));
        services.insert(INDEX_SERVICE, Arc::new(index));
        let incarnation = self.here.incarnation;
        let requests = RequestsService { requests: self.own.clone(), incarnation };
        services.insert(REQUESTS_SERVICE, Arc::new(requests));
    }

    /// Reaches the index.
    ///
    /// # Errors
    /// Those of the coordinator.
    pub(super) async fn link(
        self,
        env: &Env,
        coordinator: &Arc<dyn Coordinator>,
        reached: &Arc<ReachedNodes>,
    ) -> Result<IndexLinks, coordinator::Error> {
        let Self { here, served, sessions, inflight, own } = self;
        let claims = Arc::new(HostClaims::start(&**coordinator).await?);
        let peers = Arc::clone(reached) as Arc<dyn Peers>;
        let others = (Arc::clone(&claims), peers);
        let index =
            ClusterIndex::new((here.node, Arc::clone(&served)), others, Arc::clone(&env.clock));
        let index = Arc::new(index);
        let (asked, ends) = (Arc::clone(&served), Arc::clone(&sessions) as Arc<dyn IndexClients>);
        let writers = Arc::new(KnownWriters::new(asked, ends));
        let known = Known {
            coordinator: Arc::clone(coordinator),
            claims: Arc::clone(&claims),
            index: Arc::clone(&index),
            sessions,
            reached: Arc::clone(reached),
        };
        let all = ClusterRequests::shared(here, own, Arc::new(known), env.tasks.clone());
        let numbers = Some(Arc::new(WriteNumbers::new(here)));
        let requests = Requests { inflight, all, numbers };
        Ok(IndexLinks { served, index, claims, requests, writers })
    }
}
