//! From an operation to the function that carries it out: one exhaustive match.

use crate::env::boxed;
use crate::frontend::accounts::Account;
use crate::frontend::answers::Purse;
use crate::frontend::body::RequestBody;
use crate::frontend::body::ResponseBody;
use crate::frontend::errors;
use crate::frontend::ingest::DocumentMemory;
use crate::frontend::ops::Answer;
use crate::frontend::ops::acl;
use crate::frontend::ops::appends;
use crate::frontend::ops::blobs;
use crate::frontend::ops::blocks;
use crate::frontend::ops::containers;
use crate::frontend::ops::content;
use crate::frontend::ops::copies;
use crate::frontend::ops::copies::parts;
use crate::frontend::ops::delegation;
use crate::frontend::ops::find;
use crate::frontend::ops::leases;
use crate::frontend::ops::listing;
use crate::frontend::ops::pages;
use crate::frontend::ops::service_properties;
use crate::frontend::ops::tags;
use crate::frontend::ops::versions;
use crate::frontend::source::Requester;
use crate::frontend::state::FrontEnd;
use crate::index::BlobChange;
use crate::protocol::model::Operation;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;

/// Whether it may add rows to a container: of what is not known to add none that is assumed.
const fn may_change_blobs(operation: &Operation) -> bool {
    use Operation as O;
    !matches!(
        operation,
        O::GetAccountInformation
            | O::GetServiceProperties
            | O::GetServiceStats
            | O::GetUserDelegationKey { .. }
            | O::ListContainers(_)
            | O::GetContainer { .. }
            | O::GetContainerAcl { .. }
            | O::ListBlobs(_)
            | O::GetPageRanges { .. }
            | O::GetBlockList { .. }
            | O::GetBlob { .. }
            | O::GetBlobProperties { .. }
            | O::GetBlobMetadata { .. }
            | O::GetBlobTags { .. }
            | O::FindBlobs(_)
            // Its parts come through here one by one.
            | O::Batch(_)
    )
}

/// Refuses what the account or its sender rule out, before a document is asked for.
///
/// # Errors
/// `PublicAccessNotPermitted`, `AuthenticationFailed`.
pub(crate) fn check_before_document(
    account: &Account,
    operation: &Operation,
) -> Result<(), Refusal> {
    if let Operation::SetContainerAcl { public_access, .. } = operation {
        acl::check_switch(account, *public_access)?;
    }
    if let Operation::GetUserDelegationKey { holder: None, .. } = operation {
        return Err(errors::only_bearer());
    }
    Ok(())
}

