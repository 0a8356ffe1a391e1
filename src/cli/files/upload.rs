//! A file, or standard input, becomes a block blob.
//!
//! Content that fits into one block is sent in one request. Longer content is staged as blocks and
//! committed at the end, so the blob is replaced in one step. An upload that was killed leaves
//! staged blocks. The next run reuses those whose id says that they have the same bytes at the same
//! place.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::TryStreamExt;
use futures_util::stream;
use tokio::sync::OwnedSemaphorePermit;

use crate::env::user_files;
use crate::env::user_files::UserFileFacts;
use crate::env::user_files::UserFileKind;
use crate::protocol::azure::answers::ListedBlob;
use crate::types::Md5;
use crate::types::Md5Hasher;

use super::blobs::Content;
use super::blobs::Piece;
use super::blocks;
use super::blocks::Staged;
use super::content_type;
use super::copying::Copying;
use super::error::FilesError;
use super::meter::Outcome;
use super::names::last_part;
use super::place::Remote;
use super::same;

/// A file and the blob that it becomes.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) path: PathBuf,
    pub(super) file: UserFileFacts,
    pub(super) target: Remote,
    /// The blob that is there already.
    pub(super) existing: Option<ListedBlob>,
}

impl Copying {
    /// Uploads a file.
    ///
    /// # Errors
    /// [`FilesError`].
    pub(super) async fn upload(&self, job: &Upload) -> Result<Outcome, FilesError> {
        let Upload { path, file, existing, .. } = job;
        // Bytes that are read from a pipe to compare them cannot be read again.
        let is_file = file.kind == UserFileKind::File;
        if let Some(blob) = existing
            && is_file
            && same::is_uploaded(self, path, *file, blob).await?
        {
            return Ok(Outcome::Skipped);
        }
        match self.upload_from(job, !self.options.force).await {
            // Staged blocks of another encryption cannot be committed with these.
            Err(FilesError::Call(error))
                if is_file && !self.options.force && error.is_of_encryption() =>
            {
                self.upload_from(job, false).await?;
            }
            done => done?,
        }
        Ok(Outcome::Copied)
    }

    /// Uploads a file, and takes over staged blocks if wanted.
    async fn upload_from(&self, job: &Upload, take_over: bool) -> Result<(), FilesError> {
        let Upload { path, file, target, .. } = job;
        let opening = path.clone();
        let opened = self.on_disk(path, move || user_files::open_user_file(&opening)).await?;
        let (size, len) = match known_len(*file) {
            Some(len) => (blocks::block_size(self.options.block_size, len).min(len), Some(len)),
            None => (self.options.block_size, None),
        };
        let input = Input::new(Box::new(opened), path.clone(), size, len);
        let sent = self.send(input, target, take_over).await?;
        let again = path.clone();
        let now = self.on_disk(path, move || user_files::user_file(&again)).await?;
        if is_changed(*file, now, sent.whole) {
            let path = path.display();
            let text = format!("{path} was changed while it was read: run the command again");
            return Err(FilesError::Wrong(text));
        }
        sent.commit(self, target).await
    }

    /// Uploads standard input.
    ///
    /// # Errors
    /// [`FilesError`].
    pub(super) async fn upload_input(&self, target: &Remote) -> Result<Outcome, FilesError> {
        let name = PathBuf::from("standard input");
        let size = self.options.block_size;
        let input = Input::new(Box::new(std::io::stdin()), name, size, None);
        let sent = self.send(input, target, !self.options.force).await?;
        sent.commit(self, target).await?;
        Ok(Outcome::Copied)
    }

    /// Reads the input to its end and sends what needs more than one block.
    async fn send(
        &self,
        mut input: Input,
        target: &Remote,
        take_over: bool,
    ) -> Result<Sent, FilesError> {
        let name = last_part(&target.name);
        let given = self.options.content_type.clone();
        let content_type = given.unwrap_or_else(|| content_type::of_name(name).to_owned());
        let first = input.next(self).await?;
        let is_all = |read: &Chunk| input.is_last(read.piece);
        if first.as_ref().is_none_or(is_all) {
            let whole = first.as_ref().map_or(0, |read| read.piece.len);
            let body = first.map_or(Body::Whole(Bytes::new(), None), |read| {
                Body::Whole(read.bytes, Some(read.permit))
            });
            return Ok(Sent {
                body,
                whole,
                content: Content { content_type, md5: Some(input.digest()) },
            });
        }
        let staged = match take_over {
            true => Staged::new(self.service.staged(target).await?),
            false => Staged::default(),
        };
        let hasher = Arc::clone(&input.hasher);
        let rest = stream::unfold((input, first), |(mut input, waiting)| async move {
            let read = match waiting {
                Some(read) => Ok(Some(read)),
                None => input.next(self).await,
            };
            let read = read.transpose()?;
            Some((read, (input, None)))
        });
        let staged = &staged;
        let ids: Vec<(String, u64)> = rest
            .map(|read| async move { self.stage(target, staged, read?).await })
            .buffered(self.options.parallel)
            .try_collect()
            .await?;
        let whole = ids.iter().map(|(_, len)| len).sum();
        let md5 = Some(finish(&hasher));
        let ids = ids.into_iter().map(|(id, _)| id).collect();
        Ok(Sent { body: Body::Blocks(ids), whole, content: Content { content_type, md5 } })
    }

