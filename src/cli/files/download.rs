//! A blob becomes a local file.
//!
//! Bytes go to a file beside the target, which gets the target's name once all have come, are
//! verified and are durable. A large blob comes in pieces, and a note has those that have come. The
//! next run takes them over if the blob is still the same.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::path::PathBuf;

use futures_util::StreamExt;
use futures_util::TryStreamExt;
use futures_util::stream;

use crate::env::user_files;
use crate::env::user_files::UserFileKind;
use crate::protocol::azure::answers::ListedBlob;
use crate::types::Md5;

use super::blobs::Piece;
use super::blocks;
use super::copying::Copying;
use super::error::FilesError;
use super::meter::Outcome;
use super::names::Unfinished;
use super::note;
use super::note::Header;
use super::place::Remote;
use super::same;

/// A blob and the file that it becomes.
#[derive(Debug)]
pub(super) struct Download {
    pub(super) source: Remote,
    pub(super) blob: ListedBlob,
    pub(super) path: PathBuf,
    /// The folder that the path must not leave, if the name comes from the server.
    pub(super) folder: Option<PathBuf>,
}

impl Copying {
    /// Downloads a blob.
    ///
    /// # Errors
    /// [`FilesError`].
    pub(super) async fn download(&self, job: &Download) -> Result<Outcome, FilesError> {
        let Download { source, blob, path, folder } = job;
        let (target, inside) = (path.clone(), folder.clone());
        let existing = self
            .on_disk(path, move || {
                make_room(&target, inside.as_deref())?;
                user_files::user_file(&target)
            })
            .await?;
        match existing {
            Some(file) if file.kind == UserFileKind::Folder => {
                let error = io::Error::new(io::ErrorKind::IsADirectory, "there is a folder");
                return Err(FilesError::Disk { path: path.clone(), error });
            }
            Some(file) if same::is_downloaded(self, path, file, blob).await? => {
                return Ok(Outcome::Skipped);
            }
            Some(_) | None => {}
        }
        if blob.size <= self.options.block_size {
            self.whole(source, blob, path).await?;
        } else {
            self.in_pieces(source, blob, path).await?;
        }
        Ok(Outcome::Copied)
    }

    /// A blob that is one request.
    async fn whole(
        &self,
        source: &Remote,
        blob: &ListedBlob,
        path: &Path,
    ) -> Result<(), FilesError> {
        let permit = self.permit().await;
        let piece = (blob.size > 0).then_some(Piece { start: 0, len: blob.size });
        let bytes = self.service.get(source, &blob.etag, piece).await?;
        let files = Unfinished::of(path);
        let (target, len) = (path.to_owned(), blob.size);
        let wanted = blob.md5.filter(|_| self.options.verify);
        let is_right = self
            .on_disk(path, move || {
                if wanted.is_some_and(|md5| md5 != Md5::of(&bytes)) {
                    return Ok(false);
                }
                user_files::remove_user_file(&files.note)?;
                user_files::write_piece_at(&files.part, 0, &bytes)?;
                user_files::finish_user_file(&files.part, len, &target)?;
                Ok(true)
            })
            .await?;
        drop(permit);
        if !is_right {
            return Err(differs(source));
        }
        self.meter.moved(blob.size);
        Ok(())
    }

    async fn in_pieces(
        &self,
        source: &Remote,
        blob: &ListedBlob,
        path: &Path,
    ) -> Result<(), FilesError> {
        let header = Header::new(source.url(), &blob.etag, blob.size);
        let files = Unfinished::of(path);
        let beginning = files.clone();
        let done = self.on_disk(path, move || begin(&beginning, &header)).await?;
        let done = &done;
        let size = blocks::block_size(self.options.block_size, blob.size);
        stream::iter(blocks::pieces(blob.size, size))
            .map(|piece| {
                let noted = done.get(&piece.start).filter(|(found, _)| *found == piece);
                self.piece(source, blob, piece, noted.map(|(_, digest)| *digest), &files)
            })
            .buffer_unordered(self.options.parallel)
            .try_collect::<()>()
            .await?;
        let wanted = blob.md5.filter(|_| self.options.verify);
        if let Some(md5) = wanted
            && same::digest(self, &files.part).await? != md5
        {
            let wrong = files.clone();
            self.on_disk(path, move || remove(&wrong)).await?;
            return Err(differs(source));
        }
        let (target, len) = (path.to_owned(), blob.size);
        self.on_disk(path, move || {
            user_files::remove_user_file(&files.note)?;
            user_files::finish_user_file(&files.part, len, &target)
        })
        .await
    }