/// Carries out one operation. `memory` is that of the document it was completed with.
pub(crate) async fn dispatch(
    front: &FrontEnd,
    (requester, account): (Requester<'_>, &Account),
    operation: Operation,
    (body, memory): (&mut RequestBody, Option<DocumentMemory>),
) -> Answer {
    use Operation as O;
    // Before the container is looked up, until the answer: the purge of a deleted one waits for it.
    // It does not wait for documents.
    let _change = may_change_blobs(&operation).then(|| front.inflight.change());
    let payer = requester.payer(account);
    let mut room = match listing::room(&operation) {
        Some(bytes) => Some(Purse::new(&front.answers, payer).begin(bytes).await?),
        None => None,
    };
    // Large futures are boxed. Otherwise each read would move their space too.
    let reply = match operation {
        O::GetAccountInformation => Ok(Reply::AccountInformation),
        O::GetServiceProperties => Ok(service_properties::get(account)),
        O::SetServiceProperties { change } => {
            service_properties::set(front, account, change, memory.unwrap_or_default()).await
        }
        O::GetUserDelegationKey { wanted, version, holder } => {
            delegation::get(front, account, (holder, version), wanted)
        }
        O::GetServiceStats => Ok(Reply::ServiceStats { last_sync: front.env.clock.now() }),
        O::ListContainers(list) => listing::containers(front, account, list).await,
        O::CreateContainer { container, metadata, public_access, encryption_scope } => {
            let new = containers::New { metadata, public_access, encryption_scope };
            containers::create(front, account, container, new).await
        }
        O::GetContainer { container, precondition } => {
            containers::get(front, account, &container, &precondition).await
        }
        O::GetContainerAcl { container, precondition } => {
            acl::get(front, account, &container, &precondition).await
        }
        O::SetContainerAcl { container, precondition, public_access, policies } => {
            let of = (container, precondition);
            acl::set(front, account, of, (public_access, policies), memory.unwrap_or_default())
                .await
        }
        O::SetContainerMetadata { container, precondition, metadata } => {
            containers::set_metadata(front, account, container, precondition, metadata).await
        }
        O::DeleteContainer { container, precondition } => {
            containers::delete(front, account, container, precondition).await
        }
        O::RestoreContainer { container } => versions::restore(front, account, &container).await,
        O::LeaseContainer { container, precondition, action } => {
            leases::container(front, account, container, precondition, action).await
        }
        O::ListBlobs(list) => listing::blobs(front, account, list).await,
        O::PutBlob { path, precondition, properties, metadata, tags, tier, kind, upload } => {
            let put =
                blobs::Put { path, precondition, properties, metadata, tags, tier, kind, upload };
            boxed(|| blobs::put(front, account, put, body)).await
        }
        O::AppendBlock { path, precondition, position, len_max, upload } => {
            let bounds = appends::Bounds { position, len_max };
            let blob = (path, precondition, bounds);
            boxed(|| appends::append(front, account, blob, &upload, body)).await
        }
        O::PutPage { path, precondition, sequence, write, range, upload } => {
            let put = pages::Put { path, precondition, sequence, write, range, upload };
            boxed(|| pages::put(front, account, put, body)).await
        }
        O::PutPageFromUrl { path, precondition, sequence, range, source } => {
            let put = parts::Pages { path, precondition, sequence, range };
            boxed(|| parts::put_pages(front, (requester, account), put, &source)).await
        }
        O::SetPageProperties { path, precondition, properties, len, sequence } => {
            let blob = (path, precondition);
            pages::set(front, account, blob, properties, (len, sequence)).await
        }
        O::GetPageRanges { path, since, precondition, range, marker, max_results } => {
            let blob = (path, since, precondition);
            pages::ranges(front, account, blob, (range, marker), max_results).await
        }
        O::SealBlob { path, precondition, position } => {
            appends::seal(front, account, path, precondition, position).await
        }
        O::PutBlobFromUrl(put) => {
            boxed(|| copies::put_blob(front, (requester, account), *put)).await
        }
        O::CopyBlob(copy) => boxed(|| copies::copy(front, (requester, account), *copy)).await,
        O::AbortCopy { path, id, precondition } => {
            copies::abort(front, account, path, (id, precondition)).await
        }
        O::AppendBlockFromUrl { path, precondition, position, len_max, source } => {
            let bounds = appends::Bounds { position, len_max };
            let append = (path, precondition, bounds);
            boxed(|| parts::append(front, (requester, account), append, &source)).await
        }
        O::PutBlockFromUrl { path, id, precondition, source } => {
            let block = (path, id, precondition);
            boxed(|| parts::put_block(front, (requester, account), block, &source)).await
        }
        O::PutBlock { path, id, precondition, upload } => {
            let block = (path, id, precondition);
            boxed(|| blocks::stage(front, account, block, &upload, body)).await
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
            let put = blocks::PutList {
                path,
                precondition,
                properties,
                metadata,
                tags,
                tier,
                list,
                checksum,
            };
            boxed(|| blocks::commit(front, account, put, memory.unwrap_or_default())).await
        }
        O::GetBlockList { path, precondition, kind } => {
            blocks::list(front, account, path, precondition, kind).await
        }
        O::GetBlob { path, precondition, range, checksum } => {
            let part = (range, checksum);
            return content::get(front, account, (path, precondition), part, payer).await;
        }
        O::GetBlobProperties { path, precondition } => {
            content::facts(front, account, path, precondition).await.map(Reply::BlobProperties)
        }
        O::GetBlobMetadata { path, precondition } => {
            content::facts(front, account, path, precondition).await.map(Reply::BlobMetadata)
        }
        O::SetBlobProperties { path, precondition, properties } => {
            let change = BlobChange::Properties(properties);
            blobs::update(front, account, path, precondition, change)
                .await
                .map(Reply::BlobPropertiesSet)
        }
        O::SetBlobMetadata { path, precondition, metadata } => {
            let change = BlobChange::Metadata(metadata);
            blobs::update(front, account, path, precondition, change)
                .await
                .map(Reply::BlobMetadataSet)
        }
        O::SnapshotBlob { path, precondition, metadata } => {
            versions::snapshot(front, account, path, precondition, metadata).await
        }
        O::SetBlobTier { path, precondition, tier, priority } => {
            let tier = (tier, priority);
            versions::set_tier(front, account, path, precondition, tier).await
        }
        // What is there needs no restoring, and of what is not there nothing was kept.
        O::UndeleteBlob { path } => content::facts(front, account, path, Precondition::default())
            .await
            .map(|_| Reply::BlobUndeleted),
        O::LeaseBlob { path, precondition, action } => {
            leases::blob(front, account, path, precondition, action).await
        }
        O::GetBlobTags { path, precondition } => {
            tags::get(front, account, path, precondition).await
        }
        O::SetBlobTags { path, precondition, tags } => {
            tags::set(front, account, (path, precondition), tags, memory.unwrap_or_default()).await
        }
        O::Batch(_) => {
            Err(Refusal::new(Reason::InvalidInput).message("A part of a batch cannot be a batch."))
        }
        O::FindBlobs(asked) => find::find(front, account, asked).await,
        O::DeleteBlob { path, precondition, scope } => {
            blobs::delete(front, account, path, precondition, scope).await
        }
    };
    let reply = reply?;
    if let (Reply::BlockList { .. }, Some(room)) = (&reply, &mut room) {
        // Now it is known how long the list is.
        room.shrink(blocks::room(&reply));
    }
    Ok((reply, room.map(ResponseBody::reserved)))
}
