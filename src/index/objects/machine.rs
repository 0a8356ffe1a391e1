//! Dispatches each read and write to the function that carries it out.

use async_trait::async_trait;

use crate::env::Boxed;
use crate::env::boxed;
use crate::index::api::Error;
use crate::index::api::Read;
use crate::index::api::ReadReply;
use crate::index::api::Refused;
use crate::index::api::Write;
use crate::index::api::WriteReply;
use crate::index::api::purge_key;
use crate::index::objects::accessed;
use crate::index::objects::append;
use crate::index::objects::blob;
use crate::index::objects::blob_parts;
use crate::index::objects::commit;
use crate::index::objects::container;
use crate::index::objects::container_deletion;
use crate::index::objects::copy;
use crate::index::objects::copy_jobs;
use crate::index::objects::delete;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::list;
use crate::index::objects::page_copy;
use crate::index::objects::page_ranges;
use crate::index::objects::pages;
use crate::index::objects::part_range;
use crate::index::objects::read as blob_read;
use crate::index::objects::references;
use crate::index::objects::restorable;
use crate::index::objects::settings;
use crate::index::objects::share;
use crate::index::objects::snapshot;
use crate::index::objects::staged;
use crate::index::objects::sweep;
use crate::index::objects::tags;
use crate::index::objects::tier;
use crate::index::objects::undelete;
use crate::index::objects::upload;
use crate::index::objects::upload_complete;
use crate::index::objects::upload_list;
use crate::index::rows::Family;
use crate::index::rows::Machine;
use crate::index::rows::RowBatch;
use crate::index::rows::Rows;
use crate::types::KeyRange;
use crate::types::Timestamp;

/// The meaning of the rows of accounts, containers and blobs. It has no state: all state is in the
/// rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Objects;

#[async_trait]
impl Machine for Objects {
    fn evaluate<'s, 'v, 'w, 'o, 'f>(
        &'s self,
        view: &'v dyn Rows,
        write: &'w Write,
        now: Timestamp,
        out: &'o mut RowBatch,
    ) -> Boxed<'f, Result<WriteReply, Error>>
    where
        's: 'f,
        'v: 'f,
        'w: 'f,
        'o: 'f,
    {
        boxed(move || Self::change(view, write, now, out))
    }

    fn answer<'s, 'v, 'k, 'r, 'f>(
        &'s self,
        view: &'v dyn Rows,
        range: &'k KeyRange,
        read: &'r Read,
        now: Timestamp,
    ) -> Boxed<'f, Result<ReadReply, Error>>
    where
        's: 'f,
        'v: 'f,
        'k: 'f,
        'r: 'f,
    {
        boxed(move || Self::read(view, range, read, now))
    }
}

impl Objects {
    async fn change(
        view: &dyn Rows,
        write: &Write,
        now: Timestamp,
        out: &mut RowBatch,
    ) -> Result<WriteReply, Error> {
        let eval = &mut Evaluation { view, now, out };
        match write {
            Write::CreateAccount { name, id, anonymous } => {
                container::create_account(eval, name, *id, *anonymous).await
            }
            Write::SetUpAccount(made) => container::set_up_account(eval, made).await,
            Write::UpdateAccount { name, change } => {
                container::update_account(eval, name, change).await
            }
            Write::DeleteAccount { name, id } => container::delete_account(eval, name, *id).await,
            Write::CreateContainer(create) => container::create(eval, create).await,
            Write::UpdateContainer(update) => container::update(eval, update).await,
            Write::DeleteContainer(delete) => container_deletion::delete(eval, delete).await,
            Write::RestoreContainer(restore) => container_deletion::restore(eval, restore).await,
            Write::ChangeSetting(change) => settings::change(eval, change).await,
            Write::CloseContainer(close) => container::close(eval, close).await,
            Write::ReopenContainer(reopen) => container::reopen(eval, reopen).await,
            Write::LeaseContainer(lease) => container::lease(eval, lease).await,
            Write::PutBlob(put) => blob::put(eval, put).await,
            Write::PutCopy(put) => copy::put(eval, put).await,
            Write::Share(share) => share::share(eval, share).await,
            Write::EndCopy(end) => copy_jobs::end(eval, end).await,
            Write::LeaseCopy(lease) => copy_jobs::lease(eval, lease).await,
            Write::ResealCopy(again) => copy_jobs::reseal(eval, again).await,
            Write::SharePages(share) => page_copy::share(eval, share).await,
            Write::FillLayer(fill) => page_copy::fill(eval, fill).await,
            Write::StageBlock(stage) => staged::stage(eval, stage).await,
            Write::CommitBlocks(list) => commit::commit(eval, list).await,
            Write::StartUpload(start) => upload::start(eval, start),
            Write::StagePart(stage) => upload::stage(eval, stage).await,
            Write::CompleteUpload(complete) => upload_complete::complete(eval, complete).await,
            Write::AbortUpload(abort) => upload::abort(eval, abort).await,
            Write::AppendBlock(block) => append::append(eval, block).await,
            Write::SealBlob(seal) => append::seal(eval, seal).await,
            Write::WritePages(write) => pages::write(eval, write).await,
            Write::UpdatePages(update) => pages::update(eval, update).await,
            Write::UpdateBlob(update) => blob::update(eval, update).await,
            Write::DeleteBlob(delete) => delete::delete(eval, delete).await,
            Write::LeaseBlob(lease) => blob::lease(eval, lease).await,
            Write::SnapshotBlob(snapshot) => snapshot::take(eval, snapshot).await,
            Write::UndeleteBlob(of) => undelete::undelete(eval, of).await,
            Write::SetTier(set) => tier::set(eval, set).await,
            Write::NoteRead(note) => accessed::note(eval, note).await,
            Write::ExpireStaged { key, before } => staged::expire(eval, key, *before).await,
            Write::ExpireDeleted { key, all } if sweep::is_blob(key) => {
                restorable::expire(eval, key, *all).await
            }
            Write::ExpireDeleted { key, all } => container_deletion::expire(eval, key, *all).await,
            Write::PurgeContainer { account, container, from, limit } => {
                sweep::purge(eval, (*account, *container), from, *limit).await
            }
            Write::ForgetContainer { account, container } => {
                eval.out.delete(Family::Garbage, purge_key(*account, *container));
                Ok(WriteReply::Done)
            }
            Write::IndexTag(change) => tags::index(eval, change).await,
            Write::ForgetTagWork { rows } => Ok(tags::forget(eval, rows)),
            Write::ForgetGarbage { keys } => sweep::forget_garbage(eval, keys).await,
            Write::Prove | Write::Settle { .. } => {
                eval.out.must_commit = true;
                Ok(WriteReply::Done)
            }
        }
    }

