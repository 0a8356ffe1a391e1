//! Accounts and containers. Each has one row.

use crate::index::api::AccountChange;
use crate::index::api::AccountEntry;
use crate::index::api::AccountPage;
use crate::index::api::CloseContainer;
use crate::index::api::ContainerChange;
use crate::index::api::ContainerEntry;
use crate::index::api::ContainerPage;
use crate::index::api::CreateContainer;
use crate::index::api::ENTRY_WEIGHT;
use crate::index::api::Error;
use crate::index::api::LeaseContainer;
use crate::index::api::Leased;
use crate::index::api::ListAccounts;
use crate::index::api::ListContainers;
use crate::index::api::PAGE_WEIGHT_MAX;
use crate::index::api::Refused;
use crate::index::api::ReopenContainer;
use crate::index::api::SetUpAccount;
use crate::index::api::UpdateContainer;
use crate::index::api::WriteReply;
use crate::index::api::Written;
use crate::index::objects::blob_row;
use crate::index::objects::cursor::Cursor;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::guard;
use crate::index::objects::keys;
use crate::index::objects::lease as machine;
use crate::index::objects::page::Window;
use crate::index::objects::values;
use crate::index::record::AccountRecord;
use crate::index::record::ContainerRecord;
use crate::index::record::ScopeRecord;
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::CannedAcl;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::ContainerName;
use crate::types::Etag;
use crate::types::KeyRange;
use crate::types::ObjectLock;
use crate::types::PublicAccess;
use crate::types::RoutingKey;
use crate::types::Timestamp;
use crate::types::Versioning;

/// Reads an account.
pub(super) async fn account(
    view: &dyn Rows,
    name: &AccountName,
) -> Result<Option<AccountRecord>, Error> {
    let key = RoutingKey::account(name);
    match view.get(Family::Main, key.as_bytes()).await? {
        Some(value) => values::decode_record(Family::Main, key.as_bytes(), &value).map(Some),
        None => Ok(None),
    }
}

/// Creates an account, or returns the existing one.
pub(super) async fn create_account(
    eval: &mut Evaluation<'_>,
    name: &AccountName,
    id: AccountId,
    anonymous: bool,
) -> Result<WriteReply, Error> {
    if let Some(record) = account(eval.view, name).await? {
        return Ok(WriteReply::Account(Box::new(record)));
    }
    let record = AccountRecord::new(id, eval.now, anonymous);
    let key = RoutingKey::account(name).as_bytes().clone();
    eval.out.put(Family::Main, key, values::encode_record(&record));
    Ok(WriteReply::Account(Box::new(record)))
}

/// Creates an account with all its settings, or applies them to the existing one.
pub(super) async fn set_up_account(
    eval: &mut Evaluation<'_>,
    made: &SetUpAccount,
) -> Result<WriteReply, Error> {
    let SetUpAccount { name, id, keys, delegation_secret, anonymous, account_type } = made;
    let found = account(eval.view, name).await?;
    let mut record = found.unwrap_or_else(|| AccountRecord::new(*id, eval.now, *anonymous));
    if record.id != *id {
        // The secrets are sealed for another account.
        return Err(Refused::AccountNotFound.into());
    }
    record.keys.clone_from(keys);
    record.delegation_secret = Some(delegation_secret.clone());
    record.anonymous = *anonymous;
    if *account_type != record.account_type() {
        record.change_fields(|fields| fields.account_type = Some(*account_type));
    }
    let key = RoutingKey::account(name).as_bytes().clone();
    eval.out.put(Family::Main, key, values::encode_record(&record));
    Ok(WriteReply::Account(Box::new(record)))
}

