//! `blockyard cat`: blobs and files on standard output.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;

use clap::Args;
use futures_util::StreamExt;
use futures_util::stream;

use crate::env::stdout;
use crate::env::user_files;
use crate::env::user_files::UserFileKind;
use crate::types::Md5Hasher;

use super::blobs::Piece;
use super::blobs::facts;
use super::blocks;
use super::connect::ConnectArgs;
use super::connect::Login;
use super::copying::Copying;
use super::copying::Options;
use super::error::FilesError;
use super::error::path_shown;
use super::local::Local;
use super::place::Named;
use super::place::Remote;
use super::place::named;
use super::service::Service;

/// Bytes that are requested at a time.
const BLOCK_SIZE: u64 = 4 << 20;
/// Requests at a time.
const PARALLEL: usize = 4;
/// Bytes of a local file that are read at a time.
const STEP: usize = 1 << 20;

/// Arguments of `cat`.
#[derive(Args, Debug)]
pub struct CatArgs {
    /// Blobs, as URLs or by://CONTAINER/BLOB, and local files
    #[arg(value_name = "PLACE", required = true)]
    pub places: Vec<OsString>,
    /// Only these bytes of each: FIRST-LAST, FIRST- or, for the last N bytes, -N
    #[arg(long, value_name = "RANGE", allow_hyphen_values = true)]
    pub range: Option<Range>,
    /// The endpoint and the account.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// A range of bytes, as users write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    first: Option<u64>,
    last: Option<u64>,
}

impl std::str::FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no range: give FIRST-LAST, FIRST- or -N");
        let (first, last) = text.split_once('-').ok_or_else(wrong)?;
        let number = |text: &str| match text {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| wrong()),
        };
        let range = Self { first: number(first)?, last: number(last)? };
        match range {
            Self { first: None, last: None } => Err(wrong()),
            Self { first: Some(first), last: Some(last) } if first > last => Err(wrong()),
            range => Ok(range),
        }
    }
}

impl Range {
    /// The start and the end, exclusive, in a blob of `size` bytes.
    fn within(self, size: u64) -> (u64, u64) {
        match (self.first, self.last) {
            (None, last) => (size.saturating_sub(last.unwrap_or(0)), size),
            (Some(first), None) => (first.min(size), size),
            (Some(first), Some(last)) => (first.min(size), last.saturating_add(1).min(size)),
        }
    }
}

/// Runs `blockyard cat`.
///
/// # Errors
/// [`FilesError`].
pub(in crate::cli) async fn cat(args: &CatArgs) -> Result<(), FilesError> {
    let login = Login::new(&args.connect.login)?;
    let options = Options {
        parallel: PARALLEL,
        block_size: BLOCK_SIZE,
        force: false,
        verify: true,
        content_type: None,
    };
    let copying = Copying::new(Service::new(&args.connect)?, options);
    for place in named(&args.places, &login)? {
        match place {
            Named::Remote(blob) => print_blob(&copying, &blob, args.range).await?,
            Named::Local(path) => print_file(&copying.service, &path, args.range).await?,
        }
    }
    Ok(())
}

/// Prints a blob, or a range of it. All bytes are of one state of the blob.
///
/// # Errors
/// [`FilesError`]; [`FilesError::Wrong`] after the last byte if the blob is not that of its
/// Content-MD5.
pub(super) async fn print_blob(
    copying: &Copying,
    blob: &Remote,
    range: Option<Range>,
) -> Result<(), FilesError> {
    blob.container()?;
    if blob.name.is_empty() {
        return Err(FilesError::Usage(format!("{} names no blob", blob.url())));
    }
    let found = facts(&blob.name, &copying.service.properties(blob).await?);
    let (start, end) = range.map_or((0, found.size), |range| range.within(found.size));
    let etag = found.etag.as_str();
    let size = copying.options.block_size;
    let pieces = blocks::pieces(end - start, size);
    let mut bodies = stream::iter(pieces)
        .map(|piece| {
            let piece = Piece { start: start + piece.start, ..piece };
            copying.service.get(blob, etag, Some(piece))
        })
        .buffered(copying.options.parallel);
    let mut hasher = Md5Hasher::default();
    while let Some(body) = bodies.next().await {
        let body = body?;
        hasher.update(&body);
        emit(&copying.service, body).await?;
    }
    let whole = (start, end) == (0, found.size);
    match found.md5.filter(|_| whole && copying.options.verify) {
        Some(md5) if hasher.finish() != md5 => Err(FilesError::Wrong(format!(
            "{}: the bytes that were printed are not those of its Content-MD5",
            blob.url()
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Prints a file, or a range of it. The bytes of a pipe are printed when they arrive.
///
/// # Errors
/// [`FilesError::Disk`]; [`FilesError::Usage`] for a folder, or a range of a pipe.
async fn print_file(
    service: &Service,
    path: &Path,
    range: Option<Range>,
) -> Result<(), FilesError> {
    let found = path.to_owned();
    let Local { facts, .. } = service.on_disk(path, move || Local::at(&found)).await?;
    let refused = |why: &str| Err(FilesError::Usage(format!("{} is {why}", path_shown(path))));
    let (start, mut left) = match (facts.kind, range) {
        (UserFileKind::Folder, _) => return refused("a folder; `blockyard ls` lists it"),
        (UserFileKind::File, Some(range)) => {
            let (start, end) = range.within(facts.len);
            (start, end - start)
        }
        (UserFileKind::Link | UserFileKind::Other, Some(_)) => {
            return refused("no regular file: leave out --range");
        }
        (UserFileKind::File | UserFileKind::Link | UserFileKind::Other, None) => (0, u64::MAX),
    };
    let opening = path.to_owned();
    let mut file =
        service.on_disk(path, move || user_files::open_user_file_at(&opening, start)).await?;
    loop {
        let len = usize::try_from(left).unwrap_or(STEP).min(STEP);
        let piece;
        (file, piece) = service.on_disk(path, move || read(file, len)).await?;
        if piece.is_empty() {
            return Ok(());
        }
        left -= piece.len() as u64;
        emit(service, piece).await?;
    }
}

fn read(mut file: File, len: usize) -> io::Result<(File, Vec<u8>)> {
    let piece = user_files::read_some(&mut file, len)?;
    Ok((file, piece))
}

/// Writes bytes to standard output.
///
/// # Errors
/// [`FilesError::Wrong`].
async fn emit(
    service: &Service,
    bytes: impl AsRef<[u8]> + Send + 'static,
) -> Result<(), FilesError> {
    let printing = move || stdout::print(bytes.as_ref());
    let printed = service.env.tasks.spawn_blocking("standard output", printing).await;
    let printed = printed.map_err(|error| FilesError::Wrong(error.to_string()))?;
    printed.map_err(|error| FilesError::Wrong(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_at_the_end() {
        for (text, within) in [
            ("0-4", (0, 5)),
            ("3-", (3, 10)),
            ("-4", (6, 10)),
            ("-40", (0, 10)),
            ("8-40", (8, 10)),
            ("40-50", (10, 10)),
            ("0-18446744073709551615", (0, 10)),
        ] {
            let range: Range = text.parse().unwrap();
            assert_eq!(range.within(10), within, "{text}");
        }
        for wrong in ["", "-", "5", "5-4", "a-b", "1-2-3", "--1"] {
            assert!(wrong.parse::<Range>().is_err(), "{wrong}");
        }
    }
}
