//! The catalog of one disk: its sealed extents and dead ranges. With it a start does not have to
//! open every file.
//!
//! The catalog is a cache. A lost entry of a sealed extent is read from the extent's file, and a
//! lost dead range is freed again by an audit. This is the only file that names `sled`.

#![deny(clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::capacity::ExtentKind;
use crate::capacity::extent::header::{kind_code, kind_of};
use crate::capacity::extent::ranges::{Ranges, offsets};
use crate::capacity::units::{get_crc, get_u64};
use crate::types::Crc32c;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

/// A change of the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// An extent was sealed, or a sealed extent was fenced.
    Sealed { extent: ExtentId, kind: ExtentKind, epoch: Epoch, len: ExtentOffset },
    /// A range is dead. The ranges that started at `swallowed` are now part of it.
    Dead { extent: ExtentId, range: Range<ExtentOffset>, swallowed: Vec<ExtentOffset> },
    /// An extent was removed.
    Removed { extent: ExtentId },
}

/// The entry of a sealed extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SealedEntry {
    pub(crate) kind: ExtentKind,
    pub(crate) epoch: Epoch,
    pub(crate) len: ExtentOffset,
}

/// All entries of a catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) sealed: BTreeMap<ExtentId, SealedEntry>,
    pub(crate) dead: BTreeMap<ExtentId, Ranges>,
}

/// Stores changes, on a best-effort basis.
pub(crate) trait Catalog: Send + Sync + Debug {
    /// Whether [`Self::apply`] may wait for a disk.
    fn may_block(&self) -> bool;
    /// Stores changes. A failure is logged, and the changes are lost.
    fn apply(&self, changes: &[Change]);
    /// All entries; none if the catalog is damaged.
    fn load(&self) -> Contents;
    /// Makes all changes durable.
    fn flush(&self);
}

/// A catalog that is not stored: each start begins with an empty one.
#[derive(Debug, Default)]
pub(crate) struct MemoryCatalog;

impl Catalog for MemoryCatalog {
    fn may_block(&self) -> bool {
        false
    }
    fn apply(&self, _: &[Change]) {}
    fn load(&self) -> Contents {
        Contents::default()
    }
    fn flush(&self) {}
}

/// A catalog in a sled database. A database that is damaged or of another store is deleted and
/// created again.
#[derive(Debug)]
pub(crate) struct SledCatalog {
    folder: PathBuf,
    store_id: u128,
    /// `None` after it could not be created again: the node runs without a catalog.
    database: Mutex<Option<sled::Db>>,
}

const STORE_KEY: &[u8] = b"store";

impl SledCatalog {
    /// Opens the catalog of this store, or creates a new one. Blocks.
    pub(crate) fn open(folder: &Path, store_id: u128) -> Self {
        let database = open_or_renew(folder, store_id);
        Self { folder: folder.to_owned(), store_id, database: Mutex::new(database) }
    }

