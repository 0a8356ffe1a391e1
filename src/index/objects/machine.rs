//! The machine itself: which file answers what.

use async_trait::async_trait;

use crate::index::api::Error;
use crate::index::api::Read;
use crate::index::api::ReadReply;
use crate::index::api::Write;
use crate::index::api::WriteReply;
use crate::index::api::purge_key;
use crate::index::objects::accessed;
use crate::index::objects::append;
use crate::index::objects::blob;
use crate::index::objects::commit;
use crate::index::objects::container;
use crate::index::objects::copy;
use crate::index::objects::copy_jobs;
use crate::index::objects::list;
use crate::index::objects::page_copy;
use crate::index::objects::page_ranges;
use crate::index::objects::pages;
use crate::index::objects::read as blob_read;
use crate::index::objects::references;
use crate::index::objects::share;
use crate::index::objects::snapshot;
use crate::index::objects::staged;
use crate::index::objects::sweep;
use crate::index::objects::tags;
use crate::index::objects::tier;
use crate::index::rows::Family;
use crate::index::rows::Machine;
use crate::index::rows::RowBatch;
use crate::index::rows::Rows;
use crate::types::KeyRange;
use crate::types::Timestamp;

/// Accounts, containers and blobs as rows. Holds no state: everything is in the rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Objects;

#[async_trait]
impl Machine for Objects {
    async fn evaluate(
        &self,
        view: &dyn Rows,
        write: &Write,
        now: Timestamp,
        out: &mut RowBatch,
    ) -> Result<WriteReply, Error> {
        match write {
            Write::CreateAccount { name, id, anonymous } => {
                container::create_account(view, name, (*id, *anonymous), now, out).await
            }
            Write::UpdateAccount { name, change } => {
                container::update_account(view, name, change, out).await
            }
            Write::DeleteAccount { name, id } => {
                container::delete_account(view, name, *id, out).await
            }
            Write::CreateContainer(create) => container::create(view, create, now, out).await,
            Write::UpdateContainer(update) => container::update(view, update, now, out).await,
            Write::DeleteContainer(delete) => container::delete(view, delete, now, out).await,
            Write::LeaseContainer(lease) => container::lease(view, lease, now, out).await,
            Write::PutBlob(put) => blob::put(view, put, now, out).await,
            Write::PutCopy(put) => copy::put(view, put, now, out).await,
            Write::Share(share) => share::share(view, share, now, out).await,
            Write::EndCopy(end) => copy_jobs::end(view, end, now, out).await,
            Write::ResealCopy(again) => copy_jobs::reseal(view, again, out).await,
            Write::SharePages(share) => page_copy::share(view, share, now, out).await,
            Write::FillLayer(fill) => page_copy::fill(view, fill, now, out).await,
            Write::StageBlock(stage) => staged::stage(view, stage, now, out).await,
            Write::CommitBlocks(list) => commit::commit(view, list, now, out).await,
            Write::AppendBlock(block) => append::append(view, block, now, out).await,
            Write::SealBlob(seal) => append::seal(view, seal, now, out).await,
            Write::WritePages(write) => pages::write(view, write, now, out).await,
            Write::UpdatePages(update) => pages::update(view, update, now, out).await,
            Write::UpdateBlob(update) => blob::update(view, update, now, out).await,
            Write::DeleteBlob(delete) => blob::delete(view, delete, now, out).await,
            Write::LeaseBlob(lease) => blob::lease(view, lease, now, out).await,
            Write::SnapshotBlob(snapshot) => snapshot::take(view, snapshot, now, out).await,
            Write::SetTier(set) => tier::set(view, set, now, out).await,
            Write::NoteRead(note) => accessed::note(view, note, now, out).await,
            Write::ExpireStaged { key, before } => {
                staged::expire(view, key, *before, now, out).await
            }
            Write::PurgeContainer { account, container, from, limit } => {
                sweep::purge(view, (*account, *container), from, *limit, now, out).await
            }
            Write::ForgetContainer { account, container } => {
                out.delete(Family::Garbage, purge_key(*account, *container));
                Ok(WriteReply::Done)
            }
            Write::IndexTag(change) => tags::index(view, change, out).await,
            Write::ForgetTagWork { rows } => Ok(tags::forget(rows, out)),
            Write::ForgetGarbage { keys } => sweep::forget_garbage(view, keys, now, out).await,
            Write::Prove => {
                out.must_commit = true;
                Ok(WriteReply::Done)
            }
        }
    }

    async fn answer(
        &self,
        view: &dyn Rows,
        range: &KeyRange,
        read: &Read,
        now: Timestamp,
    ) -> Result<ReadReply, Error> {
        Ok(match read {
            Read::Account(name) => {
                let found = container::account(view, name).await?;
                ReadReply::Account(found.ok_or(Error::AccountNotFound)?)
            }
            Read::Accounts(page) => {
                ReadReply::Accounts(container::list_accounts(view, range, page).await?)
            }
            Read::Container(account, name) => {
                let found = container::load(view, *account, name).await?;
                ReadReply::Container(Box::new(found.ok_or(Error::ContainerNotFound)?))
            }
            Read::Containers(page) => {
                ReadReply::Containers(container::list(view, range, page).await?)
            }
            Read::Blob(read) => ReadReply::Blob(Box::new(blob_read::blob(view, read, now).await?)),
            Read::BlockList(key, snapshot, guard) => {
                let of = (key, *snapshot);
                ReadReply::BlockList(Box::new(blob_read::block_list(view, of, guard, now).await?))
            }
            Read::Pages(read) => {
                ReadReply::Pages(Box::new(page_ranges::ranges(view, read, now).await?))
            }
            Read::Blobs(page) => ReadReply::Blobs(list::list(view, range, page).await?),
            Read::CopyJobs { from, limit } => {
                let (jobs, next) = copy_jobs::list(view, range, from, *limit).await?;
                ReadReply::CopyJobs(jobs, next)
            }
            Read::TagWork { blob, from, limit } => {
                let (work, next) = tags::work(view, blob.as_ref(), from, *limit).await?;
                ReadReply::TagWork(work, next)
            }
            Read::Tags(page) => ReadReply::Tags(tags::list(view, range, page).await?),
            Read::Garbage { from, limit } => {
                let (rows, next) = sweep::garbage(view, from, *limit).await?;
                ReadReply::Garbage(rows, next)
            }
            Read::DeadContainers => ReadReply::DeadContainers(sweep::dead_containers(view).await?),
            Read::Expired { from, before, limit } => {
                let (blobs, next) = sweep::expired(view, from, *before, *limit).await?;
                ReadReply::Expired(blobs, next)
            }
            Read::References(list) => {
                ReadReply::References(references::references(view, list).await?)
            }
        })
    }
}
