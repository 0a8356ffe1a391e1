//! Paths as they are compared.

use std::path::Path;
use std::path::PathBuf;

/// Whether two paths are written differently and name the same place, as far as can be told without
/// looking.
pub(super) fn same(one: &Path, other: &Path) -> bool {
    absolute(one) == absolute(other)
}

/// The path in full, as it is compared; links are not followed.
pub(super) fn absolute(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.components().collect()
}
