//! Requests of reclaim: garbage, expired blocks, deleted containers.

use bytes::Bytes;

use crate::index::api::DeletedContainer;
use crate::index::api::Error;
use crate::index::api::ExpiredPage;
use crate::index::api::GarbagePage;
use crate::index::api::GarbageRow;
use crate::index::api::StagedBlocks;
use crate::index::api::WriteReply;
use crate::index::objects::cursor::Cursor;
use crate::index::objects::delete;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::garbage;
use crate::index::objects::keys;
use crate::index::objects::keys::StagedKey;
use crate::index::objects::pages;
use crate::index::objects::restorable::Removed;
use crate::index::objects::upload;
use crate::index::objects::values;
use crate::index::objects::values::DeadContainer;
use crate::index::objects::values::DeadLayer;
use crate::index::objects::values::GarbageValue;
use crate::index::objects::values::StagedSummary;
use crate::index::objects::walk::Blobs;
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::AccountId;
use crate::types::ContainerId;
use crate::types::RoutingKey;
use crate::types::TAG_INDEX;
use crate::types::Timestamp;

/// Returns garbage rows from a position on, and where to continue.
pub(super) async fn garbage_rows(
    view: &dyn Rows,
    from: &Bytes,
    limit: usize,
) -> Result<GarbagePage, Error> {
    let mut cursor = Cursor::new(view, Family::Garbage, from.clone(), None)
        .expecting(limit.saturating_add(1))
        .pausing();
    let mut rows = Vec::new();
    while let Some(row) = cursor.take().await? {
        if keys::parse_purge(&row.key).is_some() {
            continue;
        }
        if rows.len() >= limit {
            return Ok(GarbagePage { rows, next: Some(row.key) });
        }
        let blob = keys::routing_key(Family::Garbage, &row.key)?;
        if keys::parse_dead_layer(&row.key, &blob).is_some() {
            let dead: DeadLayer = values::decode(Family::Garbage, &row.key, &row.value)?;
            let (since, locations) = (dead.since, Vec::new());
            rows.push(GarbageRow { key: row.key, since, locations, layer: Some(blob) });
            continue;
        }
        let value: GarbageValue = values::decode(Family::Garbage, &row.key, &row.value)?;
        let (since, locations) = (value.since, value.locations);
        rows.push(GarbageRow { key: row.key, since, locations, layer: None });
    }
    Ok(GarbagePage { rows, next: cursor.paused().cloned() })
}

/// Removes garbage rows whose locations were freed. Of one dead layer among them, removes the next
/// spans; their locations become garbage.
pub(super) async fn forget_garbage(
    eval: &mut Evaluation<'_>,
    keys: &[Bytes],
) -> Result<WriteReply, Error> {
    // Only one layer at a time: its spans make a long batch.
    let mut buried = false;
    for row in keys {
        let dead = RoutingKey::of_row(row)
            .and_then(|blob| Some((keys::parse_dead_layer(row, &blob)?, blob)));
        match dead {
            Some((layer, blob)) if !buried => {
                buried = true;
                pages::bury(eval, &blob, layer).await?;
            }
            Some(_) => {}
            None => eval.out.delete(Family::Garbage, row.clone()),
        }
    }
    Ok(WriteReply::Done)
}

/// Returns the deleted containers whose rows are not purged yet.
pub(in crate::index) async fn dead_containers(
    view: &dyn Rows,
) -> Result<Vec<DeletedContainer>, Error> {
    const AT_ONCE: usize = 16;
    let mut from = Some(Bytes::new());
    let mut dead = Vec::new();
    while let Some(start) = from {
        let found = view.scan(Family::Garbage, &start, None, AT_ONCE).await?;
        from = found.next;
        for row in found.rows {
            if let Some((account, container)) = keys::parse_purge(&row.key) {
                let value: DeadContainer = values::decode(Family::Garbage, &row.key, &row.value)?;
                dead.push(DeletedContainer { account, container, deleted: value.deleted });
            } else {
                from = next_account(&row.key);
                break;
            }
        }
        // After the purge rows of an account there may be millions of removed garbage rows.
        from = from.and_then(|at| if may_be_purge_row(&at) { Some(at) } else { next_account(&at) });
    }
    Ok(dead)
}

