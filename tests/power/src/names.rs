//! Which names lead to which files: on the disk, for its users, and the changes between.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ffi::OsString;

use fastrand::Rng;

use crate::cut::Mode;
use crate::cut::Report;

/// The folder that is mounted.
pub const ROOT: u64 = 1;

/// A name in a folder.
pub type Place = (u64, OsString);

/// Names of each folder that has any.
type Tree = BTreeMap<Place, u64>;

/// One change of names.
#[derive(Clone, Debug)]
enum Change {
    Link { place: Place, inode: u64 },
    Unlink { place: Place },
    Rename { from: Place, to: Place },
}

impl Change {
    fn places(&self) -> impl Iterator<Item = &Place> {
        let (first, second) = match self {
            Self::Link { place, .. } | Self::Unlink { place } => (place, None),
            Self::Rename { from, to } => (from, Some(to)),
        };
        std::iter::once(first).chain(second)
    }

    fn apply(&self, tree: &mut Tree) {
        match self {
            Self::Link { place, inode } => drop(tree.insert(place.clone(), *inode)),
            Self::Unlink { place } => drop(tree.remove(place)),
            Self::Rename { from, to } => {
                if let Some(inode) = tree.remove(from) {
                    tree.insert(to.clone(), inode);
                }
            }
        }
    }
}

/// All folders.
#[derive(Debug, Default)]
pub struct Names {
    volatile: Tree,
    durable: Tree,
    /// Changes the disk does not have yet, oldest first, each with its number.
    pending: Vec<(u64, Change)>,
    issued: u64,
}

impl Names {
    pub fn get(&self, place: &Place) -> Option<u64> {
        self.volatile.get(place).copied()
    }

    /// The names in a folder and where they lead.
    pub fn list(&self, folder: u64) -> impl Iterator<Item = (&OsString, u64)> {
        let names = self.volatile.range((folder, OsString::new())..(folder + 1, OsString::new()));
        names.map(|((_, name), inode)| (name, *inode))
    }

    pub fn link(&mut self, place: Place, inode: u64) {
        self.change(Change::Link { place, inode });
    }

    pub fn unlink(&mut self, place: Place) {
        self.change(Change::Unlink { place });
    }