    /// Stages a block, unless it is there.
    async fn stage(
        &self,
        target: &Remote,
        staged: &Staged,
        read: Chunk,
    ) -> Result<(String, u64), FilesError> {
        let Chunk { piece, bytes, permit } = read;
        let hashed = bytes.clone();
        let digest = self.on_disk(&PathBuf::new(), move || Ok(Md5::of(&hashed))).await?;
        let id = blocks::block_id(piece, digest);
        if staged.has(&id, piece.len) {
            self.meter.reused(piece.len);
        } else {
            self.service.put_block(target, &id, bytes, digest).await?;
            self.meter.moved(piece.len);
        }
        drop(permit);
        Ok((id, piece.len))
    }
}

/// How much there is to read. Pipes do not say it, nor do files that the system makes up as they
/// are read, which seem empty.
fn known_len(file: UserFileFacts) -> Option<u64> {
    (file.kind == UserFileKind::File && file.len > 0).then_some(file.len)
}

/// Whether a file was changed while `read` bytes of it were read, as far as its metadata shows.
fn is_changed(before: UserFileFacts, after: Option<UserFileFacts>, read: u64) -> bool {
    match known_len(before) {
        Some(len) => read != len || after != Some(before),
        None => after.is_none_or(|after| (after.kind, after.len) != (before.kind, before.len)),
    }
}

/// A piece that was read.
struct Chunk {
    piece: Piece,
    bytes: Bytes,
    permit: OwnedSemaphorePermit,
}

/// The bytes that were read, and the remaining work to make a blob of them.
struct Sent {
    body: Body,
    whole: u64,
    content: Content,
}

/// Content that is not committed yet.
enum Body {
    /// All of it.
    Whole(Bytes, Option<OwnedSemaphorePermit>),
    /// The ids of staged blocks.
    Blocks(Vec<String>),
}

impl Sent {
    async fn commit(self, copying: &Copying, target: &Remote) -> Result<(), FilesError> {
        match self.body {
            Body::Whole(bytes, permit) => {
                copying.service.put_blob(target, bytes, &self.content).await?;
                copying.meter.moved(self.whole);
                drop(permit);
            }
            Body::Blocks(ids) => {
                copying.service.put_block_list(target, &ids, &self.content).await?;
            }
        }
        Ok(())
    }
}

/// Input that is read in pieces, one after the other.
struct Input {
    from: Option<Box<dyn Read + Send>>,
    name: PathBuf,
    /// Bytes of a piece.
    size: u64,
    /// Bytes of all, if known.
    len: Option<u64>,
    start: u64,
    /// Of all that was read.
    hasher: Arc<Mutex<Md5Hasher>>,
}

impl Input {
    fn new(from: Box<dyn Read + Send>, name: PathBuf, size: u64, len: Option<u64>) -> Self {
        Self { from: Some(from), name, size, len, start: 0, hasher: Arc::default() }
    }

    /// The next piece; none at the end.
    async fn next(&mut self, copying: &Copying) -> Result<Option<Chunk>, FilesError> {
        let permit = copying.permit().await;
        let Some(mut from) = self.from.take() else { return Ok(None) };
        let want = usize::try_from(self.size).unwrap_or(usize::MAX);
        let hasher = Arc::clone(&self.hasher);
        let (from, bytes) = copying
            .on_disk(&self.name, move || {
                let bytes = user_files::read_piece(&mut *from, want)?;
                hasher.lock().unwrap_or_else(PoisonError::into_inner).update(&bytes);
                Ok((from, bytes))
            })
            .await?;
        if bytes.is_empty() {
            return Ok(None);
        }
        // No list can have it: nothing more is read.
        if self.start / self.size.max(1) >= blocks::BLOCKS_MAX {
            let text = "the input has more than 50,000 blocks: give a larger --block-size";
            return Err(FilesError::Wrong(text.to_owned()));
        }
        let piece = Piece { start: self.start, len: bytes.len() as u64 };
        self.start += piece.len;
        if !self.is_last(piece) {
            self.from = Some(from);
        }
        Ok(Some(Chunk { piece, bytes: Bytes::from(bytes), permit }))
    }

    /// Whether nothing is behind a piece.
    fn is_last(&self, piece: Piece) -> bool {
        piece.len < self.size || self.len == Some(piece.start + piece.len)
    }

    fn digest(&self) -> Md5 {
        finish(&self.hasher)
    }
}

/// The digest of the bytes that were read.
fn finish(hasher: &Mutex<Md5Hasher>) -> Md5 {
    std::mem::take(&mut *hasher.lock().unwrap_or_else(PoisonError::into_inner)).finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_do_not_say_their_length_are_read_to_the_end() {
        let of = |kind, len| UserFileFacts { kind, len, modified: None };
        let file = of(UserFileKind::File, 4);
        assert_eq!(known_len(file), Some(4));
        assert!(!is_changed(file, Some(file), 4));
        assert!(is_changed(file, Some(file), 3), "cut off");
        assert!(is_changed(file, Some(of(UserFileKind::File, 5)), 4));
        assert!(is_changed(file, None, 4));
        let pipe = of(UserFileKind::Other, 0);
        // As in /proc.
        let made_up = of(UserFileKind::File, 0);
        for source in [pipe, made_up] {
            assert_eq!(known_len(source), None);
            assert!(!is_changed(source, Some(source), 9), "{source:?}");
            assert!(is_changed(source, None, 9), "{source:?}");
        }
        assert!(is_changed(made_up, Some(file), 4), "it was empty, and was written");
    }
}
