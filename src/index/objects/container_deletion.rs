//! Deletion of containers. With soft delete, the rows of the container and its settings move to
//! keys beside the container's, from which Restore Container moves them back. Its blobs stay where
//! they are: no request finds them without the row of the container.
//!
//! Source: "Delete Container", "Restore Container".

#![deny(clippy::indexing_slicing)]

use bytes::Bytes;

use crate::index::api::ContainerEntry;
use crate::index::api::ContainerPage;
use crate::index::api::DeleteContainer;
use crate::index::api::ENTRY_WEIGHT;
use crate::index::api::Error;
use crate::index::api::ListContainers;
use crate::index::api::PAGE_WEIGHT_MAX;
use crate::index::api::Refused;
use crate::index::api::RestoreContainer;
use crate::index::api::WriteReply;
use crate::index::api::purge_key;
use crate::index::objects::blob_row;
use crate::index::objects::container::existing;
use crate::index::objects::container::load;
use crate::index::objects::container::store;
use crate::index::objects::cursor::Cursor;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::guard;
use crate::index::objects::keys;
use crate::index::objects::page::Window;
use crate::index::objects::restorable;
use crate::index::objects::settings;
use crate::index::objects::values;
use crate::index::objects::values::DeadContainer;
use crate::index::objects::values::DeletedWork;
use crate::index::objects::walk::Blobs;
use crate::index::record::ContainerRecord;
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::AccountId;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::ContainerName;
use crate::types::Etag;
use crate::types::KeyRange;
use crate::types::RoutingKey;
use crate::types::SoftDelete;
use crate::types::Timestamp;

/// Delete Container. The name is free immediately. A purge row names the container whose rows must
/// be removed, unless it can be restored.
pub(super) async fn delete(
    eval: &mut Evaluation<'_>,
    delete: &DeleteContainer,
) -> Result<WriteReply, Error> {
    let mut record = existing(eval.view, delete.account, &delete.name).await?;
    if delete.closed.is_some() && delete.closed != record.closed() {
        return Err(Refused::ContainerReopened.into());
    }
    // Its versions may be held. Only a closed container was examined for them (ADR 0033).
    if record.object_lock().is_some() && delete.closed.is_none() {
        return Err(Refused::NotClosed.into());
    }
    guard::change(&delete.guard, &record, eval.now)?;
    let key = RoutingKey::container(delete.account, &delete.name);
    eval.out.delete(Family::Main, key.as_bytes().clone());
    let Some(restorable_for) = delete.restorable_for else {
        settings::move_all(eval, &keys::settings(&key), None).await?;
        bury(eval, delete.account, record.id);
        return Ok(WriteReply::Done);
    };
    let period = SoftDelete { since: eval.now, until: eval.now.plus(restorable_for) };
    record.lease = None;
    record.change_fields(|fields| {
        fields.closing = None;
        fields.deleted = Some(period);
    });
    let row = keys::deleted_container(&key, eval.now);
    settings::move_all(eval, &keys::settings(&key), Some(&row)).await?;
    eval.out.put(Family::Versions, row, values::encode_record(&record));
    restorable::note(eval, &key, period.until).await?;
    Ok(WriteReply::Done)
}

/// Writes the purge row of a container.
fn bury(eval: &mut Evaluation<'_>, account: AccountId, id: ContainerId) {
    let dead = DeadContainer { deleted: eval.now };
    eval.out.put(Family::Garbage, purge_key(account, id), values::encode(&dead));
}

/// Reads a container that was softly deleted at this time.
async fn deleted_at(
    view: &dyn Rows,
    key: &RoutingKey,
    since: Timestamp,
) -> Result<Option<ContainerRecord>, Error> {
    let row = keys::deleted_container(key, since);
    let value = view.get(Family::Versions, &row).await?;
    value.map(|value| values::decode_record(Family::Versions, &row, &value)).transpose()
}

fn until(record: &ContainerRecord) -> Timestamp {
    record.deleted().map_or(Timestamp::ZERO, |deleted| deleted.until)
}

/// Restore Container, also under another name.
pub(super) async fn restore(
    eval: &mut Evaluation<'_>,
    restore: &RestoreContainer,
) -> Result<WriteReply, Error> {
    if load(eval.view, restore.account, &restore.name).await?.is_some() {
        return Err(Refused::ContainerExists.into());
    }
    let from = RoutingKey::container(restore.account, &restore.deleted);
    let found = deleted_at(eval.view, &from, restore.since).await?;
    let found = found.filter(|record| eval.now < until(record));
    let mut record = found.ok_or(Refused::ContainerNotFound)?;
    let row = keys::deleted_container(&from, restore.since);
    let to = RoutingKey::container(restore.account, &restore.name);
    settings::move_all(eval, &keys::settings_of_deleted(&row), Some(to.as_bytes())).await?;
    eval.out.delete(Family::Versions, row);
    record.change_fields(|fields| fields.deleted = None);
    record.last_modified = eval.now;
    record.etag = Etag::from_commit(eval.now);
    store(eval, restore.account, &restore.name, &record);
    Ok(blob_row::written(eval.now))
}

/// Expired containers of a name that one commit removes.
const ENDED_MAX: usize = 100;

