//! The `format` file of a data directory: the version of the layouts, the id of the store, and the
//! number of the disk in it.

#![deny(clippy::indexing_slicing)]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::capacity::disk::open_error::OpenError;
use crate::capacity::units::index;
use crate::env::{Disk, DiskError, Env};

/// The version of the layouts that this program writes. It reads no newer version. A release whose
/// rows older releases would misread raises the version, so that an older release refuses the store
/// at the start instead of failing on a row (ADR 0027).
///
/// 1: the first. 2: accounts of version 5, containers and blobs of version 3, staged blocks and
/// layout segments of version 2. 3: uploads, settings of buckets, access lists, containers that
/// close, metadata that is not UTF-8; what S3 writes, and what older releases would not enforce.
/// 4: versions of blobs, which an older release would overwrite and could not list (ADR 0038).
/// 5: retentions and legal holds, which an older release would not enforce (ADR 0041).
pub(crate) const FORMAT: u32 = 5;
/// The oldest version that it reads.
const FORMAT_OLDEST: u32 = 1;

/// Its name in the data directory. It exists as long as the directory is part of a store.
pub const FORMAT_FILE: &str = "format";

const LEN_MAX: u64 = 4096;

/// The content of the file, as JSON, which a person can read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Format {
    /// Version of all layouts below this directory.
    pub(crate) format: u32,
    /// The store, 32 hexadecimal digits.
    pub(crate) store: String,
    /// This disk, 32 hexadecimal digits.
    pub(crate) disk: String,
    /// Its number in the store.
    pub(crate) number: usize,
}

impl Format {
    /// The format of a new disk.
    pub(crate) fn new(store: u128, disk: u128, number: usize) -> Self {
        Self {
            format: FORMAT,
            store: format!("{store:032x}"),
            disk: format!("{disk:032x}"),
            number,
        }
    }

    /// Whether an older release wrote it.
    pub(crate) const fn is_older(&self) -> bool {
        self.format < FORMAT
    }

    /// The store's id as a number.
    pub(crate) fn store_id(&self) -> Option<u128> {
        u128::from_str_radix(&self.store, 16).ok()
    }
}

/// Pauses before the retries of work that failed on a full disk, milliseconds.
pub(crate) const FULL_PAUSES: [u64; 4] = [10, 100, 500, 1_000];

/// Reads a disk's format; `None` if it has none yet. `place` is the disk's place in the list, for
/// the error.
pub(crate) async fn read(disk: &Arc<dyn Disk>, place: usize) -> Result<Option<Format>, OpenError> {
    let file = match disk.open(FORMAT_FILE).await {
        Ok(file) => file,
        Err(DiskError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(OpenError::Disk { disk: place, error }),
    };
    let bytes = file.read_at(0, index(LEN_MAX)).await;
    let bytes = bytes.map_err(|error| OpenError::Disk { disk: place, error })?;
    parse(&bytes, place).map(Some)
}

/// The number of a disk in its store; `None` if it is not part of a store yet. `place` is the
/// disk's place in the list, for the error.
///
/// # Errors
/// [`OpenError`] if its `format` file exists and cannot be read or parsed.
pub async fn disk_number(disk: &Arc<dyn Disk>, place: usize) -> Result<Option<usize>, OpenError> {
    Ok(read(disk, place).await?.map(|format| format.number))
}

fn parse(bytes: &[u8], place: usize) -> Result<Format, OpenError> {
    // The version is parsed first: a newer program may have changed all other fields.
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let damaged = |_| OpenError::FormatDamaged { disk: place };
    let version: Version = serde_json::from_slice(bytes).map_err(damaged)?;
    if !(FORMAT_OLDEST..=FORMAT).contains(&version.format) {
        let (found, newest) = (version.format, FORMAT);
        return Err(OpenError::FormatVersion { disk: place, found, newest });
    }
    let format: Format = serde_json::from_slice(bytes).map_err(damaged)?;
    if format.store_id().is_none() {
        return Err(OpenError::FormatDamaged { disk: place });
    }
    Ok(format)
}

/// Durably raises a disk's format to this program's version, before any of its layouts is written.
/// On a full disk, tries again for two seconds. `place` is the disk's place in the list, for the
/// error.
pub(crate) async fn raise(
    disk: &Arc<dyn Disk>,
    place: usize,
    format: Format,
    env: &Env,
) -> Result<(), OpenError> {
    let raised = Format { format: FORMAT, ..format };
    let mut pauses = FULL_PAUSES.into_iter();
    loop {
        match (write(disk, &raised).await, pauses.next()) {
            (Ok(()), _) => return Ok(()),
            (Err(DiskError::Full), Some(pause)) => {
                env.clock.sleep(Duration::from_millis(pause)).await;
            }
            (Err(DiskError::Full), None) => {
                let available = disk.space().await.map_or(0, |space| space.available);
                return Err(OpenError::Full { disk: place, needed: LEN_MAX, available });
            }
            (Err(error), _) => return Err(OpenError::Disk { disk: place, error }),
        }
    }
}

/// Writes a disk's format. A new disk gets it last, so a directory without it is not a complete
/// disk.
pub(crate) async fn write(disk: &Arc<dyn Disk>, format: &Format) -> Result<(), DiskError> {
    let text = serde_json::to_vec(format).expect("a struct of strings and numbers is JSON");
    let temporary = "format.new";
    let file = disk.create(temporary).await?;
    file.write_sync(0, vec![Bytes::from(text)]).await?;
    disk.rename(temporary, FORMAT_FILE).await?;
    disk.sync_dir("").await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_format_is_refused_by_version() {
        let text = br#"{"format":6,"whatever":true}"#;
        let refused = parse(text, 0).unwrap_err();
        assert!(matches!(refused, OpenError::FormatVersion { found: 6, .. }));
        let message = refused.to_string();
        assert!(message.contains("format 6") && message.contains("newer release"), "{message}");
        let before_the_first = parse(br#"{"format":0}"#, 0);
        assert!(matches!(before_the_first, Err(OpenError::FormatVersion { found: 0, .. })));
    }

    #[test]
    fn format_of_the_release_before_is_read() {
        let text = br#"{"format":1,"store":"07","disk":"09","number":1}"#;
        assert_eq!(parse(text, 0).unwrap(), Format { format: 1, ..format_of("07", "09") });
    }

    fn format_of(store: &str, disk: &str) -> Format {
        Format { format: FORMAT, store: store.to_owned(), disk: disk.to_owned(), number: 1 }
    }

    #[test]
    fn format_round_trips_and_every_truncation_is_refused() {
        let format = Format::new(7, 9, 1);
        let text = serde_json::to_vec(&format).unwrap();
        assert_eq!(parse(&text, 1).unwrap(), format);
        for len in 0..text.len() {
            assert!(matches!(parse(&text[..len], 1), Err(OpenError::FormatDamaged { .. })));
        }
    }
}
