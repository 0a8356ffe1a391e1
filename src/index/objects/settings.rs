//! Settings of containers. Each has a row beside that of the container, and moves with it.

use bytes::Bytes;

use crate::index::api::ChangeSetting;
use crate::index::api::Error;
use crate::index::api::ReadSetting;
use crate::index::api::Refused;
use crate::index::api::SettingChange;
use crate::index::api::WriteReply;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::keys;
use crate::index::objects::values;
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::AccountId;
use crate::types::ContainerName;
use crate::types::RoutingKey;
use crate::types::Setting;
use crate::types::SettingKind;

/// The most kinds of settings: their number is one byte.
const KINDS_MAX: usize = 256;

/// Reads a setting of a container.
pub(super) async fn read(view: &dyn Rows, read: &ReadSetting) -> Result<Option<Setting>, Error> {
    let of = existing(view, read.account, &read.name).await?;
    let row = keys::setting(&of, read.kind.number());
    let value = view.get(Family::Versions, &row).await?;
    value.map(|value| decode(read.kind, &row, &value)).transpose()
}

/// The key of a container, which must exist.
async fn existing(
    view: &dyn Rows,
    account: AccountId,
    name: &ContainerName,
) -> Result<RoutingKey, Error> {
    let key = RoutingKey::container(account, name);
    match view.get(Family::Main, key.as_bytes()).await? {
        Some(_) => Ok(key),
        None => Err(Refused::ContainerNotFound.into()),
    }
}

/// Replaces or removes a setting of a container.
pub(super) async fn change(
    eval: &mut Evaluation<'_>,
    change: &ChangeSetting,
) -> Result<WriteReply, Error> {
    let of = existing(eval.view, change.account, &change.name).await?;
    match &change.change {
        SettingChange::Set(setting) => {
            let row = keys::setting(&of, setting.kind().number());
            eval.out.put(Family::Versions, row, encode(setting));
        }
        SettingChange::Remove(kind) => {
            eval.out.delete(Family::Versions, keys::setting(&of, kind.number()));
        }
    }
    Ok(WriteReply::Done)
}

/// Moves all settings in a range of keys, also those of later releases, to a container or to its
/// deleted row. Without a destination, removes them.
pub(super) async fn move_all(
    eval: &mut Evaluation<'_>,
    (from, end): &(Bytes, Bytes),
    to: Option<&Bytes>,
) -> Result<(), Error> {
    let rows = eval.view.scan_all(Family::Versions, (from.as_ref(), Some(end.as_ref())), KINDS_MAX);
    for row in rows.await? {
        if let (Some(to), Some(number)) = (to, row.key.last()) {
            eval.out.put(Family::Versions, keys::setting_at(to, *number), row.value);
        }
        eval.out.delete(Family::Versions, row.key);
    }
    Ok(())
}

/// Encodes a setting. Its kind is in the key.
pub(in crate::index) fn encode(setting: &Setting) -> Bytes {
    match setting {
        Setting::Tags(tags) => values::encode(tags),
        Setting::Cors(rules) => values::encode(rules),
    }
}

/// Decodes a setting of a kind.
pub(in crate::index) fn decode(
    kind: SettingKind,
    key: &[u8],
    value: &[u8],
) -> Result<Setting, Error> {
    Ok(match kind {
        SettingKind::Tags => Setting::Tags(values::decode(Family::Versions, key, value)?),
        SettingKind::Cors => Setting::Cors(values::decode(Family::Versions, key, value)?),
    })
}