/// Unexpired containers of a name that one commit examines. Later ones mostly expire later.
const LEFT_MAX: usize = 10_000;

/// Removes containers of a name that can no longer be restored, or `all` of them. Their rows are
/// purged.
pub(super) async fn expire(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    all: bool,
) -> Result<WriteReply, Error> {
    let account = key.as_bytes().first_chunk().map(|id| AccountId::new(u64::from_be_bytes(*id)));
    let account =
        account.ok_or_else(|| keys::corrupt(Family::Work, key.as_bytes(), "no account"))?;
    let mut next: Option<Timestamp> = None;
    let (low, high) = (key.as_bytes().clone(), keys::after(key));
    let mut rows = Cursor::new(eval.view, Family::Versions, low, Some(high));
    let (mut ended, mut left) = (0, 0);
    while left < LEFT_MAX
        && let Some(row) = rows.take().await?
    {
        if keys::parse_deleted_container(&row.key, key).is_none() {
            continue;
        }
        let record: ContainerRecord =
            values::decode_record(Family::Versions, &row.key, &row.value)?;
        if !all && eval.now < until(&record) {
            next = Some(next.map_or(until(&record), |next| next.min(until(&record))));
            left += 1;
            continue;
        }
        if ended >= ENDED_MAX {
            next = Some(eval.now);
            break;
        }
        settings::move_all(eval, &keys::settings_of_deleted(&row.key), None).await?;
        eval.out.delete(Family::Versions, row.key);
        bury(eval, account, record.id);
        ended += 1;
    }
    let row = keys::deleted_work(key);
    match next {
        Some(until) => eval.out.put(Family::Work, row, values::encode(&DeletedWork { until })),
        None => eval.out.delete(Family::Work, row),
    }
    Ok(WriteReply::Done)
}

/// List Containers with those that were softly deleted: one page, as far as this partition reaches.
/// Deleted containers come before an existing one of the same name.
pub(super) async fn list(
    view: &dyn Rows,
    range: &KeyRange,
    list: &ListContainers,
    now: Timestamp,
) -> Result<ContainerPage, Error> {
    let table = ContainerId::new(0);
    let low = RoutingKey::prefix(list.account, table, &list.prefix, Collation::Utf8);
    let mut window = Window::new(&low, list.from.clone().unwrap_or_default(), range);
    // A position among the rows of a name means that the page continues with the later rows.
    let start = RoutingKey::of_row(&window.position);
    let start = start.map_or(window.position.clone(), |key| key.as_bytes().clone());
    let families = [Family::Main, Family::Versions];
    let mut walk = Blobs::new(view, &families, &start, window.to.as_ref()).pausing();
    let (mut entries, mut after, mut weight) = (Vec::new(), Vec::new(), 0);
    while let Some(key) = walk.next().await? {
        let name = name_of(&key)?;
        let wanted = Wanted { after: &window.position, now, count: list.limit + 1 - entries.len() };
        for (position, record) in of_name(&mut walk, &key, &wanted).await? {
            if entries.len() >= list.limit || weight >= PAGE_WEIGHT_MAX {
                let (next, seen) = (Some(window.position), view.seen());
                return Ok(ContainerPage { entries, after, weight, next, seen });
            }
            weight += ENTRY_WEIGHT + name.as_str().len() + record.weight();
            entries.push(ContainerEntry { name: name.clone(), record });
            window.pass(position).map_err(|violation| view.violated(violation))?;
            after.push(window.position.clone());
        }
        walk.skip(&key);
    }
    let paused = walk.paused().map(|at| at.max(&window.position).clone());
    let next = paused.or_else(|| window.end());
    Ok(ContainerPage { entries, after, weight, next, seen: view.seen() })
}

fn name_of(key: &RoutingKey) -> Result<ContainerName, Error> {
    let name = key.name(Collation::Utf8).and_then(|name| ContainerName::new(&name).ok());
    name.ok_or_else(|| keys::corrupt(Family::Main, key.as_bytes(), "no container name"))
}

/// The containers of a name that a page may show.
struct Wanted<'a> {
    /// Only those behind this position.
    after: &'a Bytes,
    /// Containers that can no longer be restored at this time are left out.
    now: Timestamp,
    /// So many at most.
    count: usize,
}

/// The containers of a name, each with the position behind it: the soft-deleted ones, then the
/// existing one.
async fn of_name(
    walk: &mut Blobs<'_>,
    key: &RoutingKey,
    wanted: &Wanted<'_>,
) -> Result<Vec<(Bytes, ContainerRecord)>, Error> {
    let (mut found, mut present) = (Vec::new(), None);
    while found.len() < wanted.count
        && let Some((family, row)) = walk.take_of(key).await?
    {
        if family == Family::Main {
            present = Some(values::decode_record(family, &row.key, &row.value)?);
            continue;
        }
        let position = keys::just_after(&row.key);
        let is_deleted = keys::parse_deleted_container(&row.key, key).is_some();
        if is_deleted && position > *wanted.after {
            let record = values::decode_record(family, &row.key, &row.value)?;
            if wanted.now < until(&record) {
                found.push((position, record));
            }
        }
    }
    let last = present.map(|record| (keys::after(key), record));
    found.extend(last.filter(|(position, _)| position > wanted.after));
    Ok(found)
}
