//! Get and Set Blob Tags, and updates of the tag index after a write.

use bytes::Bytes;
use futures_util::future;

use crate::frontend::commit;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::ingest::DocumentMemory;
use crate::frontend::lookup;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::lookup::BlobVersion;
use crate::frontend::lookup::Located;
use crate::frontend::ops;
use crate::frontend::rows::RowAccess;
use crate::frontend::state::FrontEnd;
use crate::index;
use crate::index::BlobChange;
use crate::index::ForgetTagWork;
use crate::index::IndexTag;
use crate::index::ReadTagWork;
use crate::index::Router;
use crate::index::TagWork;
use crate::index::TagWorkPage;
use crate::index::UpdateBlob;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::types::BlobKey;
use crate::types::ContainerName;
use crate::types::RoutingKey;
use crate::types::Tags;

/// Work rows of one blob that are applied immediately; reclaim applies the rest.
const WORK_MAX: usize = 64;

/// A blob whose new tags the tag index must show before its write is answered.
#[derive(Clone, Debug)]
pub(crate) struct Tagged {
    blob: RoutingKey,
    container: ContainerName,
}

impl Tagged {
    /// `None` when a write sets no tags. Reclaim removes the entries of the old tags; a search
    /// checks each hit, so it shows none of them.
    pub(crate) fn new(key: &BlobKey, container: &ContainerName, tags: &Tags) -> Option<Self> {
        let tagged = || Self { blob: RoutingKey::blob(key), container: container.clone() };
        (!tags.is_empty()).then(tagged)
    }
}

/// Updates the tag index for a blob that was written. Failures are logged: reclaim updates it
/// later.
pub(crate) async fn update_index(rows: &RowAccess, tagged: Option<Tagged>) {
    if let Some(tagged) = tagged {
        let router = std::sync::Arc::clone(&rows.router);
        let indexing = rows.tasks.spawn_part("tag index", async move {
            // The tags are durable. When this fails, the work row stays and reclaim applies it.
            if let Err(error) = apply_work(&router, &tagged).await {
                tracing::debug!(%error, "the tag index was not updated; reclaim will update it");
            }
        });
        if let Err(error) = indexing.await {
            tracing::debug!(%error, "the tag index was not updated; reclaim will update it");
        }
    }
}

async fn apply_work(router: &Router, tagged: &Tagged) -> Result<(), index::Error> {
    let blob = Some(tagged.blob.clone());
    let read = ReadTagWork { blob, from: Bytes::new(), limit: WORK_MAX };
    let TagWorkPage { work, .. } = router.ask(read).await?;
    let writes = TagWork::changes(&work).into_iter().map(|change| {
        let container = change.present.then(|| tagged.container.clone());
        let entry = change.entry.routing_key();
        router.tell(IndexTag { entry, time: change.time, container })
    });
    future::try_join_all(writes).await?;
    let rows: Vec<Bytes> = work.into_iter().map(|work| work.row).collect();
    if !rows.is_empty() {
        router.tell(ForgetTagWork { rows }).await?;
    }
    Ok(())
}

/// Get Blob Tags.
pub(crate) async fn get(front: &FrontEnd, blob: BlobTarget<'_>) -> Result<Reply, Refusal> {
    let facts = ops::content::facts(front, blob).await?;
    Ok(Reply::BlobTags(facts.tags))
}

/// Set Blob Tags.
pub(crate) async fn set(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    tags: Tags,
    memory: DocumentMemory,
) -> Result<Reply, Refusal> {
    let container = blob.path.container.clone();
    let Located { blob: BlobVersion { key, revision }, precondition, .. } =
        blob.locate(&front.rows).await?;
    let tagged = Tagged::new(&key, &container, &tags).filter(|_| revision.is_current());
    let change = BlobChange::Tags(tags);
    let write = UpdateBlob { key, revision, guard: lookup::guard(precondition), change };
    let answer = commit::commit_holding(&front.rows, write, memory).await;
    answer.map_err(|error| errors::from_index(&error, Subject::Blob))?;
    update_index(&front.rows, tagged).await;
    Ok(Reply::BlobTagsSet)
}
