//! Comparison of paths.

use std::path::Path;
use std::path::PathBuf;

/// Whether two paths name the same place, as far as is known without accessing the disk.
pub(super) fn same(one: &Path, other: &Path) -> bool {
    absolute(one) == absolute(other)
}

/// The absolute path, in the form in which it is compared. Links are not followed.
pub(super) fn absolute(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.components().collect()
}
