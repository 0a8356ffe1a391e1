//! Which blobs are affected by damage, as text and as JSON.

use std::fmt;

use serde::Serialize;

use crate::admin::Known;
use crate::admin::KnownContainer;
use crate::admin::key_text;
use crate::index;
use crate::index::PartitionDescriptor;
use crate::index::check::Names;
use crate::index::check::Owner;
use crate::types::AccountId;
use crate::types::Collation;
use crate::types::ContainerKey;
use crate::types::KeyRange;
use crate::types::RoutingKey;

/// Containers named for one extent or partition. More are only counted.
const CONTAINERS_NAMED: usize = 20;

/// Blobs of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OfContainer {
    /// `ACCOUNT/CONTAINER`, with `#` and a number for a name that no readable row has.
    pub container: String,
    /// Blobs whose bytes cannot be read or are wrong.
    pub blobs: u64,
}

/// A damaged or missing extent, and the affected blobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Extent {
    /// The extent.
    pub extent: u64,
    /// Blobs, and names that only have staged blocks, with bytes in it that cannot be read or are
    /// wrong.
    pub blobs: u64,
    /// The first containers with such blobs.
    pub containers: Vec<OfContainer>,
    /// Further containers with such blobs.
    pub more_containers: u64,
}

/// Rows of a partition that cannot be read, because a log or run is damaged or missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// The partition.
    pub partition: u64,
    /// The range of names: the first one, and the first one behind it. Empty: no bound.
    pub names: [String; 2],
    /// The first known containers that may have blobs there.
    pub containers: Vec<String>,
    /// Further known containers.
    pub more_containers: u64,
}

/// Everything that damage affects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Affected {
    /// Blobs, and names that only have staged blocks, whose bytes cannot be read or are wrong.
    pub blobs: u64,
    /// By extent: the first 1,000.
    pub extents: Vec<Extent>,
    /// Ranges of rows that cannot be read. Their blobs are not counted.
    pub unread: Vec<Unread>,
}

/// Names of accounts and containers, from the rows.
struct Found<'a>(&'a Names);

impl Known for Found<'_> {
    fn account(&self, id: AccountId) -> Option<String> {
        self.0.accounts.get(&id).cloned()
    }

    fn container(&self, container: ContainerKey) -> Option<KnownContainer> {
        let name = self.0.containers.get(&(container.account, container.id))?.clone();
        Some(KnownContainer { name, collation: Collation::Utf16 })
    }
}

/// A range of a partition whose rows cannot be read.
pub(super) struct UnreadRange<'a> {
    pub(super) descriptor: &'a PartitionDescriptor,
    /// The first key that cannot be read.
    pub(super) from: RoutingKey,
}