/// Whether purge rows of the account may be at or after this position. They sort before its other
/// garbage rows.
fn may_be_purge_row(position: &[u8]) -> bool {
    position.get(8..18).is_none_or(|place| *place == [0; 10])
}

/// The first position after the rows of an account, where purge rows of the next account can begin.
fn next_account(row: &[u8]) -> Option<Bytes> {
    let account = u64::from_be_bytes(row.get(..8)?.try_into().ok()?);
    let next = account.checked_add(1)?;
    Some(Bytes::copy_from_slice(&next.to_be_bytes()))
}

/// Returns blobs to which a block was last staged before `before`, or with an upload that was
/// completed before it, and where to continue.
pub(super) async fn expired(
    view: &dyn Rows,
    from: &Bytes,
    before: Timestamp,
    limit: usize,
) -> Result<ExpiredPage, Error> {
    let mut cursor = Cursor::new(view, Family::Staged, from.clone(), None).pausing();
    let mut blobs = Vec::new();
    while let Some(row) = cursor.peek().await? {
        let key = keys::routing_key(Family::Staged, &row.key)?;
        let mut since = None;
        if keys::parse_staged(&row.key, &key)? == StagedKey::Summary {
            let summary: StagedSummary = values::decode(Family::Staged, &row.key, &row.value)?;
            since = Some(summary.last_staged);
        }
        let completed = upload::first_completed(view, &key).await?;
        let since = since.into_iter().chain(completed).filter(|time| *time < before).min();
        if let Some(last_staged) = since {
            if blobs.len() >= limit {
                return Ok(ExpiredPage { blobs, next: Some(key.as_bytes().clone()) });
            }
            blobs.push(StagedBlocks { key: key.clone(), last_staged });
        }
        cursor.seek(&keys::after(&key));
    }
    Ok(ExpiredPage { blobs, next: cursor.paused().cloned() })
}

/// The row changes after which a step of a purge ends. Blobs with long layouts make long batches.
const PURGE_CHANGES_MAX: usize = 2_000;

/// Removes up to `limit` blobs of a deleted container, at or after `from`.
pub(super) async fn purge(
    eval: &mut Evaluation<'_>,
    container: (AccountId, ContainerId),
    from: &Bytes,
    limit: usize,
) -> Result<WriteReply, Error> {
    let whole = RoutingKey::container_range(container.0, container.1);
    let low = whole.low().as_bytes().max(from).clone();
    let high = whole.high().map(|high| high.as_bytes().clone());
    let mut blobs = Blobs::new(
        eval.view,
        &[Family::Main, Family::Versions, Family::Staged],
        &low,
        high.as_ref(),
    )
    .pausing();
    for _ in 0..limit {
        let Some(key) = blobs.next().await? else {
            return Ok(WriteReply::Purged { next: blobs.paused().cloned() });
        };
        let Removed { mut dropped, has_more } =
            delete::remove_rows(eval, &key, PURGE_CHANGES_MAX).await?;
        if has_more {
            garbage::write(eval, &key, &dropped, &[]);
            return Ok(WriteReply::Purged { next: Some(key.as_bytes().clone()) });
        }
        let uploads = upload::remove_all(eval, &key, PURGE_CHANGES_MAX).await?;
        dropped.extend(uploads.dropped);
        garbage::write(eval, &key, &dropped, &[]);
        if uploads.has_more {
            return Ok(WriteReply::Purged { next: Some(key.as_bytes().clone()) });
        }
        blobs.skip(&key);
        if eval.out.changes.len() >= PURGE_CHANGES_MAX {
            break;
        }
    }
    let next = blobs.next().await?.map(|key| key.as_bytes().clone());
    Ok(WriteReply::Purged { next: next.or_else(|| blobs.paused().cloned()) })
}

/// Whether a routing key of the main family is that of a blob. Accounts and containers have the
/// container id 0, entries of the tag index the highest one.
pub(crate) fn is_blob(key: &RoutingKey) -> bool {
    let container = key.as_bytes().get(8..16);
    container.is_some_and(|c| c != [0; 8] && c != TAG_INDEX.get().to_be_bytes())
}
