//! Keys as text: `ACCOUNT/CONTAINER/NAME`, and back.
//!
//! | text | key |
//! |---|---|
//! | (empty) | before all keys |
//! | `$accounts/NAME` | an account's row |
//! | `ACCOUNT` | before an account's containers and blobs |
//! | `ACCOUNT/$containers/NAME` | in an account's table of containers; shown, never a boundary |
//! | `ACCOUNT/CONTAINER/NAME` | a blob, or before all names with this prefix |
//! | `ACCOUNT/$tags/...` | an entry of the tag index; only shown |
//!
//! `#` and a number stand for an account or container whose name is unknown.

use bytes::Bytes;

use crate::types::AccountId;
use crate::types::Collation;
use crate::types::ContainerKey;
use crate::types::NodeId;
use crate::types::RoutingKey;
use crate::types::TAG_INDEX;

/// The table of accounts.
pub(super) const ACCOUNTS: &str = "$accounts";
/// An account's table of containers.
pub(super) const CONTAINERS: &str = "$containers";
/// An account's tag index.
pub(super) const TAGS: &str = "$tags";

/// Ends the name in a key.
const TERMINATOR: [u8; 2] = [0x00, 0x01];
/// The longest character in bytes. A boundary may end inside of one.
const CHARACTER_BYTES_MAX: usize = 4;

/// Accounts, containers and nodes by their numbers.
pub(crate) trait Known {
    /// An account's name.
    fn account(&self, id: AccountId) -> Option<String>;
    /// The known facts of a container.
    fn container(&self, container: ContainerKey) -> Option<KnownContainer>;
    /// The name of a node of a cluster.
    fn node(&self, _node: NodeId) -> Option<String> {
        None
    }
}

/// A container whose name is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownContainer {
    pub(crate) name: String,
    /// The order of its blobs' names.
    pub(crate) collation: Collation,
}

/// The text of a key, or of any position between keys.
pub(crate) fn text(key: &[u8], known: &dyn Known) -> String {
    if key.is_empty() {
        return String::new();
    }
    let owner = ContainerKey::of(key);
    let rest = key.get(16..).unwrap_or_default();
    if (owner.account.get(), owner.id.get()) == (0, 0) {
        return format!("{ACCOUNTS}/{}", name(rest, Collation::Utf8));
    }
    let account = known.account(owner.account).unwrap_or_else(|| numbered(owner.account.get()));
    match owner.id.get() {
        0 if rest.is_empty() => account,
        0 => format!("{account}/{CONTAINERS}/{}", name(rest, Collation::Utf8)),
        _ if owner.id == TAG_INDEX => {
            format!("{account}/{TAGS}/{}", name(rest, Collation::Utf8))
        }
        number => {
            let unknown = || KnownContainer { name: numbered(number), collation: Collation::Utf16 };
            let container = known.container(owner).unwrap_or_else(unknown);
            format!("{account}/{}/{}", container.name, name(rest, container.collation))
        }
    }
}

fn numbered(id: u64) -> String {
    format!("#{id}")
}

/// The number in `#7`.
pub(super) fn number(text: &str) -> Option<u64> {
    text.strip_prefix('#')?.parse().ok()
}

/// The name at the end of a key. Of a position inside of a character: the characters before it, and
/// the rest as `\xNN`.
fn name(escaped: &[u8], collation: Collation) -> String {
    let escaped = escaped.strip_suffix(&TERMINATOR).unwrap_or(escaped);
    let least = escaped.len().saturating_sub(CHARACTER_BYTES_MAX);
    for end in (least..=escaped.len()).rev() {
        let (whole, rest) = escaped.split_at(end);
        let key: Bytes = [&[0; 16], whole, &TERMINATOR].concat().into();
        if let Some(mut name) = RoutingKey::from_bytes(key).name(collation) {
            rest.iter().for_each(|byte| name += &format!("\\x{byte:02x}"));
            return name;
        }
    }
    String::from_utf8_lossy(escaped).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::AccountName;
    use crate::types::BlobKey;
    use crate::types::BlobName;
    use crate::types::ContainerId;
    use crate::types::ContainerName;

    struct Two;

    impl Known for Two {
        fn account(&self, id: AccountId) -> Option<String> {
            (id.get() == 1).then(|| "photos".to_owned())
        }

        fn container(&self, container: ContainerKey) -> Option<KnownContainer> {
            let known = || KnownContainer { name: "raw".to_owned(), collation: Collation::Utf16 };
            (container.account.get() == 1 && container.id.get() == 5).then(known)
        }
    }

    fn shown(key: &[u8]) -> String {
        text(key, &Two)
    }

    #[test]
    fn every_kind_of_key_has_a_text() {
        let (one, five) = (AccountId::new(1), ContainerId::new(5));
        let prefix = |account, container, name: &str| {
            shown(&RoutingKey::prefix(account, container, name, Collation::Utf16))
        };
        assert_eq!(shown(b""), "");
        let account = RoutingKey::account(&AccountName::new("photos").unwrap());
        assert_eq!(shown(account.as_bytes()), "$accounts/photos");
        let container = RoutingKey::container(one, &ContainerName::new("raw").unwrap());
        assert_eq!(shown(container.as_bytes()), "photos/$containers/raw");
        assert_eq!(prefix(one, ContainerId::new(0), ""), "photos");
        assert_eq!(prefix(one, five, ""), "photos/raw/");
        assert_eq!(prefix(one, five, "a/b\u{ff5e}\u{1f600}"), "photos/raw/a/b\u{ff5e}\u{1f600}");
        assert_eq!(prefix(one, ContainerId::new(6), "x"), "photos/#6/x");
        assert_eq!(prefix(AccountId::new(2), five, "x"), "#2/#5/x");
        assert_eq!(prefix(one, TAG_INDEX, "k\0v"), "photos/$tags/k\0v");
        let key = BlobKey {
            account: one,
            container: five,
            collation: Collation::Utf16,
            name: BlobName::new("step-0800/x").unwrap(),
        };
        assert_eq!(shown(RoutingKey::blob(&key).as_bytes()), "photos/raw/step-0800/x");
    }

    #[test]
    fn positions_inside_characters_and_ids_are_shown_too() {
        let prefix =
            RoutingKey::prefix(AccountId::new(1), ContainerId::new(5), "a\u{e9}", Collation::Utf16);
        assert_eq!(shown(&prefix[..prefix.len() - 1]), "photos/raw/a\\xc3");
        assert_eq!(shown(&[0, 0, 0, 0, 0, 0, 0, 1, 0x80]), "photos/#9223372036854775808/");
        assert_eq!(shown(&[0xFF; 30]), format!("#{0}/$tags/{1}", u64::MAX, "\u{fffd}".repeat(14)));
        assert_eq!(number("#17"), Some(17));
        assert_eq!((number("17"), number("#x"), number("#")), (None, None, None));
    }
}
