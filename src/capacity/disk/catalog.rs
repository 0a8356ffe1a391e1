//! The catalog of one disk: sealed extents and dead ranges, so that a start need not open every
//! file.
//!
//! A cache, never authoritative: lost entries cost a look at the file, or an audit that finds the
//! garbage again. The only file that names `sled`.

#![deny(clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::capacity::ExtentKind;
use crate::capacity::extent::header::{kind_code, kind_of};
use crate::capacity::extent::ranges::Ranges;
use crate::capacity::units::{get_crc, get_u64};
use crate::types::Crc32c;
use crate::types::Epoch;
use crate::types::ExtentId;

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// An extent was sealed, or fenced after that.
    Sealed { extent: ExtentId, kind: ExtentKind, epoch: Epoch, len: u64 },
    /// A range is dead; those that started at `swallowed` are part of it now.
    Dead { extent: ExtentId, range: Range<u64>, swallowed: Vec<u64> },
    /// An extent is gone.
    Removed { extent: ExtentId },
}

/// A sealed extent as the catalog knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SealedEntry {
    pub(crate) kind: ExtentKind,
    pub(crate) epoch: Epoch,
    pub(crate) len: u64,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) sealed: BTreeMap<ExtentId, SealedEntry>,
    pub(crate) dead: BTreeMap<ExtentId, Ranges>,
}

/// Keeps changes, as well as it can.
pub(crate) trait Catalog: Send + Sync + Debug {
    /// Whether [`Self::apply`] may wait for a disk.
    fn may_block(&self) -> bool;
    /// Keeps changes. A failure is logged and forgotten: entries are lost, which is allowed.
    fn apply(&self, changes: &[Change]);
    /// Everything kept; empty when damaged.
    fn load(&self) -> Contents;
    /// Writes everything out.
    fn flush(&self);
}

/// Forgets everything at the end of the process.
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

/// A sled database in a folder; deleted and begun anew whenever anything about it is wrong.
#[derive(Debug)]
pub(crate) struct SledCatalog {
    folder: PathBuf,
    store_id: u128,
    /// `None` once it could not even be made anew: the node goes on without.
    database: Mutex<Option<sled::Db>>,
}

const STORE_KEY: &[u8] = b"store";

impl SledCatalog {
    /// Opens the catalog of this store, or begins a new one. Blocks.
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
                    let key = key(b's', *extent, 0);
                    let value = encode_sealed(&key, &entry);
                    batch.insert(key.to_vec(), value);
                }
                Change::Dead { extent, range, swallowed } => {
                    for start in swallowed {
                        batch.remove(key(b'd', *extent, *start).to_vec());
                    }
                    let key = key(b'd', *extent, range.start);
                    batch.insert(key.to_vec(), with_crc(&key, range.end.to_le_bytes().to_vec()));
                }
                Change::Removed { extent } => {
                    batch.remove(key(b's', *extent, 0).to_vec());
                    for found in database.scan_prefix(prefix(b'd', *extent)).keys().flatten() {
                        batch.remove(found);
                    }
                }
            }
        }
        let freed = changes.iter().any(|change| matches!(change, Change::Dead { .. }));
        let kept = database.apply_batch(batch).and_then(|()| {
            // Before the caller punches holes: after a kill, frames with holes the catalog knows
            // nothing of would look damaged to a scrub until the next audit.
            if freed { database.flush().map(drop) } else { Ok(()) }
        });
        if let Err(error) = kept {
            tracing::warn!(%error, "changes were not written to the catalog");
        }
    }

    fn load(&self) -> Contents {
        let Some(database) = self.database() else { return Contents::default() };
        if let Some(contents) = load_all(&database) {
            return contents;
        }
        tracing::warn!(
            folder = %self.folder.display(),
            "the catalog is damaged; a new one is created"
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
            tracing::warn!(%error, "the catalog could not be flushed");
        }
    }
}

/// sled reports some damage by panicking; that counts as damage too.
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
    tracing::warn!(folder = %folder.display(), "the catalog cannot be used; a new one is created");
    renew(folder, store_id)
}

fn renew(folder: &Path, store_id: u128) -> Option<sled::Db> {
    if let Err(error) = std::fs::remove_dir_all(folder) {
        tracing::warn!(%error, "the old catalog could not be removed");
    }
    match std::panic::catch_unwind(|| open(folder)) {
        Ok(Ok(database)) => claim(database, store_id),
        Ok(Err(error)) => {
            tracing::error!(
                %error,
                "the disk has no catalog; the next start examines every extent"
            );
            None
        }
        Err(_) => None,
    }
}

fn open(folder: &Path) -> sled::Result<sled::Db> {
    // 16 MiB: the catalog is read once; its default of 1 GiB is meant for a database.
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
                contents.dead.entry(extent).or_default().insert(start..get_u64(value, 0)?);
            }
            _ => return None,
        }
    }
    Some(contents)
}

fn key(table: u8, extent: ExtentId, start: u64) -> [u8; 17] {
    let mut key = [0; 17];
    let (first, last) = key.split_at_mut(9);
    first.copy_from_slice(&prefix(table, extent));
    last.copy_from_slice(&start.to_be_bytes());
    key
}

/// What all keys of an extent begin with.
fn prefix(table: u8, extent: ExtentId) -> [u8; 9] {
    let mut prefix = [table; 9];
    let (_, id) = prefix.split_at_mut(1);
    id.copy_from_slice(&extent.get().to_be_bytes());
    prefix
}

/// A dead range read wrongly would hide live bytes, so each entry carries a checksum of its own.
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
    value.extend(entry.len.to_le_bytes());
    with_crc(key, value)
}

fn decode_sealed(value: &[u8]) -> Option<SealedEntry> {
    Some(SealedEntry {
        kind: kind_of(*value.first()?)?,
        epoch: Epoch::new(get_u64(value, 1)?),
        len: get_u64(value, 9)?,
    })
}