    fn database(&self) -> Option<sled::Db> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Catalog for SledCatalog {
    fn may_block(&self) -> bool {
        true
    }

    fn apply(&self, changes: &[Change]) {
        let Some(database) = self.database() else { return };
        let mut batch = sled::Batch::default();
        for change in changes {
            match change {
                Change::Sealed { extent, kind, epoch, len } => {
                    let entry = SealedEntry { kind: *kind, epoch: *epoch, len: *len };
                    let key = key(b's', *extent, ExtentOffset::START);
                    let value = encode_sealed(&key, &entry);
                    batch.insert(key.to_vec(), value);
                }
                Change::Dead { extent, range, swallowed } => {
                    for start in swallowed {
                        batch.remove(key(b'd', *extent, *start).to_vec());
                    }
                    let key = key(b'd', *extent, range.start);
                    batch.insert(
                        key.to_vec(),
                        with_crc(&key, range.end.get().to_le_bytes().to_vec()),
                    );
                }
                Change::Removed { extent } => {
                    batch.remove(key(b's', *extent, ExtentOffset::START).to_vec());
                    for found in database.scan_prefix(prefix(b'd', *extent)).keys().flatten() {
                        batch.remove(found);
                    }
                }
            }
        }
        let freed = changes.iter().any(|change| matches!(change, Change::Dead { .. }));
        let kept = database.apply_batch(batch).and_then(|()| {
            // Durable before the caller punches holes. Otherwise, after a kill, a scrub could not
            // distinguish frames with holes from damaged ones until the next audit.
            if freed { database.flush().map(drop) } else { Ok(()) }
        });
        if let Err(error) = kept {
            tracing::warn!(
                folder = %self.folder.display(), %error,
                "changes were not written to the catalog; the next start or audit finds them again"
            );
        }
    }

    fn load(&self) -> Contents {
        let Some(database) = self.database() else { return Contents::default() };
        if let Some(contents) = load_all(&database) {
            return contents;
        }
        tracing::warn!(
            folder = %self.folder.display(),
            "the catalog is damaged; a new one is created, and this start examines every extent"
        );
        *self.database.lock().unwrap_or_else(PoisonError::into_inner) = None;
        drop(database);
        let renewed = renew(&self.folder, self.store_id);
        *self.database.lock().unwrap_or_else(PoisonError::into_inner) = renewed;
        Contents::default()
    }

    fn flush(&self) {
        let Some(database) = self.database() else { return };
        if let Err(error) = database.flush() {
            tracing::warn!(
                folder = %self.folder.display(), %error,
                "the catalog was not flushed; the next start examines the extents that it lacks"
            );
        }
    }
}

/// Sled panics on some kinds of damage; that is handled as damage.
fn open_or_renew(folder: &Path, store_id: u128) -> Option<sled::Db> {
    let opened = std::panic::catch_unwind(|| open(folder));
    if let Ok(Ok(database)) = opened {
        let stored = database.get(STORE_KEY).ok().flatten();
        let ours = stored.as_deref() == Some(store_id.to_le_bytes().as_slice());
        if ours {
            return Some(database);
        }
        if database.is_empty() {
            return claim(database, store_id);
        }
        drop(database);
    }
    tracing::warn!(
        folder = %folder.display(),
        "the catalog cannot be used; a new one is created, and this start examines every extent"
    );
    renew(folder, store_id)
}

fn renew(folder: &Path, store_id: u128) -> Option<sled::Db> {
    if let Err(error) = std::fs::remove_dir_all(folder) {
        tracing::warn!(
            folder = %folder.display(), %error,
            "the unusable catalog could not be removed; remove its folder while the server is \
             stopped"
        );
    }
    match std::panic::catch_unwind(|| open(folder)) {
        Ok(Ok(database)) => claim(database, store_id),
        Ok(Err(error)) => {
            tracing::error!(
                folder = %folder.display(), %error,
                "the disk has no catalog; the next start examines every extent"
            );
            None
        }
        Err(_) => None,
    }
}

fn open(folder: &Path) -> sled::Result<sled::Db> {
    // 16 MiB: the catalog is read once. Sled's default is 1 GiB.
    sled::Config::new().path(folder).cache_capacity(16 * 1024 * 1024).open()
}

fn claim(database: sled::Db, store_id: u128) -> Option<sled::Db> {
    database.insert(STORE_KEY, store_id.to_le_bytes().to_vec()).ok()?;
    Some(database)
}

fn load_all(database: &sled::Db) -> Option<Contents> {
    let mut contents = Contents::default();
    for entry in database.iter() {
        let (key, value) = entry.ok()?;
        if &*key == STORE_KEY {
            continue;
        }
        let extent = ExtentId::new(u64::from_be_bytes(key.get(1..9)?.try_into().ok()?));
        let start = u64::from_be_bytes(key.get(9..17)?.try_into().ok()?);
        let value = without_crc(&key, &value)?;
        match key.first()? {
            b's' => {
                contents.sealed.insert(extent, decode_sealed(value)?);
            }
            b'd' => {
                contents
                    .dead
                    .entry(extent)
                    .or_default()
                    .insert(offsets(&(start..get_u64(value, 0)?)));
            }
            _ => return None,
        }
    }
    Some(contents)
}

fn key(table: u8, extent: ExtentId, start: ExtentOffset) -> [u8; 17] {
    let mut key = [0; 17];
    let (first, last) = key.split_at_mut(9);
    first.copy_from_slice(&prefix(table, extent));
    last.copy_from_slice(&start.get().to_be_bytes());
    key
}

/// The prefix of all keys of an extent in a table.
fn prefix(table: u8, extent: ExtentId) -> [u8; 9] {
    let mut prefix = [table; 9];
    let (_, id) = prefix.split_at_mut(1);
    id.copy_from_slice(&extent.get().to_be_bytes());
    prefix
}

/// Appends a checksum to a value. A dead range that is read wrongly would hide live bytes.
fn with_crc(key: &[u8], mut value: Vec<u8>) -> Vec<u8> {
    let crc = Crc32c::of(&[key, &value].concat());
    value.extend(crc.get().to_le_bytes());
    value
}

fn without_crc<'a>(key: &[u8], value: &'a [u8]) -> Option<&'a [u8]> {
    let (value, crc) = value.split_at_checked(value.len().checked_sub(4)?)?;
    (Crc32c::of(&[key, value].concat()) == get_crc(crc, 0)?).then_some(value)
}

fn encode_sealed(key: &[u8], entry: &SealedEntry) -> Vec<u8> {
    let mut value = vec![kind_code(entry.kind)];
    value.extend(entry.epoch.get().to_le_bytes());
    value.extend(entry.len.get().to_le_bytes());
    with_crc(key, value)
}

fn decode_sealed(value: &[u8]) -> Option<SealedEntry> {
    Some(SealedEntry {
        kind: kind_of(*value.first()?)?,
        epoch: Epoch::new(get_u64(value, 1)?),
        len: ExtentOffset::new(get_u64(value, 9)?),
    })
}
