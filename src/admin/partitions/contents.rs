//! Which containers lie where in the key space.

use bytes::Bytes;

use crate::types::Collation;
use crate::types::ContainerKey;
use crate::types::RoutingKey;

/// The most containers that are listed. Further ones are left out.
pub(super) const CONTAINERS_MAX: usize = 5_000;

/// The containers of the store at an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// Another one when the containers are others, also after a restart; below 2^53.
    pub(super) number: u64,
    /// Their lowest keys, and `ACCOUNT/CONTAINER`; in key order.
    pub(super) containers: Vec<(Bytes, String)>,
    /// Whether these are all.
    pub(super) complete: bool,
}

impl Contents {
    /// Adds a container, at the end.
    pub(super) fn add(&mut self, container: ContainerKey, account: &str, name: &str) {
        let ContainerKey { account: of, id } = container;
        let low = RoutingKey::prefix(of, id, "", Collation::Utf8);
        self.containers.push((low, format!("{account}/{name}")));
    }

    /// The containers in key order. They keep the number of `before` if they are the same; `now` is
    /// microseconds since 1970.
    pub(super) fn numbered(mut self, before: Option<&Self>, now: u64) -> Self {
        self.containers.sort_unstable();
        let number = match before {
            Some(before) if before.is_same(&self) => before.number,
            Some(before) => now.max(before.number + 1),
            None => now,
        };
        Self { number, ..self }
    }

    fn is_same(&self, other: &Self) -> bool {
        (&self.containers, self.complete) == (&other.containers, other.complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::AccountId;
    use crate::types::ContainerId;

    fn of(containers: &[(u64, u64, &str)]) -> Contents {
        let mut made = Contents { complete: true, ..Contents::default() };
        for (account, id, name) in containers {
            let container =
                ContainerKey { account: AccountId::new(*account), id: ContainerId::new(*id) };
            made.add(container, "photos", name);
        }
        made
    }

    #[test]
    fn containers_are_in_key_order_and_have_a_number_of_their_own() {
        let first = of(&[(1, 9, "a"), (1, 4, "z")]).numbered(None, 50);
        let names: Vec<&str> = first.containers.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["photos/z", "photos/a"]);
        assert_eq!(
            first.containers[0].0.as_ref(),
            [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 4]
        );
        let same = of(&[(1, 4, "z"), (1, 9, "a")]).numbered(Some(&first), 60);
        assert_eq!((first.number, same.number), (50, 50));
        let more = of(&[(1, 4, "z")]).numbered(Some(&same), 40);
        assert_eq!(more.number, 51, "the clock went back");
        let part = Contents { complete: false, ..of(&[(1, 4, "z")]) }.numbered(Some(&more), 70);
        assert_eq!(part.number, 70);
    }
}
