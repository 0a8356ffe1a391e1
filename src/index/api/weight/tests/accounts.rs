//! Writes of accounts and containers.

use super::*;
use crate::index::api::RestoreContainer;
use crate::index::api::SetUpAccount;
use crate::index::record::{ScopeRecord, StoredPolicy, UserKey, UserRecord};

fn user() -> UserRecord {
    let key = UserKey {
        id: AccessKeyId::new(&"K".repeat(128)).unwrap(),
        created: Timestamp::ZERO,
        secret: secret(),
    };
    UserRecord {
        name: UserName::new(&"u".repeat(64)).unwrap(),
        display: long(),
        canonical: long(),
        created: Timestamp::ZERO,
        keys: vec![key],
    }
}

fn new_scope() -> ScopeRecord {
    ScopeRecord { name: long(), created: Timestamp::ZERO, enabled: true, key: secret() }
}

fn new_account() -> SetUpAccount {
    SetUpAccount {
        name: account(),
        id: AccountId::new(1),
        keys: vec![secret(), secret()],
        delegation_secret: secret(),
        anonymous: false,
        account_type: AccountType::default(),
    }
}

/// Changes of accounts and containers.
pub(super) fn of_accounts() -> Vec<(Write, usize)> {
    let (id, of) = (AccountId::new(1), ContainerId::new(2));
    let (guard, guarded) = long_guard();
    let scope = EncryptionScope { name: long(), deny_override: true };
    let create = CreateContainer {
        account: id,
        name: container(),
        id: of,
        collation: Collation::Utf8,
        metadata: metadata(LONG),
        public_access: PublicAccess::Private,
        encryption_scope: Some(scope),
        owner: Some(long()),
        region: Some(long()),
        acl: CannedAcl::Private,
        object_lock: false,
    };
    let (name, written) = (container(), guard);
    let policy =
        |_| StoredPolicy { id: long(), start: None, expiry: None, permissions: Some(long()) };
    let policies = (0..5).map(policy).collect();
    let change = ContainerChange::Access { public_access: PublicAccess::Private, policies };
    let update = UpdateContainer { account: id, name, guard: written, change };
    let tag = |n| (format!("{n:\u{10400}>128}"), "\u{10400}".repeat(256));
    let tags = ContainerTags::new((0..50).map(tag).collect()).unwrap();
    let change = SettingChange::Set(Setting::Tags(tags));
    let change = ChangeSetting { account: id, name: container(), change };
    let website = Website {
        index_document: Some(long()),
        error_document: Some(long()),
        default_index_path: Some(long()),
    };
    let rule = |_| CorsRule {
        allowed_origins: long(),
        allowed_methods: long(),
        allowed_headers: long(),
        exposed_headers: long(),
        max_age: 0,
    };
    let properties = ServicePropertiesChange {
        cors: Some((0..5).map(rule).collect()),
        default_version: Some(Some(long())),
        website: Some(Some(website)),
        ..ServicePropertiesChange::default()
    };
    let changed = |change| Write::UpdateAccount { name: account(), change };
    let role = RoleAssignment {
        issuer: long(),
        kind: PrincipalKind::Group,
        principal: long(),
        role: Role::Reader,
        container: Some(container()),
    };
    vec![
        (Write::CreateAccount { name: account(), id, anonymous: false }, 24),
        (Write::SetUpAccount(new_account()), 24 + 3 * LONG),
        (changed(AccountChange::Keys(vec![secret(), secret()])), 2 * LONG),
        (changed(AccountChange::DelegationSecret(secret())), LONG),
        (changed(AccountChange::Reseal(vec![(secret(), secret())])), 2 * LONG),
        (changed(AccountChange::Properties(Box::new(properties))), (5 * 4 + 1 + 3) * LONG),
        (changed(AccountChange::Assign(role)), 2 * LONG + 63),
        (changed(AccountChange::PutUser(Box::new(user()))), 3 * LONG + 64 + 128),
        (changed(AccountChange::RemoveUser(user().name)), 64),
        (changed(AccountChange::AddScope(Box::new(new_scope()))), 2 * LONG),
        (changed(AccountChange::SwitchScope { name: long(), enabled: true }), LONG),
        (Write::DeleteAccount { name: account(), id }, 24),
        (Write::CreateContainer(create), 4 * LONG + 63),
        (Write::UpdateContainer(update), 10 * LONG + guarded + 63),
        (Write::ChangeSetting(change), 50 * 4 * (128 + 256) + 63),
    ]
}

/// How containers end, and their leases.
pub(super) fn of_ends() -> Vec<(Write, usize)> {
    let (account, name, closed) = (AccountId::new(1), container(), Timestamp::ZERO);
    let (guard, guarded) = long_guard();
    let delete = {
        let (name, guard) = (name.clone(), guard.clone());
        DeleteContainer { account, name, guard, closed: Some(closed), restorable_for: None }
    };
    let close = CloseContainer { account, name: name.clone(), guard: guard.clone() };
    let action = LeaseAction::Renew { id: Uuid::nil() };
    let lease = LeaseContainer { account, name: name.clone(), guard, action };
    let restore =
        RestoreContainer { account, name: name.clone(), deleted: name.clone(), since: closed };
    let reopen = ReopenContainer { account, name, closed };
    vec![
        (Write::DeleteContainer(delete), guarded + 63),
        (Write::RestoreContainer(restore), 2 * 63),
        (Write::CloseContainer(close), guarded + 63),
        (Write::ReopenContainer(reopen), 63),
        (Write::LeaseContainer(lease), guarded + 63),
        (Write::ForgetContainer { account, container: ContainerId::new(2) }, 0),
    ]
}
