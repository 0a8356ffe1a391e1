//! Client requests to an account whose commands are tested (`admin/server/tests/accounts.rs`).

use super::*;
use crate::types::CannedAcl;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::ContainerName;
use crate::types::Metadata;
use crate::types::PublicAccess;

fn create(account: AccountId, name: &str, id: u64) -> index::CreateContainer {
    index::CreateContainer {
        account,
        name: ContainerName::new(name).unwrap(),
        id: ContainerId::new(id),
        collation: Collation::Utf16,
        metadata: Metadata::default(),
        public_access: PublicAccess::Private,
        encryption_scope: None,
        owner: None,
        region: None,
        acl: CannedAcl::Private,
        object_lock: false,
    }
}

impl AccountStore {
    /// Role assignments that requests of the account are held against.
    pub(in crate::admin) fn served_assignments(&self, account: &str) -> usize {
        self.accounts.get(&parse(account).unwrap()).map_or(0, |account| account.assignments.len())
    }

    /// Makes a container, as a client would.
    pub(in crate::admin) async fn add_container(&self, account: &str, name: &str) {
        self.add_container_as(account, name, 1).await;
    }

    /// The same with an id.
    pub(in crate::admin) async fn add_container_as(&self, account: &str, name: &str, id: u64) {
        let account = self.record(&parse(account).unwrap()).await.unwrap().id;
        self.router.tell(create(account, name, id)).await.unwrap();
    }

    /// A request that was let in before the account was deleted, and makes its container only then;
    /// whether it is there.
    pub(in crate::admin) async fn add_container_late(&self, account: &str, name: &str) -> bool {
        let account_name = parse(account).unwrap();
        let account = self.record(&account_name).await.unwrap().id;
        self.remove(account_name.as_str(), true, &Note::default()).await.unwrap();
        let late = create(account, name, 2);
        let made = crate::frontend::create_container(&self.containers, &account_name, late).await;
        assert_eq!(made, Err(index::Error::Refused(index::Refused::AccountNotFound)));
        self.any_container(account).await.unwrap().is_some()
    }
}
