//! The report of a check.

use std::collections::BTreeSet;
use std::fmt;

use crate::auth::MasterKeyId;
use crate::index::check::affected::Affected;
use crate::index::check::affected::Names;
use crate::types::Collation;
use crate::types::RoutingKey;

/// The most problems kept in a report. Further ones are only counted.
const PROBLEMS_KEPT: usize = 1_000;

/// A problem that a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The name in the key of the row, as far as it can be read.
    pub name: String,
    /// A description of the problem.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.name, self.what)
    }
}

/// The numbers of examined items, and the problems that a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Rows decoded.
    pub rows: u64,
    /// Accounts.
    pub accounts: u64,
    /// Containers.
    pub containers: u64,
    /// Committed blobs.
    pub blobs: u64,
    /// Entries of the tag index.
    pub tag_entries: u64,
    /// Snapshots of blobs.
    pub snapshots: u64,
    /// Staged blocks.
    pub staged_blocks: u64,
    /// Locations in garbage rows. They are not read: they may have been freed already.
    pub garbage_locations: u64,
    /// Locations read.
    pub locations: u64,
    /// Payload bytes read and verified, including inline ones.
    pub bytes: u64,
    /// Of these, the bytes under customer-provided keys. They were verified as stored; their CRC-64
    /// cannot be computed without the key.
    pub encrypted_bytes: u64,
    /// The blobs and containers that damaged or missing bytes affect.
    pub affected: Affected,
    /// Names of accounts and containers.
    pub names: Names,
    /// The key from which on the rows of the partition cannot be read; `None` if all can be read.
    pub unread_from: Option<RoutingKey>,
    /// The master keys under which secrets are sealed.
    pub master_keys: BTreeSet<MasterKeyId>,
    /// The first 1,000 problems.
    pub problems: Vec<Problem>,
    /// The number of all problems.
    pub problems_count: u64,
}

impl CheckReport {
    pub(super) fn problem(&mut self, key: &RoutingKey, what: impl Into<String>) {
        self.problems_count += 1;
        if self.problems.len() < PROBLEMS_KEPT {
            let name = key.name(Collation::Utf16).or_else(|| key.name(Collation::Utf8));
            let name = name.unwrap_or_else(|| format!("{key:?}"));
            self.problems.push(Problem { name, what: what.into() });
        }
    }

    /// Adds the report of the next partition in key order.
    pub fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.accounts += other.accounts;
        self.containers += other.containers;
        self.blobs += other.blobs;
        self.tag_entries += other.tag_entries;
        self.snapshots += other.snapshots;
        self.staged_blocks += other.staged_blocks;
        self.garbage_locations += other.garbage_locations;
        self.locations += other.locations;
        self.bytes += other.bytes;
        self.encrypted_bytes += other.encrypted_bytes;
        self.affected.extend(other.affected);
        self.names.extend(other.names);
        self.master_keys.extend(other.master_keys);
        self.problems_count += other.problems_count;
        self.problems.extend(other.problems);
        self.problems.truncate(PROBLEMS_KEPT);
    }
}
