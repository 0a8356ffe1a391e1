//! Settings of containers.

use std::sync::Arc;

use crate::frontend::accounts::Account;
use crate::frontend::commit;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::ingest::DocumentMemory;
use crate::frontend::lookup;
use crate::frontend::rows::RowAccess;
use crate::frontend::state::FrontEnd;
use crate::index;
use crate::index::ChangeSetting;
use crate::index::ContainerChange;
use crate::index::Guard;
use crate::index::ReadSetting;
use crate::index::SettingChange;
use crate::index::UpdateContainer;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::SettingAction;
use crate::protocol::model::operation::SettingOperation;
use crate::protocol::model::reply::SettingReply;
use crate::types::ContainerName;
use crate::types::Setting;
use crate::types::SettingKind;
use crate::types::Versioning;

/// Reads or changes a setting of a container, which must exist.
pub(crate) async fn carry_out(
    front: &FrontEnd,
    account: &Account,
    SettingOperation { container, action }: SettingOperation,
    memory: DocumentMemory,
) -> Result<Reply, Refusal> {
    let change = match action {
        SettingAction::Get(kind) => {
            let found = read(&front.rows, account, &container, kind).await?;
            let found = found.ok_or(Reason::SettingNotFound)?;
            return Ok(Reply::Setting(SettingReply::Value(Box::new(found))));
        }
        SettingAction::GetFixed => {
            lookup::container(&front.rows, account, &container).await?;
            return Ok(Reply::Setting(SettingReply::Fixed));
        }
        SettingAction::GetAbsent => {
            lookup::container(&front.rows, account, &container).await?;
            return Err(Reason::SettingNotFound.into());
        }
        SettingAction::RemoveAbsent => {
            lookup::container(&front.rows, account, &container).await?;
            return Ok(Reply::Setting(SettingReply::Changed));
        }
        SettingAction::GetVersioning => {
            let record = lookup::container(&front.rows, account, &container).await?;
            return Ok(Reply::Setting(SettingReply::Versioning(record.versioning())));
        }
        SettingAction::SetVersioning(versioning) => {
            let change = ContainerChange::Versioning(versioning);
            return change_demands(front, account, container, change).await;
        }
        SettingAction::GetObjectLock => {
            let record = lookup::container(&front.rows, account, &container).await?;
            let lock = record.object_lock().ok_or(Reason::SettingNotFound)?;
            return Ok(Reply::Setting(SettingReply::ObjectLock(lock)));
        }
        SettingAction::SetObjectLock(lock) => {
            let is_versioned = account.versioning == Some(Versioning::Enabled);
            let change = ContainerChange::ObjectLock { lock, is_versioned };
            return change_demands(front, account, container, change).await;
        }
        SettingAction::Set(setting) => SettingChange::Set(setting),
        SettingAction::Remove(kind) => SettingChange::Remove(kind),
    };
    let write = ChangeSetting { account: account.id, name: container, change };
    match commit::commit_holding(&front.rows, write, memory).await {
        Ok(()) => Ok(Reply::Setting(SettingReply::Changed)),
        Err(error) => Err(errors::from_index(&error, Subject::Container)),
    }
}

/// Changes a setting that writes depend on, and waits for running writes that may not have seen the
/// change.
async fn change_demands(
    front: &FrontEnd,
    account: &Account,
    container: ContainerName,
    change: ContainerChange,
) -> Result<Reply, Refusal> {
    let guard = Guard::default();
    let change = UpdateContainer { account: account.id, name: container, guard, change };
    let containers = Arc::clone(&front.rows.containers);
    let task = front
        .rows
        .tasks
        .spawn_part("container setting", async move { containers.change_demands(change).await });
    let answer = task.await;
    match answer.unwrap_or_else(|error| Err(index::Error::Unavailable(error.to_string()))) {
        Ok(()) => Ok(Reply::Setting(SettingReply::Changed)),
        Err(error) => Err(errors::from_index(&error, Subject::Container)),
    }
}

/// Reads a setting of a container.
///
/// # Errors
/// `ContainerNotFound`, and the index's.
pub(crate) async fn read(
    rows: &RowAccess,
    account: &Account,
    container: &ContainerName,
    kind: SettingKind,
) -> Result<Option<Setting>, Refusal> {
    let read = ReadSetting { account: account.id, name: container.clone(), kind };
    let found = rows.router.ask(read).await;
    found.map_err(|error| errors::from_index(&error, Subject::Container))
}
