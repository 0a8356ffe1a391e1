//! How many files the process may have open: extents and connections need more than most systems
//! grant at first.

use crate::env::raise_open_files;

/// Below this the defaults do not fit: 4,096 connections, and 1,024 extents of a disk.
const ENOUGH: u64 = 8_192;

/// Raises the limit as far as the process may. A node with a lower limit serves nevertheless.
pub(super) fn raise() {
    let limit = raise_open_files();
    if let Some(error) = limit.refused {
        tracing::debug!(%error, "the limit of open files could not be raised");
    }
    if let Some(granted) = limit.granted.filter(|granted| *granted < ENOUGH) {
        tracing::warn!(
            granted,
            wanted = ENOUGH,
            "few open files are allowed: raise the hard limit (`ulimit -Hn`)"
        );
    }
}
