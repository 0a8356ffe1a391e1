//! The blobs that damage affects, by container, for each extent with unreadable or wrong bytes.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::types::AccountId;
use crate::types::ContainerId;
use crate::types::ExtentId;
use crate::types::RoutingKey;

/// The most extents listed. The blobs of further ones are only counted.
const EXTENTS_KEPT: usize = 1_000;
/// The most containers of one extent whose blobs are counted separately.
const CONTAINERS_KEPT: usize = 100;
/// The most names of accounts kept, and the most names of containers.
const NAMES_KEPT: usize = 100_000;

/// The ids of a container and its account.
pub type Owner = (AccountId, ContainerId);

/// The container of a key.
pub(super) fn owner(key: &RoutingKey) -> Owner {
    let number = |from: usize| {
        let bytes = key.as_bytes().get(from..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u64::from_be_bytes(*bytes))
    };
    (AccountId::new(number(0)), ContainerId::new(number(8)))
}

/// The blobs with unreadable or wrong bytes in one extent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfExtent {
    /// Blobs, and names with only staged blocks.
    pub blobs: u64,
    /// The number of containers of these blobs.
    pub containers: u64,
    /// The number of blobs in each of the first 100 containers.
    pub by_container: BTreeMap<Owner, u64>,
    /// The last container: they come in key order.
    last: Option<Owner>,
}

impl OfExtent {
    fn add(&mut self, owner: Owner, blobs: u64) {
        self.blobs += blobs;
        if self.by_container.contains_key(&owner) || self.by_container.len() < CONTAINERS_KEPT {
            *self.by_container.entry(owner).or_default() += blobs;
        }
    }

    /// Adds the blobs of the next partition in key order.
    fn extend(&mut self, next: Self) {
        // A container may be in several partitions.
        let first = next.by_container.keys().next();
        let again = u64::from(first.is_some() && self.last.as_ref() == first);
        self.containers += next.containers - again;
        let kept: u64 = next.by_container.values().sum();
        self.blobs += next.blobs - kept;
        for (owner, blobs) in next.by_container {
            self.add(owner, blobs);
        }
        self.last = next.last.or(self.last);
    }
}

/// The blobs that damage affects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Affected {
    /// Blobs, and names with only staged blocks, with unreadable or wrong bytes.
    pub blobs: u64,
    /// The first 1,000 extents with such bytes.
    pub extents: BTreeMap<ExtentId, OfExtent>,
}

impl Affected {
    /// Notes a blob with such bytes in some extents.
    pub(super) fn note(&mut self, key: &RoutingKey, extents: &BTreeSet<ExtentId>) {
        self.blobs += u64::from(!extents.is_empty());
        for extent in extents {
            if let Some(of) = self.extent(*extent) {
                let owner = owner(key);
                if of.last.replace(owner) != Some(owner) {
                    of.containers += 1;
                }
                of.add(owner, 1);
            }
        }
    }

    /// Adds the blobs of the next partition in key order.
    pub(super) fn extend(&mut self, next: Self) {
        self.blobs += next.blobs;
        for (extent, more) in next.extents {
            if let Some(of) = self.extent(extent) {
                of.extend(more);
            }
        }
    }

    fn extent(&mut self, extent: ExtentId) -> Option<&mut OfExtent> {
        let is_kept = self.extents.contains_key(&extent) || self.extents.len() < EXTENTS_KEPT;
        is_kept.then(|| self.extents.entry(extent).or_default())
    }
}

/// Names by id, as far as their rows were read; at most 100,000 of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Names of accounts.
    pub accounts: BTreeMap<AccountId, String>,
    /// Names of containers.
    pub containers: BTreeMap<Owner, String>,
}

impl Names {
    pub(super) fn account(&mut self, id: AccountId, name: Option<String>) {
        if self.accounts.len() < NAMES_KEPT {
            self.accounts.extend(name.map(|name| (id, name)));
        }
    }

    pub(super) fn container(&mut self, owner: Owner, name: Option<String>) {
        if self.containers.len() < NAMES_KEPT {
            self.containers.extend(name.map(|name| (owner, name)));
        }
    }

    pub(super) fn extend(&mut self, more: Self) {
        more.accounts.into_iter().for_each(|(id, name)| self.account(id, Some(name)));
        more.containers.into_iter().for_each(|(owner, name)| self.container(owner, Some(name)));
    }
}
