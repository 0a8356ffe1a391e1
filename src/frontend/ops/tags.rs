//! Get and Set Blob Tags, and bringing the tag index up to them.

use bytes::Bytes;
use futures_util::future;

use crate::frontend::accounts::Account;
use crate::frontend::commit;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::ingest::DocumentMemory;
use crate::frontend::lookup;
use crate::frontend::ops;
use crate::frontend::route::Router;
use crate::frontend::state::FrontEnd;
use crate::frontend::write::Stored;
use crate::index;
use crate::index::BlobChange;
use crate::index::IndexTag;
use crate::index::ReadTagWork;
use crate::index::TagWork;
use crate::index::UpdateBlob;
use crate::index::Write;
use crate::index::WriteRequest;
use crate::protocol::model::Precondition;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::BlobPath;
use crate::types::BlobKey;
use crate::types::ContainerName;
use crate::types::RoutingKey;
use crate::types::Tags;

/// Work rows of one blob that are brought into the index at once; more wait for reclaim.
const WORK_MAX: usize = 64;

/// A blob whose new tags the index is to show when its write is answered.
#[derive(Clone, Debug)]
pub(crate) struct Tagged {
    blob: RoutingKey,
    container: ContainerName,
}

impl Tagged {
    /// `None` when a write sets no tags: what it removes, reclaim takes out of the index, and no
    /// search shows it.
    pub(crate) fn new(key: &BlobKey, container: &ContainerName, tags: &Tags) -> Option<Self> {
        let tagged = || Self { blob: RoutingKey::blob(key), container: container.clone() };
        (!tags.is_empty()).then(tagged)
    }
}

/// As [`commit::commit`], and then brings the tag index up to the blob's tags.
pub(crate) async fn commit<W: WriteRequest>(
    front: &FrontEnd,
    write: W,
    stored: Stored,
    tagged: Option<Tagged>,
) -> Result<W::Reply, index::Error> {
    let answer = commit::commit(front, write, Some(stored)).await?;
    show(front, tagged).await;
    Ok(answer)
}

/// As [`commit::commit_holding`], and then brings the tag index up to the blob's tags.
pub(crate) async fn commit_holding<W: WriteRequest, G: Send + 'static>(
    front: &FrontEnd,
    write: W,
    holding: G,
    tagged: Option<Tagged>,
) -> Result<W::Reply, index::Error> {
    let answer = commit::commit_holding(front, write, holding).await?;
    show(front, tagged).await;
    Ok(answer)
}

/// Brings the tag index up to the tags of a blob that was written.
pub(crate) async fn show(front: &FrontEnd, tagged: Option<Tagged>) {
    if let Some(tagged) = tagged {
        let router = std::sync::Arc::clone(&front.router);
        let indexing = front.env.tasks.spawn_part("tag index", async move {
            // The work row stays when this fails, and reclaim takes it up: the tags themselves are
            // durable.
            if let Err(error) = bring_up(&router, &tagged).await {
                tracing::debug!(%error, "the tag index was not updated; reclaim will update it");
            }
        });
        if let Err(error) = indexing.await {
            tracing::debug!(%error, "the tag index was not updated; reclaim will update it");
        }
    }
}

async fn bring_up(router: &Router, tagged: &Tagged) -> Result<(), index::Error> {
    let blob = Some(tagged.blob.clone());
    let (work, _) = router.ask(ReadTagWork { blob, from: Bytes::new(), limit: WORK_MAX }).await?;
    let writes = TagWork::changes(&work).into_iter().map(|change| {
        let container = change.present.then(|| tagged.container.clone());
        let entry = change.entry.routing_key();
        router.write(Write::IndexTag(IndexTag { entry, time: change.time, container }))
    });
    future::try_join_all(writes).await?;
    let rows: Vec<Bytes> = work.into_iter().map(|work| work.row).collect();
    if !rows.is_empty() {
        router.write(Write::ForgetTagWork { rows }).await?;
    }
    Ok(())
}

/// Get Blob Tags.
pub(crate) async fn get(
    front: &FrontEnd,
    account: &Account,
    path: BlobPath,
    precondition: Precondition,
) -> Result<Reply, Refusal> {
    let facts = ops::content::facts(front, account, path, precondition).await?;
    Ok(Reply::BlobTags(facts.tags))
}

/// Set Blob Tags.
pub(crate) async fn set(
    front: &FrontEnd,
    account: &Account,
    (path, precondition): (BlobPath, Precondition),
    tags: Tags,
    memory: DocumentMemory,
) -> Result<Reply, Refusal> {
    let (container, snapshot) = (path.container.clone(), path.snapshot);
    let key = lookup::blob_key(front, account, path).await?;
    let tagged = Tagged::new(&key, &container, &tags).filter(|_| snapshot.is_none());
    let change = BlobChange::Tags(tags);
    let write = UpdateBlob { key, snapshot, guard: lookup::guard(precondition), change };
    match commit_holding(front, write, memory, tagged).await {
        Ok(_) => Ok(Reply::BlobTagsSet),
        Err(error) => Err(errors::from_index(&error, Subject::Blob)),
    }
}
