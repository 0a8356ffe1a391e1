//! From the names in a request to rows of the index.

use crate::frontend::accounts::Account;
use crate::frontend::encrypt::claim;
use crate::frontend::encrypt::scope;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::rows::RowAccess;
use crate::index::ContainerRecord;
use crate::index::FoundContainer;
use crate::index::Guard;
use crate::index::ReadContainer;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::BlobPath;
use crate::types::AccountId;
use crate::types::BlobKey;
use crate::types::BlobName;
use crate::types::ContainerName;
use crate::types::Protection;
use crate::types::Revision;

/// The container that a request names, and its precondition.
#[derive(Debug)]
pub(crate) struct ContainerTarget<'a> {
    pub(crate) account: &'a Account,
    pub(crate) name: ContainerName,
    pub(crate) precondition: Precondition,
}

/// The blob that a request names, and its precondition.
#[derive(Debug)]
pub(crate) struct BlobTarget<'a> {
    pub(crate) account: &'a Account,
    pub(crate) path: BlobPath,
    pub(crate) precondition: Precondition,
}

/// A blob in one of its states.
#[derive(Clone, Debug)]
pub(crate) struct BlobVersion {
    pub(crate) key: BlobKey,
    /// Which of them.
    pub(crate) revision: Revision,
}

/// The target of a request once its container was found. The blob itself may not exist.
#[derive(Debug)]
pub(crate) struct Located {
    pub(crate) container: FoundContainer,
    pub(crate) blob: BlobVersion,
    pub(crate) precondition: Precondition,
}

impl BlobTarget<'_> {
    /// Looks up the container.
    ///
    /// # Errors
    /// `ContainerNotFound`, and the index's.
    pub(crate) async fn locate(self, rows: &RowAccess) -> Result<Located, Refusal> {
        let record = container(rows, self.account, &self.path.container).await?;
        Ok(self.within(rows, &record))
    }

    /// As [`Self::locate`], for a request that changes a blob or adds to it: the container's rules
    /// determine the encryption.
    ///
    /// # Errors
    /// Also `RequestForbiddenByContainerEncryptionPolicy`, and `AuthorizationFailure` for a
    /// disabled scope.
    pub(crate) async fn locate_for_change(mut self, rows: &RowAccess) -> Result<Located, Refusal> {
        let record = container(rows, self.account, &self.path.container).await?;
        claim::settle(&record, &mut self.precondition)?;
        scope::fill(self.account, &mut self.precondition)?;
        Ok(self.within(rows, &record))
    }

    /// As [`Self::locate_for_change`], for a request that makes a blob.
    ///
    /// # Errors
    /// Also `NoObjectLock`.
    pub(crate) async fn locate_for_content(mut self, rows: &RowAccess) -> Result<Located, Refusal> {
        let record = container(rows, self.account, &self.path.container).await?;
        claim::settle(&record, &mut self.precondition)?;
        scope::fill(self.account, &mut self.precondition)?;
        // The index checks it again. Here it is refused before the content arrives.
        if self.precondition.lock.protects() && record.object_lock().is_none() {
            return Err(Reason::NoObjectLock.into());
        }
        Ok(self.within(rows, &record))
    }

    fn within(self, rows: &RowAccess, record: &ContainerRecord) -> Located {
        let Self { account, path, precondition } = self;
        let protection = account.protection(rows.retention_day);
        located((account.id, record), path, (precondition, protection))
    }
}

fn located(
    (account, record): (AccountId, &ContainerRecord),
    path: BlobPath,
    (mut precondition, protection): (Precondition, Protection),
) -> Located {
    let BlobPath { container: name, blob, revision } = path;
    precondition.protection = record.protection(protection);
    Located {
        container: FoundContainer { account, name, id: record.id, protection },
        blob: BlobVersion { key: key_of(account, record, blob), revision },
        precondition,
    }
}

/// Looks up a container.
pub(crate) async fn container(
    rows: &RowAccess,
    account: &Account,
    name: &ContainerName,
) -> Result<Box<ContainerRecord>, Refusal> {
    let found = rows.router.ask(ReadContainer(account.id, name.clone())).await;
    found.map_err(|error| errors::from_index(&error, Subject::Container))
}

/// The key of a blob in a container.
pub(crate) fn key_in(account: &Account, container: &ContainerRecord, name: BlobName) -> BlobKey {
    key_of(account.id, container, name)
}

fn key_of(account: AccountId, container: &ContainerRecord, name: BlobName) -> BlobKey {
    let (id, collation) = (container.id, container.collation);
    BlobKey { account, container: id, collation, name }
}

/// The conditions, lease and encryption that the index checks before it answers or changes
/// anything.
pub(crate) fn guard(precondition: Precondition) -> Guard {
    let encryption = claim::claim(&precondition.encryption);
    Guard {
        conditions: precondition.conditions,
        lease: precondition.lease,
        if_tags: precondition.if_tags,
        encryption,
        open_to: precondition.open_to,
        over_archived: precondition.over_archived,
        protection: precondition.protection,
        lock: precondition.lock,
    }
}
