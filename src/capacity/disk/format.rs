//! The `format` file of a data directory: which version of the layouts, which store, which of its
//! disks.

#![deny(clippy::indexing_slicing)]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::capacity::disk::open_error::OpenError;
use crate::capacity::units::index;
use crate::env::{Disk, DiskError, Env};

/// The layouts this program writes; it reads no newer ones. A release whose rows older ones would
/// misread has a number of its own, so that they name the release they need instead of a row
/// (ADR 0027).
///
/// 1: the first. 2: accounts of version 5, containers and blobs of version 3, staged blocks and
/// layout segments of version 2.
pub(crate) const FORMAT: u32 = 2;
/// The oldest layouts it reads.
const FORMAT_OLDEST: u32 = 1;

/// Its name in the data directory, where it is as long as the directory is part of a store.
pub const FORMAT_FILE: &str = "format";

const LEN_MAX: u64 = 4096;

/// What the file holds, as JSON: a person can read it.
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
    /// A new disk's.
    pub(crate) fn new(store: u128, disk: u128, number: usize) -> Self {
        Self {
            format: FORMAT,
            store: format!("{store:032x}"),
            disk: format!("{disk:032x}"),
            number,
        }
    }

    /// Whether a release before wrote it.
    pub(crate) const fn is_older(&self) -> bool {
        self.format < FORMAT
    }

    /// The store's id as a number.
    pub(crate) fn store_id(&self) -> Option<u128> {
        u128::from_str_radix(&self.store, 16).ok()
    }
}

/// Pauses before work that met a full disk is done again, milliseconds.
pub(crate) const FULL_PAUSES: [u64; 4] = [10, 100, 500, 1_000];

/// Reads a disk's format; `None` when it has none yet.
pub(crate) async fn read(disk: &Arc<dyn Disk>, number: usize) -> Result<Option<Format>, OpenError> {
    let file = match disk.open(FORMAT_FILE).await {
        Ok(file) => file,
        Err(DiskError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(OpenError::Disk { disk: number, error }),
    };
    let bytes = file.read_at(0, index(LEN_MAX)).await;
    let bytes = bytes.map_err(|error| OpenError::Disk { disk: number, error })?;
    parse(&bytes, number).map(Some)
}

/// The number that a disk has in its store; `None` when it is no part of one yet. `place` is its
/// place in the list, for the error.
///
/// # Errors
/// [`OpenError`] when its `format` file is there and cannot be read or understood.
pub async fn disk_number(disk: &Arc<dyn Disk>, place: usize) -> Result<Option<usize>, OpenError> {
    Ok(read(disk, place).await?.map(|format| format.number))
}

fn parse(bytes: &[u8], number: usize) -> Result<Format, OpenError> {
    // The version alone first: a newer program may have changed everything else.
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let damaged = |_| OpenError::FormatDamaged { disk: number };
    let version: Version = serde_json::from_slice(bytes).map_err(damaged)?;
    if !(FORMAT_OLDEST..=FORMAT).contains(&version.format) {
        let (found, newest) = (version.format, FORMAT);
        return Err(OpenError::FormatVersion { disk: number, found, newest });
    }
    let format: Format = serde_json::from_slice(bytes).map_err(damaged)?;
    if format.store_id().is_none() {
        return Err(OpenError::FormatDamaged { disk: number });
    }
    Ok(format)
}

/// Notes, durably, that a disk has layouts of this program from now on; before any is written.
/// Tries again for a moment on a full disk. `number` is its place in the list, for the error.
pub(crate) async fn raise(
    disk: &Arc<dyn Disk>,
    number: usize,
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
                return Err(OpenError::Full { disk: number, needed: LEN_MAX, available });
            }
            (Err(error), _) => return Err(OpenError::Disk { disk: number, error }),
        }
    }
}

/// Writes a disk's format, last of all when a disk is made: what has no format was never finished.
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
        let text = br#"{"format":3,"whatever":true}"#;
        let refused = parse(text, 0).unwrap_err();
        assert!(matches!(refused, OpenError::FormatVersion { found: 3, .. }));
        let told = refused.to_string();
        assert!(told.contains("format 3") && told.contains("newer release"), "{told}");
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