    /// A piece: taken from the unfinished file if it is there, or requested.
    async fn piece(
        &self,
        source: &Remote,
        blob: &ListedBlob,
        piece: Piece,
        noted: Option<Md5>,
        files: &Unfinished,
    ) -> Result<(), FilesError> {
        let _permit = self.permit().await;
        if let Some(digest) = noted {
            let part = files.part.clone();
            let len = usize::try_from(piece.len).unwrap_or(usize::MAX);
            let is_there = self
                .on_disk(&files.part, move || {
                    let bytes = user_files::read_piece_at(&part, piece.start, len)?;
                    Ok(bytes.len() == len && Md5::of(&bytes) == digest)
                })
                .await?;
            if is_there {
                self.meter.reused(piece.len);
                return Ok(());
            }
        }
        let bytes = self.service.get(source, &blob.etag, Some(piece)).await?;
        let writing = files.clone();
        self.on_disk(&files.part, move || {
            user_files::write_piece_at(&writing.part, piece.start, &bytes)?;
            user_files::append_text(&writing.note, &note::line(piece, Md5::of(&bytes)))
        })
        .await?;
        self.meter.moved(piece.len);
        Ok(())
    }
}

/// Makes the folder of a target. Below `inside`, no folder may be a symbolic link: it could lead
/// out of it.
fn make_room(target: &Path, inside: Option<&Path>) -> io::Result<()> {
    let Some(parent) = target.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
        return Ok(());
    };
    if let Some(folder) = inside
        && let Ok(below) = parent.strip_prefix(folder)
    {
        let mut at = folder.to_owned();
        for part in below.components() {
            at.push(part);
            let found = user_files::user_file_itself(&at)?;
            if found.is_some_and(|found| found.kind == UserFileKind::Link) {
                let text = format!("{} is a symbolic link, which is not followed", at.display());
                return Err(io::Error::other(text));
            }
        }
    }
    user_files::make_user_folder(parent)
}

/// What an earlier run has left of the same blob. What it has left of another is removed.
fn begin(files: &Unfinished, header: &Header) -> io::Result<BTreeMap<u64, (Piece, Md5)>> {
    let text = user_files::read_text(&files.note)?;
    let done = text.and_then(|text| note::read(&text, header));
    if let Some(done) = done
        && user_files::user_file_itself(&files.part)?.is_some()
    {
        return Ok(done);
    }
    remove(files)?;
    user_files::append_text(&files.note, &header.line())?;
    Ok(BTreeMap::new())
}

fn remove(files: &Unfinished) -> io::Result<()> {
    user_files::remove_user_file(&files.note)?;
    user_files::remove_user_file(&files.part)
}

fn differs(source: &Remote) -> FilesError {
    FilesError::Wrong(format!(
        "{}: the bytes are not those of its Content-MD5; run the command again, and if it is the \
         same, the blob's Content-MD5 is wrong: --no-verify copies it nevertheless",
        source.url()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_taken_over_only_for_the_same_blob() {
        let folder = tempfile::tempdir().unwrap();
        let files = Unfinished::of(&folder.path().join("target"));
        let header = Header::new("http://h/a/c/b".to_owned(), "1", 16);
        assert!(begin(&files, &header).unwrap().is_empty());
        let piece = Piece { start: 8, len: 8 };
        user_files::write_piece_at(&files.part, 8, b"12345678").unwrap();
        user_files::append_text(&files.note, &note::line(piece, Md5::of(b"12345678"))).unwrap();
        assert_eq!(begin(&files, &header).unwrap().len(), 1);
        // A note whose bytes are gone says nothing.
        user_files::remove_user_file(&files.part).unwrap();
        assert!(begin(&files, &header).unwrap().is_empty());
        user_files::write_piece_at(&files.part, 8, b"12345678").unwrap();
        user_files::append_text(&files.note, &note::line(piece, Md5::of(b"12345678"))).unwrap();
        let changed = Header::new("http://h/a/c/b".to_owned(), "2", 16);
        assert!(begin(&files, &changed).unwrap().is_empty());
        assert_eq!(user_files::user_file(&files.part).unwrap(), None, "bytes of the old blob");
    }

    #[cfg(unix)]
    #[test]
    fn links_below_the_folder_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
        let target = folder.path().join("link/deep/file");
        make_room(&target, Some(folder.path())).unwrap_err();
        assert_eq!(user_files::user_folder(outside.path()).unwrap().len(), 0);
        make_room(&folder.path().join("a/b/file"), Some(folder.path())).unwrap();
        // The user's own path may have links.
        make_room(&target, None).unwrap();
        assert_eq!(user_files::user_folder(outside.path()).unwrap().len(), 1);
    }
}
