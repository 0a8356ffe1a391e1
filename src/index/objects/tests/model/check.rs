//! What must hold between the model and the rows after every step.

use super::*;
use crate::types::ExtentOffset;

impl World {
    pub(super) fn named(&self) -> BTreeSet<(ExtentId, ExtentOffset)> {
        let read = Read::References(ListReferences::all());
        let all = self.partitions.iter().map(|partition| partition.read(&read).unwrap());
        let named = all.flat_map(|reply| {
            let ReadReply::References(found) = reply else { panic!("not references") };
            found.locations
        });
        named.map(|location| place(&location)).collect()
    }

    pub(super) fn check(&mut self) {
        for name in NAMES {
            self.check_blob(name);
        }
        self.check_locations();
        for delimiter in [None, Some("/"), Some("b/")] {
            for prefix in ["", "a", "a/", "ab/c", "\u{1F600}"] {
                for uncommitted in [false, true] {
                    self.check_list(prefix, delimiter, uncommitted);
                }
            }
        }
    }

    fn check_blob(&mut self, name: &str) {
        let blob = self.model[name].clone();
        let key = key(name);
        let owner = self.owner(RoutingKey::blob(&key).as_bytes()).clone();
        let Some(blocks) = &blob.committed else {
            assert_eq!(owner.blob(&read(&key)).unwrap_err(), Error::Refused(Refused::BlobNotFound));
            let list = owner.block_list(&key);
            assert_eq!(list.is_ok(), !blob.staged.is_empty());
            return;
        };
        let bytes = blocks.iter().map(|(_, stored)| stored.bytes.as_slice()).collect::<Vec<_>>();
        let bytes = bytes.concat();
        let record = owner.blob(&read(&key)).unwrap().record;
        assert_eq!(usize::try_from(record.len).unwrap(), bytes.len());
        assert_eq!(record.crc64, Crc64::of(&bytes));
        assert_eq!(Some(record.created), blob.created);
        let third = bytes.len() / 3;
        for range in [0..bytes.len(), third..bytes.len() - third, third..third + 1] {
            if range.end <= bytes.len() && !range.is_empty() {
                assert_eq!(self.content(&owner, &key, range.clone()), bytes[range]);
            }
        }
        let list = owner.block_list(&key).unwrap();
        let view = |blocks: Vec<BlockView>| -> Vec<(Vec<u8>, u64)> {
            blocks.into_iter().map(|b| (b.id.as_bytes().to_vec(), b.len)).collect()
        };
        let expected = |(id, stored): (&String, &Stored)| {
            (id.as_bytes().to_vec(), u64::try_from(stored.bytes.len()).unwrap())
        };
        let committed = blocks.iter().filter(|(id, _)| !id.is_empty());
        let committed: Vec<_> = committed.map(|(id, stored)| expected((id, stored))).collect();
        assert_eq!(view(list.committed), committed);
        let staged: Vec<_> = blob.staged.iter().map(expected).collect();
        assert_eq!(view(list.uncommitted), staged);
    }

    /// Reads a range in as many steps as it takes.
    fn content(&self, owner: &Partition, key: &BlobKey, range: std::ops::Range<usize>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let last = u64::try_from(range.end - 1).unwrap();
        let mut from = u64::try_from(range.start).unwrap();
        loop {
            let mut read = read(key);
            read.range = ByteRange::new(from, Some(last));
            let view = owner.blob(&read).unwrap();
            for piece in view.pieces {
                match piece {
                    Piece::Inline(part) => bytes.extend(part),
                    Piece::Zeros(_) => panic!("zeros in a block blob"),
                    Piece::Stored { location, range } => {
                        let all = &self.extents[&place(&location)];
                        let start = usize::try_from(range.start).unwrap();
                        bytes.extend(&all[start..usize::try_from(range.end).unwrap()]);
                    }
                    Piece::Encrypted { .. } | Piece::Authenticated { .. } => {
                        panic!("nothing was encrypted")
                    }
                }
            }
            if view.pieces_end > last {
                return bytes;
            }
            from = view.pieces_end;
        }
    }

    pub(super) fn check_locations(&self) {
        let mut used = BTreeSet::new();
        for blob in self.model.values() {
            let committed = blob.committed.iter().flatten().map(|(_, stored)| stored);
            for stored in committed.chain(blob.staged.values()) {
                used.extend(stored.locations.iter().map(place));
            }
        }
        let mut garbage = BTreeSet::new();
        let mut named = BTreeSet::new();
        for partition in &self.partitions {
            for location in partition.garbage() {
                assert!(garbage.insert(place(&location)), "{location:?} is garbage twice");
            }
            let read = Read::References(ListReferences::all());
            let ReadReply::References(found) = partition.read(&read).unwrap() else {
                panic!("not references")
            };
            named.extend(found.locations.iter().map(place));
        }
        assert!(used.is_disjoint(&garbage), "used and garbage");
        let all: BTreeSet<_> = used.union(&garbage).copied().collect();
        assert_eq!(all, named, "references");
        assert!(all.is_disjoint(&self.forgotten), "named after it was forgotten");
        let ever: BTreeSet<_> = self.extents.keys().copied().collect();
        let known: BTreeSet<_> = all.union(&self.forgotten).copied().collect();
        let lost: BTreeSet<_> = ever.difference(&known).copied().collect();
        assert!(lost.is_subset(&self.shared), "leaked");
        assert!(known.is_subset(&ever), "made up");
        assert!(garbage.is_disjoint(&self.shared), "garbage that a copy may name");
    }

    fn check_list(&mut self, prefix: &str, delimiter: Option<&str>, uncommitted: bool) {
        let mut names: Vec<&str> = NAMES.into_iter().filter(|n| n.starts_with(prefix)).collect();
        names.sort_by_key(|name| name.encode_utf16().collect::<Vec<_>>());
        let mut expected: Vec<String> = Vec::new();
        for name in names {
            let blob = &self.model[name];
            let staged_only = blob.committed.is_none() && !blob.staged.is_empty();
            if blob.committed.is_none() && !(staged_only && uncommitted) {
                continue;
            }
            let rest = &name[prefix.len()..];
            let folded = delimiter.and_then(|d| Some(rest.find(d)? + d.len()));
            let shown = match folded {
                Some(end) => format!("{}>", &name[..prefix.len() + end]),
                None if staged_only => format!("{name}?"),
                None => name.to_owned(),
            };
            if expected.last() != Some(&shown) {
                expected.push(shown);
            }
        }
        for limit in [1, 2, 100] {
            let mut page = ListBlobs { limit, uncommitted, ..list() };
            page.prefix = prefix.to_owned();
            page.delimiter = delimiter.map(str::to_owned);
            let mut shown = Vec::new();
            let mut rounds = 0;
            loop {
                let read = Read::Blobs(page.clone());
                let reply = self.owner(&page.position()).read(&read).unwrap();
                let ReadReply::Blobs(found) = reply else { panic!("not a page") };
                assert!(found.entries.len() <= limit);
                shown.extend(found.entries.iter().map(show));
                let Some(next) = found.next else { break };
                assert!(Some(&next) > page.from.as_ref(), "no progress");
                page.from = Some(next);
                rounds += 1;
                assert!(rounds < 100, "endless");
            }
            assert_eq!(shown, expected, "prefix {prefix:?} delimiter {delimiter:?} limit {limit}");
        }
    }
}