    /// Atomic: after a power failure the old name leads to the file, or the new one does.
    pub fn rename(&mut self, from: Place, to: Place) {
        if from != to {
            self.change(Change::Rename { from, to });
        }
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.volatile);
        self.issued += 1;
        self.pending.push((self.issued, change));
    }

    /// The moment a sync begins: it covers the changes made before, and no others.
    pub fn issued(&self) -> u64 {
        self.issued
    }

    /// Changes a power failure may lose.
    pub fn unsynced(&self) -> usize {
        self.pending.len()
    }

    /// Makes the names of one folder durable as they were at the moment `issued`.
    pub fn sync(&mut self, folder: u64, issued: u64) {
        let of_folder = |(number, change): &(u64, Change)| {
            *number <= issued && change.places().any(|place| place.0 == folder)
        };
        let chosen = self.pending.iter().map(of_folder).collect();
        self.make_durable(chosen);
    }

    /// Takes the chosen changes to the disk, and the earlier ones of the same names, on which they
    /// rest. Answers how many.
    fn make_durable(&mut self, mut chosen: Vec<bool>) -> usize {
        let mut needed = BTreeSet::new();
        for ((_, change), chosen) in self.pending.iter().zip(&mut chosen).rev() {
            *chosen |= change.places().any(|place| needed.contains(place));
            if *chosen {
                needed.extend(change.places());
            }
        }
        let mut count = 0;
        let mut kept = Vec::new();
        for ((number, change), chosen) in self.pending.drain(..).zip(chosen) {
            if chosen {
                change.apply(&mut self.durable);
                count += 1;
            } else {
                kept.push((number, change));
            }
        }
        self.pending = kept;
        count
    }

    /// The power fails: of the unsynced changes those survive that `mode` and `rng` choose.
    pub fn cut(&mut self, mode: Mode, rng: &mut Rng, report: &mut Report) {
        let count = self.pending.len();
        let chosen = match mode {
            Mode::Forget => vec![false; count],
            Mode::Torn => {
                let whole = rng.usize(..=count);
                (0..count).map(|number| number < whole).collect()
            }
            Mode::Reordered => {
                let likely = rng.f64();
                (0..count).map(|_| rng.f64() < likely).collect()
            }
        };
        report.names += count;
        report.names_survived += self.make_durable(chosen);
        self.pending.clear();
        self.volatile = self.durable.clone();
    }

    /// Every file and folder that can still be reached: by a name now, by one that a power
    /// failure may bring back, or from the root.
    pub fn reachable(&self) -> BTreeSet<u64> {
        let mut found: BTreeSet<u64> = std::iter::once(ROOT).collect();
        found.extend(self.volatile.values());
        found.extend(self.durable.values());
        found.extend(self.pending.iter().filter_map(|(_, change)| match change {
            Change::Link { inode, .. } => Some(*inode),
            Change::Unlink { .. } | Change::Rename { .. } => None,
        }));
        found
    }

    /// Removes names in folders that nothing leads to. After a power failure.
    pub fn drop_unreachable(&mut self) {
        let mut folders = BTreeSet::from([ROOT]);
        let mut fresh = vec![ROOT];
        while let Some(folder) = fresh.pop() {
            let below: Vec<u64> = self.list(folder).map(|(_, inode)| inode).collect();
            fresh.extend(below.into_iter().filter(|inode| folders.insert(*inode)));
        }
        self.durable.retain(|(folder, _), _| folders.contains(folder));
        self.volatile = self.durable.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(folder: u64, name: &str) -> Place {
        (folder, name.into())
    }

    fn cut(names: &mut Names, mode: Mode, seed: u64) -> Vec<(String, u64)> {
        names.cut(mode, &mut Rng::with_seed(seed), &mut Report::default());
        names.drop_unreachable();
        let shown = |(name, inode): (&OsString, u64)| (name.to_str().unwrap().to_owned(), inode);
        names.list(ROOT).map(shown).collect()
    }

    fn sync(names: &mut Names, folder: u64) {
        names.sync(folder, names.issued());
    }

    #[test]
    fn name_is_durable_after_a_sync_of_its_folder_alone() {
        let mut names = Names::default();
        names.link(place(ROOT, "folder"), 2);
        names.link(place(2, "file"), 3);
        sync(&mut names, 2);
        names.link(place(ROOT, "late"), 4);
        assert_eq!(names.get(&place(2, "file")), Some(3));
        // The folder's own name was not synced: what is in it is gone with it.
        assert_eq!(cut(&mut names, Mode::Forget, 0), []);
        assert_eq!(names.get(&place(2, "file")), None);
        names.link(place(ROOT, "folder"), 2);
        sync(&mut names, ROOT);
        names.link(place(2, "file"), 3);
        sync(&mut names, 2);
        assert_eq!(cut(&mut names, Mode::Forget, 0), [("folder".into(), 2)]);
        assert_eq!(names.get(&place(2, "file")), Some(3));
    }

    #[test]
    fn removed_name_comes_back_unless_synced() {
        let mut names = Names::default();
        names.link(place(ROOT, "a"), 2);
        sync(&mut names, ROOT);
        names.unlink(place(ROOT, "a"));
        assert!(names.reachable().contains(&2));
        assert_eq!(cut(&mut names, Mode::Forget, 0), [("a".into(), 2)]);
        names.unlink(place(ROOT, "a"));
        sync(&mut names, ROOT);
        assert!(!names.reachable().contains(&2));
        assert_eq!(cut(&mut names, Mode::Forget, 0), []);
    }

    #[test]
    fn rename_is_atomic_in_every_mode() {
        for mode in Mode::ALL {
            for seed in 0..100 {
                let mut names = Names::default();
                names.link(place(ROOT, "old"), 2);
                names.link(place(ROOT, "target"), 3);
                sync(&mut names, ROOT);
                names.rename(place(ROOT, "old"), place(ROOT, "target"));
                let found = cut(&mut names, mode, seed);
                let before = vec![("old".to_owned(), 2), ("target".to_owned(), 3)];
                assert!(found == before || found == [("target".to_owned(), 2)], "{found:?}");
            }
        }
    }

    #[test]
    fn rename_across_folders_takes_the_creation_with_it() {
        let mut names = Names::default();
        names.link(place(ROOT, "a"), 2);
        names.link(place(ROOT, "b"), 3);
        sync(&mut names, ROOT);
        names.link(place(2, "file"), 4);
        names.rename(place(2, "file"), place(3, "file"));
        sync(&mut names, 3);
        // A later sync of the first folder must not bring the old name back.
        sync(&mut names, 2);
        cut(&mut names, Mode::Forget, 0);
        assert_eq!(names.get(&place(2, "file")), None);
        assert_eq!(names.get(&place(3, "file")), Some(4));
    }

    #[test]
    fn sync_covers_only_what_was_there_when_it_began() {
        let mut names = Names::default();
        names.link(place(ROOT, "a"), 2);
        let began = names.issued();
        names.link(place(ROOT, "b"), 3);
        names.sync(ROOT, began);
        assert_eq!(cut(&mut names, Mode::Forget, 0), [("a".into(), 2)]);
    }

    #[test]
    fn torn_names_are_a_prefix_and_reordered_ones_are_not() {
        let mut later_alone = [0; 3];
        for seed in 0..200 {
            for (at, mode) in Mode::ALL.into_iter().enumerate() {
                let mut names = Names::default();
                names.link(place(ROOT, "a"), 2);
                names.link(place(ROOT, "b"), 3);
                let found = cut(&mut names, mode, seed);
                later_alone[at] += usize::from(found == [("b".to_owned(), 3)]);
            }
        }
        assert!(later_alone[0] == 0 && later_alone[1] == 0 && later_alone[2] > 10);
    }
}
