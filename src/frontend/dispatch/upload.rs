//! Operations on uploads in parts.

use crate::env::boxed;
use crate::frontend::accounts::Account;
use crate::frontend::dispatch::request_content::RequestContent;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::ops::upload_lists;
use crate::frontend::ops::uploads;
use crate::frontend::ops::uploads::NewPart;
use crate::frontend::ops::uploads::WantedParts;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::UploadOperation;
use crate::protocol::model::operation::UploadPart;

/// Carries out an operation on an upload.
pub(super) async fn carry_out(
    front: &FrontEnd,
    account: &Account,
    operation: UploadOperation,
    RequestContent { body, document }: RequestContent<'_>,
) -> Result<Reply, Refusal> {
    use UploadOperation as O;
    let blob = |path, precondition| BlobTarget { account, path, precondition };
    match operation {
        O::Create(mut create) => {
            let precondition = std::mem::take(&mut create.precondition);
            let blob = blob(create.path.clone(), precondition);
            boxed(|| uploads::create(front, blob, *create)).await
        }
        O::UploadPart(UploadPart { upload, number, body: body_of }) => {
            let blob = blob(upload.path, upload.precondition);
            let part = NewPart { blob, upload: upload.id, number };
            boxed(|| uploads::stage(front, part, &body_of, body)).await
        }
        O::Complete(mut complete) => {
            let precondition = std::mem::take(&mut complete.upload.precondition);
            let blob = blob(complete.upload.path.clone(), precondition);
            let memory = document.unwrap_or_default();
            boxed(|| uploads::complete(front, blob, *complete, memory)).await
        }
        O::Abort(upload) => {
            let blob = blob(upload.path, upload.precondition);
            uploads::abort(front, blob, upload.id).await
        }
        O::ListParts { upload, after, limit } => {
            let wanted = WantedParts { upload: upload.id, after, limit };
            uploads::parts(front, blob(upload.path, upload.precondition), wanted).await
        }
        O::ListUploads(list) => boxed(|| upload_lists::list(front, account, *list)).await,
    }
}