impl Affected {
    pub(super) fn new(found: &index::check::CheckReport, unread: &[UnreadRange<'_>]) -> Self {
        let names = Found(&found.names);
        let extents = found.affected.extents.iter().map(|(extent, of)| {
            let named = of.by_container.iter().take(CONTAINERS_NAMED);
            let named = named.map(|(owner, blobs)| OfContainer {
                container: container(*owner, &names),
                blobs: *blobs,
            });
            let containers: Vec<OfContainer> = named.collect();
            let more_containers = of.containers.saturating_sub(wide(containers.len()));
            Extent { extent: extent.get(), blobs: of.blobs, containers, more_containers }
        });
        let unread = unread.iter().map(|UnreadRange { descriptor, from }| {
            let range = KeyRange::new(from.clone(), descriptor.keys.range().high().cloned());
            let high = range.high().map(|high| key_text(high.as_bytes(), &names));
            let inside = names.0.containers.keys().filter(|(account, id)| {
                RoutingKey::container_range(*account, *id).intersect(&range).is_some()
            });
            let all: Vec<Owner> = inside.copied().collect();
            let named = all.iter().take(CONTAINERS_NAMED);
            let containers: Vec<String> = named.map(|owner| container(*owner, &names)).collect();
            Unread {
                partition: descriptor.id.get(),
                names: [key_text(from.as_bytes(), &names), high.unwrap_or_default()],
                more_containers: wide(all.len() - containers.len()),
                containers,
            }
        });
        let (extents, unread) = (extents.collect(), unread.collect());
        Self { blobs: found.affected.blobs, extents, unread }
    }

    /// Writes what damage affects, out of `blobs`. Writes nothing if there is no damage.
    pub(super) fn write(&self, blobs: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.blobs == 0 && self.unread.is_empty() {
            return Ok(());
        }
        for one in &self.extents {
            write!(f, "extent {}: {} blobs are affected: ", one.extent, one.blobs)?;
            let texts = one.containers.iter();
            let texts = texts.map(|of| format!("{} in {}", of.blobs, of.container));
            named(&texts.collect::<Vec<_>>(), one.more_containers, f)?;
        }
        for one in &self.unread {
            let [low, high] = &one.names;
            let low = if low.is_empty() { "the first" } else { low };
            let high = if high.is_empty() { "the last" } else { high };
            let number = one.partition;
            write!(f, "partition {number}: rows from {low} to {high} cannot be read: ")?;
            named(&one.containers, one.more_containers, f)?;
        }
        let intact = blobs.saturating_sub(self.blobs);
        let but = if self.unread.is_empty() { "" } else { " that could be read" };
        writeln!(f, "bodies: {} affected; all others are intact: {intact} blobs{but}", self.blobs)
    }
}

fn named(texts: &[String], more: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let text = if texts.is_empty() { "no known container".to_owned() } else { texts.join(", ") };
    match more {
        0 => writeln!(f, "{text}"),
        more => writeln!(f, "{text}, and {more} more containers"),
    }
}

fn container(owner: Owner, names: &Found<'_>) -> String {
    let (account, id) = owner;
    let name = names.account(account).unwrap_or_else(|| format!("#{}", account.get()));
    let container = names.container(ContainerKey { account, id }).map(|known| known.name);
    format!("{name}/{}", container.unwrap_or_else(|| format!("#{}", id.get())))
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::check::CheckReport;
    use crate::index::check::OfExtent;
    use crate::types::ContainerId;
    use crate::types::Epoch;
    use crate::types::ExtentId;
    use crate::types::HostId;
    use crate::types::PartitionId;

    struct Shown(Affected);

    impl fmt::Display for Shown {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.write(100, f)
        }
    }

    fn found() -> CheckReport {
        let mut found = CheckReport::default();
        found.names.accounts.insert(AccountId::new(7), "photos".to_owned());
        let raw = (AccountId::new(7), ContainerId::new(1));
        found.names.containers.insert(raw, "raw".to_owned());
        found
    }

    #[test]
    fn text_names_containers_and_how_many_blobs_are_affected_and_intact() {
        let mut found = found();
        assert_eq!(Shown(Affected::new(&found, &[])).to_string(), "");
        let mut of = OfExtent::default();
        (of.blobs, of.containers) = (30, 25);
        for number in 1..=25 {
            of.by_container.insert((AccountId::new(7), ContainerId::new(number)), 1);
        }
        found.affected.blobs = 30;
        found.affected.extents.insert(ExtentId::new(12), of);
        let affected = Affected::new(&found, &[]);
        let json = serde_json::to_value(&affected).unwrap();
        assert_eq!(json["extents"][0]["containers"][0]["container"], "photos/raw");
        assert_eq!(json["extents"][0]["more_containers"], 5);
        let text = Shown(affected).to_string();
        assert!(text.starts_with("extent 12: 30 blobs are affected: 1 in photos/raw, "), "{text}");
        assert!(text.contains("1 in photos/#20, and 5 more containers\n"), "{text}");
        assert!(text.ends_with("30 affected; all others are intact: 70 blobs\n"), "{text}");
    }

    #[test]
    fn rows_that_cannot_be_read_are_named_with_the_containers_they_may_be_of() {
        let found = found();
        let descriptor = PartitionDescriptor {
            id: PartitionId::new(3),
            keys: KeyRange::all().into(),
            epoch: Epoch::new(1),
            log: Vec::new(),
            host: HostId::new(0),
        };
        let raw = (AccountId::new(7), ContainerId::new(1));
        let from = RoutingKey::container_range(raw.0, raw.1).low().clone();
        let text = Shown(Affected::new(&found, &[UnreadRange { descriptor: &descriptor, from }]))
            .to_string();
        let line = "partition 3: rows from photos/raw/ to the last cannot be read: photos/raw\n";
        assert!(text.starts_with(line), "{text}");
        assert!(text.ends_with("intact: 100 blobs that could be read\n"), "{text}");
    }
}
