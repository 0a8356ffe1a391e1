//! Operations on the settings of a container.

use crate::types::ContainerName;
use crate::types::ObjectLock;
use crate::types::Setting;
use crate::types::SettingKind;
use crate::types::Versioning;

/// An operation on a setting of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingOperation {
    /// The container.
    pub container: ContainerName,
    /// What to do.
    pub action: SettingAction,
}

/// An action on a setting of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingAction {
    /// Read it.
    Get(SettingKind),
    /// Replace it; in the body.
    Set(Setting),
    /// Remove it.
    Remove(SettingKind),
    /// Read whether versions are kept.
    GetVersioning,
    /// Say whether versions are kept; in the body.
    SetVersioning(Versioning),
    /// Read the object lock.
    GetObjectLock,
    /// Give it object lock, or another default retention; in the body.
    SetObjectLock(ObjectLock),
    /// Read one that all containers have, with the same value. The dialect knows the value.
    GetFixed,
    /// Read one that no container has.
    GetAbsent,
    /// Remove one that no container has, which succeeds.
    RemoveAbsent,
}

impl SettingOperation {
    /// Whether it only reads.
    #[must_use]
    pub const fn is_read(&self) -> bool {
        match self.action {
            SettingAction::Get(_)
            | SettingAction::GetVersioning
            | SettingAction::GetObjectLock
            | SettingAction::GetFixed
            | SettingAction::GetAbsent => true,
            SettingAction::Set(_)
            | SettingAction::SetVersioning(_)
            | SettingAction::SetObjectLock(_)
            | SettingAction::Remove(_)
            | SettingAction::RemoveAbsent => false,
        }
    }

    /// Whether it removes a setting.
    #[must_use]
    pub const fn is_removal(&self) -> bool {
        matches!(self.action, SettingAction::Remove(_) | SettingAction::RemoveAbsent)
    }
}