    async fn read(
        view: &dyn Rows,
        range: &KeyRange,
        read: &Read,
        now: Timestamp,
    ) -> Result<ReadReply, Error> {
        Ok(match read {
            Read::Account(name) => {
                let found = container::account(view, name).await?;
                ReadReply::Account(Box::new(found.ok_or(Refused::AccountNotFound)?))
            }
            Read::Accounts(page) => {
                ReadReply::Accounts(container::list_accounts(view, range, page).await?)
            }
            Read::Container(account, name) => {
                let found = container::load(view, *account, name).await?;
                ReadReply::Container(Box::new(found.ok_or(Refused::ContainerNotFound)?))
            }
            Read::Setting(read) => {
                ReadReply::Setting(settings::read(view, read).await?.map(Box::new))
            }
            Read::Containers(page) if page.deleted => {
                ReadReply::Containers(container_deletion::list(view, range, page, now).await?)
            }
            Read::Containers(page) => {
                ReadReply::Containers(container::list(view, range, page).await?)
            }
            Read::Blob(read) => ReadReply::Blob(Box::new(blob_read::blob(view, read, now).await?)),
            Read::BlockList(key, revision, guard) => {
                let of = blob_read::BlockListOf { key, revision: *revision, guard };
                let list = blob_read::block_list(view, of, now).await?;
                ReadReply::BlockList(Box::new(list))
            }
            Read::BlobParts(read) => {
                ReadReply::BlobParts(Box::new(blob_parts::page(view, read, now).await?))
            }
            Read::Pages(read) => {
                ReadReply::Pages(Box::new(page_ranges::ranges(view, read, now).await?))
            }
            Read::Blobs(page) => {
                ReadReply::Blobs(Box::new(list::list(view, range, page, now).await?))
            }
            Read::Parts(list) => ReadReply::Parts(Box::new(upload::parts(view, list).await?)),
            Read::Part(read) => ReadReply::Part(part_range::part(view, read, now).await?),
            Read::Uploads(page) => {
                ReadReply::Blobs(Box::new(upload_list::list(view, range, page).await?))
            }
            Read::CopyJobs { from, limit } => {
                ReadReply::CopyJobs(copy_jobs::list(view, range, from, *limit).await?)
            }
            Read::TagWork { blob, from, limit } => {
                ReadReply::TagWork(tags::work(view, blob.as_ref(), from, *limit).await?)
            }
            Read::Tags(page) => ReadReply::Tags(tags::list(view, range, page).await?),
            Read::Garbage { from, limit } => {
                ReadReply::Garbage(sweep::garbage_rows(view, from, *limit).await?)
            }
            Read::DeadContainers => ReadReply::DeadContainers(sweep::dead_containers(view).await?),
            Read::Expired { from, before, limit } => {
                ReadReply::Expired(sweep::expired(view, from, *before, *limit).await?)
            }
            Read::EndedDeletions { from, now, limit } => {
                ReadReply::EndedDeletions(restorable::ended(view, from, *now, *limit).await?)
            }
            Read::References(list) => {
                ReadReply::References(references::references(view, list).await?)
            }
        })
    }
}
