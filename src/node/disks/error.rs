//! Why a list of data directories is refused.

use std::path::PathBuf;

use thiserror::Error;

/// Why a list of data directories is refused. Each message says what to give.
#[derive(Debug, Error)]
pub enum DiskListError {
    /// A directory that belongs to no store.
    #[error(
        "{0} holds no part of a store: give all data directories of the node, in the order `serve` \
         was given them"
    )]
    NoStore(PathBuf),
    /// A directory of another store.
    #[error("{path} belongs to another store than {first}: give the data directories of one node")]
    OtherStore {
        /// The directory.
        path: PathBuf,
        /// The first one.
        first: PathBuf,
    },
    /// The first directory of the store comes later in the list.
    #[error("{first} is not the first data directory of this store: give {right} before it")]
    Order {
        /// The one given first.
        first: PathBuf,
        /// The one that is the first.
        right: PathBuf,
    },
    /// The first directory of the store is not in the list.
    #[error(
        "{first} is disk {number} of its store, and the first data directory is missing: give all \
         of them, in the order `serve` was given them"
    )]
    FirstMissing {
        /// The one given first.
        first: PathBuf,
        /// Its number.
        number: usize,
    },
}
