//! Create, read, change and delete containers.

use std::sync::Arc;

use crate::frontend::accounts::Account;
use crate::frontend::commit;
use crate::frontend::errors;
use crate::frontend::errors::Busy;
use crate::frontend::errors::Subject;
use crate::frontend::facts;
use crate::frontend::lookup;
use crate::frontend::lookup::ContainerTarget;
use crate::frontend::ops::acl;
use crate::frontend::state::FrontEnd;
use crate::index;
use crate::index::ContainerChange;
use crate::index::Containers;
use crate::index::CreateContainer;
use crate::index::DeleteContainer;
use crate::index::History;
use crate::index::ReadAccount;
use crate::index::UpdateContainer;
use crate::index::Written;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::ContainerSettings;
use crate::protocol::model::reply::Change;
use crate::types::AccountName;
use crate::types::ContainerId;
use crate::types::ContainerName;
use crate::types::EncryptionScope;
use crate::types::Metadata;
use crate::types::PublicAccess;

/// The properties of a new container.
#[derive(Debug)]
pub(crate) struct NewContainer {
    pub(crate) metadata: Metadata,
    pub(crate) public_access: PublicAccess,
    pub(crate) encryption_scope: Option<EncryptionScope>,
    pub(crate) settings: ContainerSettings,
}

/// Create Container.
pub(crate) async fn create(
    front: &FrontEnd,
    account: &Account,
    name: ContainerName,
    new: NewContainer,
) -> Result<Reply, Refusal> {
    acl::check_switch(account, new.public_access)?;
    let counter = front.container_ids.next().await.map_err(|error| {
        if error.is_full() {
            return errors::first_disk_full();
        }
        tracing::error!(%error, "no container id could be obtained");
        Reason::InternalError.into()
    })?;
    let (settings, again) = (new.settings, name.clone());
    let create = CreateContainer {
        account: account.id,
        name,
        // Reversed, to distribute containers over the key space (see `ContainerId`).
        id: ContainerId::new(counter.reverse_bits()),
        collation: settings.collation,
        metadata: new.metadata,
        public_access: new.public_access,
        encryption_scope: new.encryption_scope,
        owner: settings.owner.clone(),
        region: settings.region.clone(),
        acl: settings.acl,
        object_lock: settings.object_lock || account.locks_objects,
    };
    let (containers, of) = (Arc::clone(&front.rows.containers), account.name.clone());
    // In a task of its own: a client that disconnects cannot stop it half-way.
    let made = front
        .env
        .tasks
        .spawn_part("create container", async move { create_in(&containers, &of, create).await });
    let made = made.await;
    let answer = made.unwrap_or_else(|e| Err(index::Error::Unavailable(e.to_string())));
    if settings.keeps_own && answer == Err(index::Refused::ContainerExists.into()) {
        return keep(front, account, &again, &settings).await;
    }
    commit::changed(answer, Subject::Container).map(Reply::ContainerCreated)
}

/// Create Container of an existing one succeeds if its owner requests the same settings.
async fn keep(
    front: &FrontEnd,
    account: &Account,
    name: &ContainerName,
    settings: &ContainerSettings,
) -> Result<Reply, Refusal> {
    let record = lookup::container(&front.rows, account, name).await?;
    let has = (record.owner(), record.region(), record.acl());
    let is_locked = record.object_lock().is_some();
    if has == (settings.owner.as_deref(), settings.region.as_deref(), settings.acl)
        && (is_locked || !settings.object_lock)
    {
        let change =
            Change { etag: record.etag, last_modified: record.last_modified, version: None };
        return Ok(Reply::ContainerKept(change));
    }
    Err(Reason::ContainerAlreadyExists.into())
}