/// Changes an account.
pub(super) async fn update_account(
    eval: &mut Evaluation<'_>,
    name: &AccountName,
    change: &AccountChange,
) -> Result<WriteReply, Error> {
    let mut record = account(eval.view, name).await?.ok_or(Refused::AccountNotFound)?;
    match change {
        AccountChange::Properties(properties) => {
            properties.apply(&mut record.properties);
            if let Some(is_permitted) = properties.permanent_delete {
                record.change_fields(|fields| fields.permanent_delete = is_permitted);
            }
        }
        AccountChange::Keys(keys) => record.keys.clone_from(keys),
        AccountChange::Anonymous(open) => record.anonymous = *open,
        AccountChange::Versioning(on) => {
            record.set_versioning(*on);
            // Object lock needs versions. Switching versions on again does not restore the lock.
            record.change_fields(|fields| fields.object_lock &= *on);
        }
        AccountChange::ContainerRetention(days) => {
            record.change_fields(|fields| fields.container_retention_days = *days);
        }
        AccountChange::ObjectLock(on) => {
            if *on && record.versioning() != Some(Versioning::Enabled) {
                return Err(Refused::NotVersioned.into());
            }
            record.change_fields(|fields| fields.object_lock = *on);
        }
        AccountChange::Type(new) => {
            record.change_fields(|fields| fields.account_type = Some(*new));
        }
        AccountChange::DelegationSecret(new) => record.delegation_secret = Some(new.clone()),
        AccountChange::Reseal(pairs) => {
            for secret in record.secrets_mut() {
                if let Some((_, to)) = pairs.iter().find(|(from, _)| from == secret) {
                    secret.clone_from(to);
                }
            }
        }
        AccountChange::Assign(new) if record.assignments.contains(new) => {}
        AccountChange::Assign(new) => record.assignments.push(new.clone()),
        AccountChange::Unassign(old) => record.assignments.retain(|kept| kept != old),
        AccountChange::PutUser(user) => record.put_user(user.made_at(eval.now)),
        AccountChange::RemoveUser(name) => record.remove_user(name),
        AccountChange::AddScope(scope) => {
            let made = scope.created == Timestamp::ZERO;
            let created = if made { eval.now } else { scope.created };
            record.add_scope(ScopeRecord { created, ..scope.as_ref().clone() });
        }
        AccountChange::SwitchScope { name, enabled } => record.change_fields(|fields| {
            let named = fields.scopes.iter_mut().filter(|scope| scope.name == *name);
            named.for_each(|scope| scope.enabled = *enabled);
        }),
    }
    let key = RoutingKey::account(name).as_bytes().clone();
    eval.out.put(Family::Main, key, values::encode_record(&record));
    Ok(WriteReply::Account(Box::new(record)))
}

/// Removes an account's row.
pub(super) async fn delete_account(
    eval: &mut Evaluation<'_>,
    name: &AccountName,
    id: AccountId,
) -> Result<WriteReply, Error> {
    let found = account(eval.view, name).await?.filter(|record| record.id == id);
    let record = found.ok_or(Refused::AccountNotFound)?;
    eval.out.delete(Family::Main, RoutingKey::account(name).as_bytes().clone());
    Ok(WriteReply::Account(Box::new(record)))
}

/// Returns one page of all accounts, as far as this partition reaches.
pub(super) async fn list_accounts(
    view: &dyn Rows,
    range: &KeyRange,
    list: &ListAccounts,
) -> Result<AccountPage, Error> {
    let low = ListAccounts { from: None, limit: 1 }.position();
    let mut window = Window::new(&low, list.from.clone().unwrap_or_default(), range);
    let mut rows = Cursor::new(view, Family::Main, window.position.clone(), window.to.clone())
        .expecting(list.limit.saturating_add(1))
        .pausing();
    let mut entries = Vec::new();
    while let Some(row) = rows.peek().await? {
        if entries.len() >= list.limit {
            return Ok(AccountPage { entries, next: Some(window.position) });
        }
        let key = keys::routing_key(Family::Main, &row.key)?;
        let name = key
            .name(Collation::Utf8)
            .ok_or_else(|| keys::corrupt(Family::Main, &row.key, "no account name"))?;
        let record = values::decode_record(Family::Main, &row.key, &row.value)?;
        entries.push(AccountEntry { name, record });
        window.pass(keys::after(&key)).map_err(|violation| view.violated(violation))?;
        rows.seek(&window.position);
    }
    let next = rows.paused().cloned().or_else(|| window.end());
    Ok(AccountPage { entries, next })
}

