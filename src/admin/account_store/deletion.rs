//! Deletion of an account, and by force of the containers in it.

use crate::audit_log::Thing;
use crate::index;
use crate::index::ContainerEntry;
use crate::index::DeleteAccount;
use crate::index::DeleteContainer;
use crate::index::ExpireDeleted;
use crate::index::History;
use crate::index::ListContainers;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::ContainerName;
use crate::types::RoutingKey;

use super::AccountStore;
use super::StoreError;
use crate::admin::audit_log::Note;

/// Containers of an account that one request examines.
const CONTAINERS_LOOKED_AT: usize = 1_000;

/// An account of the store.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredAccount<'a> {
    pub(super) name: &'a AccountName,
    pub(super) id: AccountId,
}

/// A container of an account.
pub(super) struct AnyContainer {
    pub(super) name: ContainerName,
    /// Whether it is one that was softly deleted.
    is_deleted: bool,
    /// Whether it has object lock.
    is_locked: bool,
}

impl AccountStore {
    /// Deletes an account that has no containers, or with force also its containers.
    pub(super) async fn empty_and_remove(
        &self,
        account: StoredAccount<'_>,
        force: bool,
        note: &Note,
    ) -> Result<(), StoreError> {
        let StoredAccount { name, id } = account;
        if force && let Some(container) = self.any_locked(id).await? {
            let container = container.as_str().to_owned();
            return Err(StoreError::Locked(name.as_str().to_owned(), container));
        }
        while let Some(container) = self.any_container(id).await? {
            if !force {
                let container = container.name.as_str().to_owned();
                return Err(StoreError::NotEmpty(name.as_str().to_owned(), container));
            }
            self.delete_container(account, container, note).await?;
        }
        self.router.tell(DeleteAccount { name: name.clone(), id }).await?;
        // Requests that were admitted before may have created a container meanwhile.
        while let Some(container) = self.any_container(id).await? {
            self.delete_container(account, container, note).await?;
        }
        Ok(())
    }

    /// A container with object lock.
    async fn any_locked(&self, account: AccountId) -> Result<Option<ContainerName>, StoreError> {
        let (prefix, limit) = (String::new(), CONTAINERS_LOOKED_AT);
        let mut list = ListContainers { account, prefix, from: None, limit, deleted: false };
        loop {
            let page = self.router.ask(list.clone()).await?;
            let is_locked = |entry: &ContainerEntry| entry.record.object_lock().is_some();
            if let Some(entry) = page.entries.into_iter().find(is_locked) {
                return Ok(Some(entry.name));
            }
            list.from = page.next;
            if list.from.is_none() {
                return Ok(None);
            }
        }
    }

    pub(super) async fn any_container(
        &self,
        account: AccountId,
    ) -> Result<Option<AnyContainer>, StoreError> {
        let mut list =
            ListContainers { account, prefix: String::new(), from: None, limit: 1, deleted: true };
        loop {
            let page = self.router.ask(list.clone()).await?;
            if let Some(entry) = page.entries.into_iter().next() {
                let is_deleted = entry.record.deleted().is_some();
                let is_locked = entry.record.object_lock().is_some();
                return Ok(Some(AnyContainer { name: entry.name, is_deleted, is_locked }));
            }
            list.from = page.next;
            if list.from.is_none() {
                return Ok(None);
            }
        }
    }

    async fn delete_container(
        &self,
        account: StoredAccount<'_>,
        AnyContainer { name, is_deleted, is_locked }: AnyContainer,
        note: &Note,
    ) -> Result<(), StoreError> {
        if is_deleted {
            let key = RoutingKey::container(account.id, &name);
            return Ok(self.router.tell(ExpireDeleted { key, all: true }).await?);
        }
        let text = name.as_str().to_owned();
        let guard = index::Guard::default();
        let write = DeleteContainer {
            account: account.id,
            name,
            guard,
            closed: None,
            restorable_for: None,
        };
        let part = note.part(Thing::Container, "DeleteContainer", account.name, &text);
        // One with object lock is here only if a request made it meanwhile. It has to be empty.
        let deleted = match is_locked {
            true => self.containers.delete_if_empty(write, History::All).await,
            false => self.router.tell(write).await,
        };
        match deleted {
            Ok(()) => {
                part.made().await;
                Ok(())
            }
            Err(index::Error::Refused(index::Refused::ContainerNotFound)) => {
                part.refused();
                Ok(())
            }
            Err(error) => {
                match error {
                    index::Error::Refused(_) => part.refused(),
                    index::Error::WrongPartition
                    | index::Error::Overloaded
                    | index::Error::Full(_)
                    | index::Error::Corrupt(_)
                    | index::Error::Unavailable(_)
                    | index::Error::NoAnswer(_) => part.in_doubt(),
                }
                Err(StoreError::Container(text, error))
            }
        }
    }
}
