//! Keys as text: `ACCOUNT/CONTAINER/NAME`, and back.
//!
//! | text | key |
//! |---|---|
//! | nothing | before everything |
//! | `$accounts/NAME` | an account's row |
//! | `ACCOUNT` | before an account's containers and blobs |
//! | `ACCOUNT/$containers/NAME` | among an account's containers; only shown, never a border |
//! | `ACCOUNT/CONTAINER/NAME` | a blob, or before all that start so |
//! | `ACCOUNT/$tags/...` | an entry of the tag index; only shown |
//!
//! `#` and a number stand for an account or container without a name here.

use bytes::Bytes;

use crate::types::AccountId;
use crate::types::Collation;
use crate::types::ContainerId;
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
/// A character has at most so many bytes; a bound may end inside one.
const CHARACTER_BYTES_MAX: usize = 4;

/// Accounts and containers by their numbers.
pub(crate) trait Known {
    /// An account's name.
    fn account(&self, id: AccountId) -> Option<String>;
    /// A container's name and the order of its names.
    fn container(&self, account: AccountId, id: ContainerId) -> Option<(String, Collation)>;
}

/// The account and the container a key begins with; zeros where it ends early.
pub(super) fn owner(key: &[u8]) -> (AccountId, ContainerId) {
    let number = |from: usize| {
        let mut bytes = [0; 8];
        let given = key.get(from..).unwrap_or_default();
        bytes.iter_mut().zip(given).for_each(|(byte, given)| *byte = *given);
        u64::from_be_bytes(bytes)
    };
    (AccountId::new(number(0)), ContainerId::new(number(8)))
}

/// A key, or any position between keys, for people.
pub(crate) fn text(key: &[u8], known: &dyn Known) -> String {
    if key.is_empty() {
        return String::new();
    }
    let (account, container) = owner(key);
    let rest = key.get(16..).unwrap_or_default();
    if (account.get(), container.get()) == (0, 0) {
        return format!("{ACCOUNTS}/{}", name(rest, Collation::Utf8));
    }
    let account_name = known.account(account).unwrap_or_else(|| numbered(account.get()));
    match container.get() {
        0 if rest.is_empty() => account_name,
        0 => format!("{account_name}/{CONTAINERS}/{}", name(rest, Collation::Utf8)),
        _ if container == TAG_INDEX => {
            format!("{account_name}/{TAGS}/{}", name(rest, Collation::Utf8))
        }
        number => {
            let found = known.container(account, container);
            let (container, collation) =
                found.unwrap_or_else(|| (numbered(number), Collation::Utf16));
            format!("{account_name}/{container}/{}", name(rest, collation))
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

/// The name at the end of a key; of a position inside a character, what comes before, and the rest
/// as `\xNN`.
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
    use crate::types::ContainerName;

    struct Two;

    impl Known for Two {
        fn account(&self, id: AccountId) -> Option<String> {
            (id.get() == 1).then(|| "photos".to_owned())
        }

        fn container(&self, account: AccountId, id: ContainerId) -> Option<(String, Collation)> {
            (account.get() == 1 && id.get() == 5).then(|| ("raw".to_owned(), Collation::Utf16))
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
