//! Settings of containers, in rows of their own.

use serde::Deserialize;
use serde::Serialize;

use crate::types::AccountId;
use crate::types::ContainerName;
use crate::types::Setting;
use crate::types::SettingKind;

/// Asks for a setting of a container, which must exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadSetting {
    /// The account.
    pub account: AccountId,
    /// The container.
    pub name: ContainerName,
    /// Which setting.
    pub kind: SettingKind,
}

/// Changes a setting of a container, which must exist. The container's tag and time stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeSetting {
    /// The account.
    pub account: AccountId,
    /// The container.
    pub name: ContainerName,
    /// The change.
    pub change: SettingChange,
}

/// A change of a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SettingChange {
    /// Replaces the setting of that kind.
    Set(Setting),
    /// Removes it; one that is not there changes nothing.
    Remove(SettingKind),
}