/// Reads a container.
pub(super) async fn load(
    view: &dyn Rows,
    account: AccountId,
    name: &ContainerName,
) -> Result<Option<ContainerRecord>, Error> {
    let key = RoutingKey::container(account, name);
    match view.get(Family::Main, key.as_bytes()).await? {
        Some(value) => values::decode_record(Family::Main, key.as_bytes(), &value).map(Some),
        None => Ok(None),
    }
}

/// Reads a container that must exist.
pub(super) async fn existing(
    view: &dyn Rows,
    account: AccountId,
    name: &ContainerName,
) -> Result<ContainerRecord, Error> {
    load(view, account, name).await?.ok_or(Error::Refused(Refused::ContainerNotFound))
}

/// Writes a container.
pub(super) fn store(
    eval: &mut Evaluation<'_>,
    account: AccountId,
    name: &ContainerName,
    record: &ContainerRecord,
) {
    let key = RoutingKey::container(account, name).as_bytes().clone();
    eval.out.put(Family::Main, key, values::encode_record(record));
}

/// Create Container.
pub(super) async fn create(
    eval: &mut Evaluation<'_>,
    create: &CreateContainer,
) -> Result<WriteReply, Error> {
    if load(eval.view, create.account, &create.name).await?.is_some() {
        return Err(Refused::ContainerExists.into());
    }
    let mut record = ContainerRecord {
        metadata: create.metadata.clone(),
        public_access: create.public_access,
        encryption_scope: create.encryption_scope.clone(),
        ..ContainerRecord::new(create.id, create.collation, eval.now)
    };
    record.change_fields(|fields| {
        fields.owner.clone_from(&create.owner);
        fields.region.clone_from(&create.region);
        fields.acl = create.acl.if_any();
        if create.object_lock {
            fields.versioning = Some(Versioning::Enabled);
            fields.object_lock = Some(ObjectLock { default: None });
        }
    });
    store(eval, create.account, &create.name, &record);
    Ok(blob_row::written(eval.now))
}

/// Set Container Metadata, Set Container ACL.
pub(super) async fn update(
    eval: &mut Evaluation<'_>,
    update: &UpdateContainer,
) -> Result<WriteReply, Error> {
    let mut record = existing(eval.view, update.account, &update.name).await?;
    guard::change_beside_lease(&update.guard, &record, eval.now)?;
    match &update.change {
        ContainerChange::Metadata(metadata) => record.metadata = metadata.clone(),
        ContainerChange::Access { public_access, policies } => {
            record.public_access = *public_access;
            record.policies.clone_from(policies);
            record.set_acl(CannedAcl::Private);
        }
        ContainerChange::Acl(acl) => {
            record.public_access = PublicAccess::Private;
            record.set_acl(*acl);
        }
        ContainerChange::Versioning(Versioning::Suspended) if record.object_lock().is_some() => {
            return Err(Refused::ObjectLocked.into());
        }
        ContainerChange::Versioning(versioning) => {
            record.change_fields(|fields| fields.versioning = Some(*versioning));
        }
        ContainerChange::ObjectLock { lock, is_versioned } => {
            lock_objects(&mut record, *lock, *is_versioned)?;
        }
    }
    let is_setting = matches!(
        update.change,
        ContainerChange::Versioning(_) | ContainerChange::ObjectLock { .. }
    );
    if !is_setting {
        record.last_modified = eval.now;
        record.etag = Etag::from_commit(eval.now);
    }
    store(eval, update.account, &update.name, &record);
    Ok(blob_row::written(record.last_modified))
}

