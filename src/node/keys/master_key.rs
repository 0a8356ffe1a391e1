//! The master key file. The first start of a store makes it. Later starts compare the id of its key
//! ring with the id that the store remembers in the coordinator.
//!
//! Order: the file is durable before the store remembers its ring. The store remembers the ring
//! before any secret is sealed under it. A store that remembers a ring starts with that ring only.

use std::io;
use std::path::Path;
use std::path::PathBuf;

use bytes::Bytes;
use rand::TryRng;
use rand::rngs::SysRng;
use serde::Deserialize;
use serde::Serialize;
use thiserror::Error;
use uuid::Builder;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::auth::KeyRing;
use crate::auth::KeyRingError;
use crate::auth::MasterKeyId;
use crate::coordinator;
use crate::coordinator::Compare;
use crate::coordinator::Coordinator;
use crate::coordinator::Op;
use crate::env;
use crate::node::files;
use crate::types::Timestamp;

/// The coordinator's key. Its value is [`Remembered`] as JSON.
const KEY: &[u8] = b"node/key-ring";
/// The version of the value.
const VERSION: u32 = 1;

/// Why the key ring cannot be used. Each message says what to do.
#[derive(Debug, Error)]
pub enum MasterKeyError {
    /// The store remembers a ring and the file does not exist.
    #[error(
        "the master key file {path} is missing, and the secrets of this store are sealed under \
         its key ring {ring}: restore the file from your copy, or give its place with \
         --master-key-file; a new node of a cluster gets it with --token; nothing was changed"
    )]
    Missing {
        /// The file.
        path: PathBuf,
        /// The ring the store remembers.
        ring: Uuid,
    },
    /// The file belongs to another store.
    #[error(
        "the master key file {path} holds key ring {found}, and the secrets of this store are \
         sealed under key ring {ring}: give the right file with --master-key-file; nothing was \
         changed"
    )]
    Other {
        /// The file.
        path: PathBuf,
        /// The ring in the file.
        found: Uuid,
        /// The ring the store remembers.
        ring: Uuid,
    },
    /// The file is older than the last rotation.
    #[error(
        "the master key file {path} lacks master key {key}, under which secrets of this store \
         are sealed: restore its newest copy"
    )]
    Lacks {
        /// The file.
        path: PathBuf,
        /// The key.
        key: MasterKeyId,
    },
    /// The file holds no key ring.
    #[error("the master key file {path}: {error}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Why.
        error: KeyRingError,
    },
    /// The file cannot be read or written.
    #[error("the master key file {path}: {error}; give another place with --master-key-file")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A newer program wrote the remembered key ring of the store.
    #[error("what the store remembers of its key ring cannot be read: {0}")]
    Remembered(String),
    /// The coordinator failed.
    #[error("{0}")]
    Coordinator(#[from] coordinator::Error),
}

/// The facts about its key ring that a store remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Remembered {
    version: u32,
    /// The ring's id.
    ring: Uuid,
    /// Whether files may hold plain secrets of earlier releases, which did not seal secrets.
    plain: bool,
}

impl Remembered {
    fn encode(&self) -> Bytes {
        let value = serde_json::to_vec(self);
        value.expect("a number, a string and a bool are JSON").into()
    }
}

/// A store's key ring, and whether plain secrets must still be erased from its files.
#[derive(Debug)]
pub struct Opened {
    /// The ring.
    pub ring: KeyRing,
    /// Whether files may hold plain secrets.
    pub plain: bool,
}

/// Opens the key ring of a starting store from its file, or makes file and ring at the first start.
/// `is_new` says whether the store is new: then its files hold no plain secret.
///
/// # Errors
/// [`MasterKeyError`].
pub async fn open(
    path: &Path,
    coordinator: &dyn Coordinator,
    is_new: bool,
    now: Timestamp,
) -> Result<Opened, MasterKeyError> {
    let known = remembered(coordinator).await?;
    let ring = match (read(path)?, known) {
        (Some(ring), Some(known)) => held_against(ring, path, known)?,
        (None, Some(Remembered { ring, .. })) => {
            return Err(MasterKeyError::Missing { path: path.to_owned(), ring });
        }
        (Some(ring), None) => ring,
        (None, None) => {
            let ring = make(now).map_err(|error| failed(path, error))?;
            write(path, &ring)?;
            tracing::info!(
                path = %path.display(), ring = %ring.id(),
                "the master key file was made; keep a copy of it"
            );
            ring
        }
    };
    narrow(path);
    let plain = known.map_or(!is_new, |known| known.plain);
    if known.is_none() {
        // Two commands may make a cluster at the same time.
        let none_yet = [Compare::Absent(Bytes::from_static(KEY))];
        remember(coordinator, ring.id(), plain, &none_yet).await?;
        if let Some(known) = remembered(coordinator).await? {
            held_against(ring.clone(), path, known)?;
        }
    }
    Ok(Opened { ring, plain })
}

