//! Changes of names on a simulated disk.

use std::collections::BTreeMap;

/// A change of names that is visible but not yet durable.
#[derive(Clone, Debug)]
pub(super) enum NameChange {
    Link { name: String, inode: u64 },
    Rename { from: String, to: String, inode: u64 },
    Unlink { name: String },
}

impl NameChange {
    /// The names it changes.
    pub(super) fn names(&self) -> Vec<&String> {
        match self {
            Self::Link { name, .. } | Self::Unlink { name } => vec![name],
            Self::Rename { from, to, .. } => vec![from, to],
        }
    }

    /// Applies the change.
    pub(super) fn apply(&self, names: &mut BTreeMap<String, u64>) {
        match self {
            Self::Link { name, inode } => {
                names.insert(name.clone(), *inode);
            }
            Self::Rename { from, to, inode } => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
            Self::Unlink { name } => {
                names.remove(name);
            }
        }
    }
}
