//! GetObjectAttributes: facts of a blob and of the parts in which it was uploaded.

use crate::frontend::encrypt;
use crate::frontend::encrypt::unlock::Unlocking;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::facts;
use crate::frontend::lookup;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::lookup::BlobVersion;
use crate::frontend::lookup::Located;
use crate::frontend::state::FrontEnd;
use crate::index::BlobPartView;
use crate::index::BlobPartsView;
use crate::index::ReadBlobParts;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::WantedParts;
use crate::protocol::model::reply::BlobPart;
use crate::protocol::model::reply::BlobParts;

/// Looks up a blob and a page of its parts.
pub(crate) async fn get(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    wanted: WantedParts,
) -> Result<Reply, Refusal> {
    let unlocking = Unlocking::of(front, &blob);
    let tiers = blob.account.account_type.tiers();
    let Located { blob: BlobVersion { key, revision }, precondition, .. } =
        blob.locate(&front.rows).await?;
    let guard = lookup::guard(precondition);
    let WantedParts { after, limit } = wanted;
    let found = front.rows.router.ask(ReadBlobParts { key, revision, guard, after, limit }).await;
    let BlobPartsView { mut record, total, parts, more } =
        found.map_err(|error| errors::from_index(&error, Subject::Blob))?;
    let decrypting = unlocking.found(&record)?;
    encrypt::decrypt_md5(decrypting.as_ref(), &mut record.properties)?;
    encrypt::decrypt_checksums(decrypting.as_ref(), &mut record)?;
    let mut items = Vec::with_capacity(parts.len());
    for BlobPartView { number, len, mut checksums } in parts {
        if let Some(decrypting) = decrypting.as_ref().filter(|_| record.is_under_key()) {
            encrypt::decrypt_digests(decrypting, &mut checksums)?;
        }
        items.push(BlobPart { number, len, checksums });
    }
    let facts = facts::of_blob(front, tiers, record, front.env.clock.now());
    let parts = total.map(|total| BlobParts { wanted, total, items, more });
    Ok(Reply::BlobAttributes { facts, parts })
}