/// Opens the key ring of a stopped store and compares it with the id that the store remembers.
/// `None` when the store remembers no ring.
///
/// # Errors
/// [`MasterKeyError`].
pub async fn open_for_check(
    path: &Path,
    coordinator: &dyn Coordinator,
) -> Result<Option<KeyRing>, MasterKeyError> {
    let Some(known) = remembered(coordinator).await? else { return Ok(None) };
    let missing = MasterKeyError::Missing { path: path.to_owned(), ring: known.ring };
    held_against(read(path)?.ok_or(missing)?, path, known).map(Some)
}

/// What the store remembers of its key ring, as the key and the value that another coordinator
/// gets. `None` if there is nothing, or if files of the store may hold plain secrets: a start of
/// this release mends both.
///
/// # Errors
/// [`MasterKeyError`].
pub async fn handed_over(
    coordinator: &dyn Coordinator,
) -> Result<Option<(Bytes, Bytes)>, MasterKeyError> {
    let known = remembered(coordinator).await?.filter(|known| !known.plain);
    Ok(known.map(|known| (Bytes::from_static(KEY), known.encode())))
}

/// Remembers that no file holds a plain secret any more.
///
/// # Errors
/// Errors of the coordinator.
pub async fn remember_sealed(
    coordinator: &dyn Coordinator,
    ring: Uuid,
) -> Result<(), coordinator::Error> {
    remember(coordinator, ring, false, &[]).await
}

/// Adds a new active key to the ring in the file, and returns the ring.
///
/// # Errors
/// [`MasterKeyError`]. The file then either is unchanged or has the new key.
pub fn rotate(path: &Path, now: Timestamp) -> Result<KeyRing, MasterKeyError> {
    let none = || io::Error::from(io::ErrorKind::NotFound);
    let ring = read(path)?.ok_or_else(|| failed(path, none()))?;
    let key = random().map_err(|error| failed(path, error))?;
    let rotated = ring.rotated(key, now);
    write(path, &rotated)?;
    Ok(rotated)
}

/// Reads the ring from the file; `None` when there is no file.
///
/// # Errors
/// [`MasterKeyError`].
pub fn read(path: &Path) -> Result<Option<KeyRing>, MasterKeyError> {
    let text = files::read(path).map_err(|error| failed(path, error))?.map(Zeroizing::new);
    let malformed = |error| MasterKeyError::Malformed { path: path.to_owned(), error };
    text.map(|text| KeyRing::from_text(&text).map_err(malformed)).transpose()
}

/// Writes the ring to the file, durably, for this user only.
///
/// # Errors
/// [`MasterKeyError`].
pub fn write(path: &Path, ring: &KeyRing) -> Result<(), MasterKeyError> {
    files::write(path, &ring.to_text()).map_err(|error| failed(path, error))
}

fn held_against(ring: KeyRing, path: &Path, known: Remembered) -> Result<KeyRing, MasterKeyError> {
    if ring.id() == known.ring {
        return Ok(ring);
    }
    let (path, found) = (path.to_owned(), ring.id());
    Err(MasterKeyError::Other { path, found, ring: known.ring })
}

/// Makes a ring with random bytes of the operating system. [`crate::env::Rand`] may be replaced by
/// a simulated generator, so it is not used for secrets.
fn make(now: Timestamp) -> io::Result<KeyRing> {
    let mut id = [0; 16];
    SysRng.try_fill_bytes(&mut id).map_err(io::Error::other)?;
    Ok(KeyRing::new(Builder::from_random_bytes(id).into_uuid(), random()?, now))
}

fn random() -> io::Result<Zeroizing<[u8; 32]>> {
    let mut key = Zeroizing::new([0; 32]);
    SysRng.try_fill_bytes(&mut *key).map_err(io::Error::other)?;
    Ok(key)
}

/// Removes the permissions of other users from the file; warns if that fails.
fn narrow(path: &Path) {
    match env::narrow_file(path) {
        Ok(found) if found.left == 0 => {}
        Ok(_) | Err(_) => tracing::warn!(
            path = %path.display(),
            "other users may read the master key file: chmod it to 600, or give it to this user"
        ),
    }
}

async fn remembered(coordinator: &dyn Coordinator) -> Result<Option<Remembered>, MasterKeyError> {
    let Some(found) = coordinator.get(KEY).await? else { return Ok(None) };
    let known: Remembered = serde_json::from_slice(&found.value)
        .map_err(|error| MasterKeyError::Remembered(error.to_string()))?;
    if known.version != VERSION {
        let text = format!("version {}; use the program that wrote it", known.version);
        return Err(MasterKeyError::Remembered(text));
    }
    Ok(Some(known))
}

async fn remember(
    coordinator: &dyn Coordinator,
    ring: Uuid,
    plain: bool,
    when: &[Compare],
) -> Result<(), coordinator::Error> {
    let value = Remembered { version: VERSION, ring, plain }.encode();
    coordinator.txn(when, &[Op::Put(Bytes::from_static(KEY), value)]).await?;
    Ok(())
}

fn failed(path: &Path, error: io::Error) -> MasterKeyError {
    MasterKeyError::File { path: path.to_owned(), error }
}

#[cfg(test)]
mod tests;
