//! A blob becomes another blob. The bytes pass between servers, not through this program.
//!
//! In the same account it is Copy Blob, which keeps type, metadata and properties. Elsewhere the
//! target's server fetches the source block by block.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::TryStreamExt;
use futures_util::stream;

use crate::protocol::azure::answers::ListedBlob;

use super::blobs::Content;
use super::blobs::Source;
use super::blocks;
use super::blocks::Staged;
use super::copying::Copying;
use super::endpoint::Credential;
use super::error::FilesError;
use super::meter::Outcome;
use super::place::Remote;
use super::same;

/// The first pause before a running copy is polled again. It doubles each time.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// A blob and the one that it becomes.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) source: Remote,
    pub(super) blob: ListedBlob,
    pub(super) target: Remote,
    /// The blob that is there already.
    pub(super) existing: Option<ListedBlob>,
}

impl Copying {
    /// Copies a blob to another name, container or account.
    ///
    /// # Errors
    /// [`FilesError`].
    pub(super) async fn transfer(&self, job: &Transfer) -> Result<Outcome, FilesError> {
        let Transfer { source, blob, target, existing } = job;
        if existing.as_ref().is_some_and(|found| same::is_copied(self, blob, found)) {
            return Ok(Outcome::Skipped);
        }
        let together = source.endpoint.is_same_place(&target.endpoint);
        let url = match (&target.endpoint.credential, together) {
            // The key that signs the request permits it to read the source. Services keep the
            // source's URL as a property: it should have no signature.
            (Credential::Key(_), true) => source.url(),
            (_, _) => {
                let now = self.service.env.clock.now();
                source.endpoint.source_url(source.container()?, &source.name, now)
            }
        };
        let from = Source { url: &url, etag: &blob.etag };
        if together {
            self.copy_inside(target, &from).await?;
            self.meter.moved(blob.size);
        } else {
            match self.fetch(target, &from, blob, !self.options.force).await {
                // Staged blocks of another encryption cannot be committed with these.
                Err(FilesError::Call(error)) if !self.options.force && error.is_of_encryption() => {
                    self.fetch(target, &from, blob, false).await?;
                }
                done => done?,
            }
        }
        Ok(Outcome::Copied)
    }

    /// Copy Blob, and waits for its end.
    async fn copy_inside(&self, target: &Remote, source: &Source<'_>) -> Result<(), FilesError> {
        let permit = self.permit().await;
        let mut answer = self.service.copy(target, source).await?;
        let id = answer.header("x-ms-copy-id").to_owned();
        let mut pause = PAUSE;
        while answer.header("x-ms-copy-status") == "pending" && answer.header("x-ms-copy-id") == id
        {
            self.service.env.clock.sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
            answer = self.service.properties(target).await?;
        }
        drop(permit);
        if answer.header("x-ms-copy-status") == "success" && answer.header("x-ms-copy-id") == id {
            return Ok(());
        }
        let why = answer.header("x-ms-copy-status-description");
        let text = format!("the copy to {} failed: {why}; run the command again", target.url());
        Err(FilesError::Wrong(text))
    }

    /// Has the target's server fetch the source in blocks, and takes over staged ones if wanted.
    async fn fetch(
        &self,
        target: &Remote,
        source: &Source<'_>,
        blob: &ListedBlob,
        take_over: bool,
    ) -> Result<(), FilesError> {
        let size = blocks::block_size(self.options.block_size, blob.size);
        let staged = match take_over && blob.size > size {
            true => Staged::new(self.service.staged(target).await?),
            false => Staged::default(),
        };
        let staged = &staged;
        let ids: Vec<String> = stream::iter(blocks::pieces(blob.size, size))
            .map(|piece| async move {
                let _permit = self.permit().await;
                let id = blocks::copied_block_id(piece, source.url, source.etag);
                if staged.has(&id, piece.len) {
                    self.meter.reused(piece.len);
                } else {
                    self.service.put_block_from(target, &id, source, piece).await?;
                    self.meter.moved(piece.len);
                }
                Ok::<_, FilesError>(id)
            })
            .buffered(self.options.parallel)
            .try_collect()
            .await?;
        let content = Content { content_type: blob.content_type.clone(), md5: blob.md5 };
        Ok(self.service.put_block_list(target, &ids, &content).await?)
    }
}