/// Switches object lock on for a container. From then on its own record says that it keeps
/// versions.
fn lock_objects(
    record: &mut ContainerRecord,
    lock: ObjectLock,
    is_versioned: bool,
) -> Result<(), Refused> {
    let versioning = record.versioning();
    let keeps = versioning.map_or(is_versioned, |versioning| versioning == Versioning::Enabled);
    if !keeps {
        return Err(Refused::NotVersioned);
    }
    record.change_fields(|fields| {
        fields.versioning = Some(Versioning::Enabled);
        fields.object_lock = Some(lock);
    });
    Ok(())
}

/// Lease Container. ETag and last-modified time do not change.
pub(super) async fn lease(
    eval: &mut Evaluation<'_>,
    lease: &LeaseContainer,
) -> Result<WriteReply, Error> {
    let mut record = existing(eval.view, lease.account, &lease.name).await?;
    guard::conditions(&lease.guard, &record)?;
    let result = machine::act(record.lease, lease.action, eval.now)?;
    record.lease = result.lease();
    store(eval, lease.account, &lease.name, &record);
    let written = Written { etag: record.etag, last_modified: record.last_modified, version: None };
    Ok(WriteReply::Leased(Leased { written, result, now: eval.now }))
}

/// Closes a container that may be deleted. ETag and last-modified time do not change.
pub(super) async fn close(
    eval: &mut Evaluation<'_>,
    close: &CloseContainer,
) -> Result<WriteReply, Error> {
    let mut record = existing(eval.view, close.account, &close.name).await?;
    guard::change(&close.guard, &record, eval.now)?;
    if record.closed().is_some() {
        return Err(Refused::ContainerClosed.into());
    }
    record.change_fields(|fields| fields.closing = Some(eval.now));
    store(eval, close.account, &close.name, &record);
    Ok(WriteReply::Closed(Box::new(record)))
}

/// Opens a container that was closed at that time.
pub(super) async fn reopen(
    eval: &mut Evaluation<'_>,
    reopen: &ReopenContainer,
) -> Result<WriteReply, Error> {
    let found = load(eval.view, reopen.account, &reopen.name).await?;
    if let Some(mut record) = found.filter(|record| record.closed() == Some(reopen.closed)) {
        record.change_fields(|fields| fields.closing = None);
        store(eval, reopen.account, &reopen.name, &record);
    }
    Ok(WriteReply::Done)
}

/// List Containers: returns one page, as far as this partition reaches.
pub(super) async fn list(
    view: &dyn Rows,
    range: &KeyRange,
    list: &ListContainers,
) -> Result<ContainerPage, Error> {
    let table = ContainerId::new(0);
    let low = RoutingKey::prefix(list.account, table, &list.prefix, Collation::Utf8);
    let mut window = Window::new(&low, list.from.clone().unwrap_or_default(), range);
    let mut rows = Cursor::new(view, Family::Main, window.position.clone(), window.to.clone())
        .expecting(list.limit.saturating_add(1))
        .pausing();
    let (mut entries, mut after, mut weight) = (Vec::new(), Vec::new(), 0);
    while let Some(row) = rows.peek().await? {
        if entries.len() >= list.limit || weight >= PAGE_WEIGHT_MAX {
            let (next, seen) = (Some(window.position), view.seen());
            return Ok(ContainerPage { entries, after, weight, next, seen });
        }
        let key = keys::routing_key(Family::Main, &row.key)?;
        let name = key.name(Collation::Utf8).and_then(|name| ContainerName::new(&name).ok());
        let name =
            name.ok_or_else(|| keys::corrupt(Family::Main, &row.key, "no container name"))?;
        let record: ContainerRecord = values::decode_record(Family::Main, &row.key, &row.value)?;
        weight += ENTRY_WEIGHT + name.as_str().len() + record.weight();
        entries.push(ContainerEntry { name, record });
        window.pass(keys::after(&key)).map_err(|violation| view.violated(violation))?;
        after.push(window.position.clone());
        rows.seek(&window.position);
    }
    let next = rows.paused().cloned().or_else(|| window.end());
    Ok(ContainerPage { entries, after, weight, next, seen: view.seen() })
}