/// Creates a container in an account that may be deleted at the same time. The deletion of an
/// account removes the account's row, then lists its containers again. It finds a container that
/// was created before that list; one created later finds no row of the account here, and is deleted
/// again.
pub(crate) async fn create_in(
    containers: &Containers,
    account: &AccountName,
    create: CreateContainer,
) -> Result<Written, index::Error> {
    let (router, id, name) = (&containers.router, create.account, create.name.clone());
    let made = router.tell(create).await?;
    match router.ask(ReadAccount(account.clone())).await {
        Ok(record) if record.id == id => return Ok(made),
        Ok(_) | Err(index::Error::Refused(index::Refused::AccountNotFound)) => {}
        Err(error) => return Err(error),
    }
    let guard = index::Guard::default();
    let delete = DeleteContainer { account: id, name, guard, closed: None, restorable_for: None };
    match containers.delete_if_empty(delete, History::All).await {
        Ok(_) | Err(index::Error::Refused(index::Refused::ContainerNotFound)) => {
            Err(index::Refused::AccountNotFound.into())
        }
        Err(error) => Err(error),
    }
}

/// Get Container Properties, Get Container Metadata.
pub(crate) async fn get(
    front: &FrontEnd,
    container: &ContainerTarget<'_>,
) -> Result<Reply, Refusal> {
    let ContainerTarget { account, name, precondition } = container;
    let record = lookup::container(&front.rows, account, name).await?;
    let now = front.env.clock.now();
    index::check_lease(precondition.lease, record.lease, now)
        .map_err(|refusal| errors::from_index(&refusal.into(), Subject::Container))?;
    Ok(Reply::Container(facts::of_container(front, *record, now)))
}

/// Set Container Metadata.
pub(crate) async fn set_metadata(
    front: &FrontEnd,
    container: ContainerTarget<'_>,
    metadata: Metadata,
) -> Result<Reply, Refusal> {
    let ContainerTarget { account, name, precondition } = container;
    let guard = lookup::guard(precondition);
    let change = ContainerChange::Metadata(metadata);
    let write = UpdateContainer { account: account.id, name, guard, change };
    let answer = commit::commit(&front.rows, write, None).await;
    commit::changed(answer, Subject::Container).map(Reply::ContainerChanged)
}

/// Delete Container. A container whose blobs may be locked must be empty.
pub(crate) async fn delete(
    front: &FrontEnd,
    container: ContainerTarget<'_>,
) -> Result<Reply, Refusal> {
    let record = lookup::container(&front.rows, container.account, &container.name).await?;
    if record.object_lock().is_some() {
        // Azure has no delete markers, so its clients could not remove those that are left.
        let without_markers = History::VersionsUp { snapshots: true };
        return delete_if_empty(front, container, without_markers).await;
    }
    let ContainerTarget { account, name, precondition } = container;
    let guard = lookup::guard(precondition);
    let restorable_for = account.container_restorable_for(front.rows.retention_day);
    let write = DeleteContainer { account: account.id, name, guard, closed: None, restorable_for };
    match commit::commit(&front.rows, write, None).await {
        Ok(_) => Ok(Reply::ContainerDeleted),
        Err(error) => Err(errors::from_index(&error, Subject::Container)),
    }
}

/// Delete a container that must be empty: no acknowledged write into it is lost (ADR 0033).
/// `counts` says which parts of the history of its blobs make it non-empty.
pub(crate) async fn delete_if_empty(
    front: &FrontEnd,
    container: ContainerTarget<'_>,
    counts: History,
) -> Result<Reply, Refusal> {
    let ContainerTarget { account, name, precondition } = container;
    let guard = lookup::guard(precondition);
    let restorable_for = account.container_restorable_for(front.rows.retention_day);
    let delete = DeleteContainer { account: account.id, name, guard, closed: None, restorable_for };
    let containers = Arc::clone(&front.rows.containers);
    // In a task of its own: a client that disconnects cannot leave the container closed.
    let deleted = front.rows.tasks.spawn_part("delete an empty container", async move {
        containers.delete_if_empty(delete, counts).await
    });
    let deleted = deleted.await;
    let answer = deleted.unwrap_or_else(|e| Err(index::Error::Unavailable(e.to_string())));
    match answer {
        Ok(()) => Ok(Reply::ContainerDeleted),
        Err(index::Error::Overloaded) => Err(errors::busy(Busy::Container)),
        Err(error) => Err(errors::from_index(&error, Subject::Container)),
    }
}
