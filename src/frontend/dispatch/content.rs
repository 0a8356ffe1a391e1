//! Operations that write content.

use crate::env::boxed;
use crate::frontend::dispatch::request_content::RequestContent;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::ops::appends;
use crate::frontend::ops::appends::Append;
use crate::frontend::ops::blobs;
use crate::frontend::ops::blocks;
use crate::frontend::ops::blocks::NewBlock;
use crate::frontend::ops::blocks::PutList;
use crate::frontend::ops::copies;
use crate::frontend::ops::pages;
use crate::frontend::ops::pages::TargetPages;
use crate::frontend::source::Requester;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::ContentOperation;

/// Carries out an operation that writes content. Large futures are boxed, because each smaller one
/// would reserve their space.
pub(super) async fn carry_out(
    front: &FrontEnd,
    requester: Requester<'_>,
    operation: ContentOperation,
    RequestContent { body, document }: RequestContent<'_>,
) -> Result<Reply, Refusal> {
    use ContentOperation as O;
    let account = requester.account;
    let blob = |path, precondition| BlobTarget { account, path, precondition };
    match operation {
        O::PutBlob {
            path,
            precondition,
            properties,
            metadata,
            tags,
            tier,
            object,
            kind,
            upload,
        } => {
            let blob = blob(path, precondition);
            let put = blobs::Put { blob, properties, metadata, tags, tier, object, kind, upload };
            boxed(|| blobs::put(front, put, body)).await
        }
        O::AppendBlock { path, precondition, position, len_max, upload } => {
            let append = Append { blob: blob(path, precondition), position, len_max };
            boxed(|| appends::append(front, append, &upload, body)).await
        }
        O::PutPage { path, precondition, sequence, write, range, upload } => {
            let pages = TargetPages { blob: blob(path, precondition), sequence, range };
            boxed(|| pages::put(front, pages::Put { pages, write, upload }, body)).await
        }
        O::PutPageFromUrl { path, precondition, sequence, range, source } => {
            let pages = TargetPages { blob: blob(path, precondition), sequence, range };
            boxed(|| copies::blocks::put_pages(front, requester, pages, &source)).await
        }
        O::PutBlobFromUrl(put) => boxed(|| copies::put_blob(front, requester, *put)).await,
        O::CopyBlob(copy) => boxed(|| copies::copy(front, requester, *copy)).await,
        O::CopyIncrement(copy) => boxed(|| copies::copy_increment(front, requester, *copy)).await,
        O::CopyNamed(copy) => boxed(|| copies::copy_named(front, requester, *copy)).await,
        O::AbortCopy { path, id, precondition } => {
            copies::abort(front, blob(path, precondition), id).await
        }
        O::AppendBlockFromUrl { path, precondition, position, len_max, source } => {
            let append = Append { blob: blob(path, precondition), position, len_max };
            boxed(|| copies::blocks::append(front, requester, append, &source)).await
        }
        O::PutBlockFromUrl { path, id, precondition, source } => {
            let block = NewBlock { blob: blob(path, precondition), id };
            boxed(|| copies::blocks::put_block(front, requester, block, &source)).await
        }
        O::PutBlock { path, id, precondition, upload } => {
            let block = NewBlock { blob: blob(path, precondition), id };
            boxed(|| blocks::stage(front, block, &upload, body)).await
        }
        O::PutBlockList {
            path,
            precondition,
            properties,
            metadata,
            tags,
            tier,
            list,
            checksum,
        } => {
            let blob = blob(path, precondition);
            let put = PutList { blob, properties, metadata, tags, tier, list, checksum };
            boxed(|| blocks::commit(front, put, document.unwrap_or_default())).await
        }
    }
}
