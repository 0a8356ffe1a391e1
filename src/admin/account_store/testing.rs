//! What tests do to an account as its clients would.

use super::*;

impl AccountStore {
    /// Makes a container, as a client would.
    pub(in crate::admin) async fn add_container(&self, account: &str, name: &str) {
        let account = self.record(&parse(account).unwrap()).await.unwrap().id;
        let create = index::CreateContainer {
            account,
            name: ContainerName::new(name).unwrap(),
            id: crate::types::ContainerId::new(1),
            collation: crate::types::Collation::Utf16,
            metadata: crate::types::Metadata::default(),
            public_access: crate::types::PublicAccess::Private,
            encryption_scope: None,
        };
        self.router.write(Write::CreateContainer(create)).await.unwrap();
    }

    /// A request that was let in before the account was deleted, and makes its container only then; whether it is there.
    pub(in crate::admin) async fn add_container_late(&self, account: &str, name: &str) -> bool {
        let account_name = parse(account).unwrap();
        let account = self.record(&account_name).await.unwrap().id;
        self.remove(account_name.as_str(), true).await.unwrap();
        let create = index::CreateContainer {
            account,
            name: ContainerName::new(name).unwrap(),
            id: crate::types::ContainerId::new(2),
            collation: crate::types::Collation::Utf16,
            metadata: crate::types::Metadata::default(),
            public_access: crate::types::PublicAccess::Private,
            encryption_scope: None,
        };
        let made = crate::frontend::create_container(&self.router, &account_name, create).await;
        assert_eq!(made, Err(index::Error::AccountNotFound));
        self.any_container(account).await.unwrap().is_some()
    }
}
