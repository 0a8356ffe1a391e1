//! Running reads, which reclaim must know before it frees space.
//!
//! A read is noted before its look-up. From then on it may name any extent. Once the look-up is
//! answered, the read reports the extents that it names. When reclaim finds bytes that no row names
//! any more, in a garbage row or by an audit, it takes a mark. The bytes may be freed once no read
//! from before the mark is looking up or names their extent.
//!
//! Why that is enough. Reclaim finds only published rows: a garbage row is visible to every look-up
//! that begins after reclaim has read it. A read noted after the mark begins its look-up after
//! that, so it finds rows that do not name the bytes. For a read noted before the mark, reclaim
//! waits until the read reports its look-up, and longer if that found the extent. One counter
//! orders notes and marks. No clock is compared: neither the time of the garbage row nor the
//! duration of its commit matters.
//!
//! A read may look up several times. Before each further look-up it reports that it may name any
//! extent again.
//!
//! A process has a register of its own reads. Others ask it for a mark, and later whether reads
//! from before the mark still name certain extents (`api/requests.rs`).

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use uuid::Uuid;

use crate::index::InFlight;
use crate::index::api::OldestRead;
use crate::types::ExtentId;
use crate::types::RoutingKey;
use crate::types::request;

/// The position of a read in the order of notes, and its own number. Reads that share a look-up
/// share the first number.
type Place = (u64, u64);

#[derive(Debug, Default)]
pub(super) struct Reads {
    next: u64,
    running: BTreeMap<Place, Running>,
    /// Reads that are looking up, and so may name any extent.
    looking_up: BTreeSet<Place>,
    named: BTreeSet<(ExtentId, Place)>,
    /// Layers of pages that are being written, by blob.
    layers: BTreeSet<(RoutingKey, u64)>,
}

#[derive(Debug)]
struct Running {
    /// By the monotonic clock.
    began: Duration,
    what: Option<String>,
    /// The id of the request that reads.
    request: Option<Uuid>,
}

impl Reads {
    fn number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }
}

impl InFlight {
    fn reads(&self) -> MutexGuard<'_, Reads> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a read before its look-up; `now` is monotonic. Until the note is dropped, no byte
    /// that the read names is freed.
    #[must_use]
    pub fn read(&self, now: Duration) -> ReadNote {
        let place = self.reads().begin(now, None);
        ReadNote { inflight: self.clone(), place, began: now, named: None }
    }

    /// Notes a layer of pages under `blob` before it is begun. The note is dropped after a commit
    /// has named the layer, or after the layer was given up. Until then reclaim does not free the
    /// layer.
    #[must_use]
    pub fn layer(&self, blob: RoutingKey) -> LayerNote {
        let mut reads = self.reads();
        let number = reads.number();
        reads.layers.insert((blob.clone(), number));
        drop(reads);
        LayerNote { inflight: self.clone(), layer: (blob, number) }
    }

    /// The number of the next read or layer. It separates the notes before now from later ones.
    pub(super) fn next_read(&self) -> u64 {
        self.reads().next
    }

    /// All reads and layers with lower numbers have ended.
    pub(super) fn reads_ended(&self) -> u64 {
        let reads = self.reads();
        let oldest = reads.running.first_key_value().map(|((number, _), _)| *number);
        let layers = reads.layers.iter().map(|(_, number)| *number);
        oldest.into_iter().chain(layers).min().unwrap_or(reads.next)
    }

    /// Whether a read noted before `mark` names bytes of one of the extents, or is looking up and
    /// may name any. Without extents: whether such a read is looking up.
    pub(super) fn is_read(&self, mark: u64, extents: &[ExtentId]) -> bool {
        let reads = self.reads();
        let names = |extent: &ExtentId| {
            let range = (*extent, (0, 0))..(*extent, (mark, 0));
            reads.named.range(range).next().is_some()
        };
        reads.is_looking_up(mark) || extents.iter().any(names)
    }

    /// Whether a layer of pages noted before `mark` is being written under `blob`.
    pub(super) fn is_making_layer(&self, mark: u64, blob: &RoutingKey) -> bool {
        let reads = self.reads();
        let first = reads.layers.range((blob.clone(), 0)..(blob.clone(), mark)).next();
        first.is_some()
    }

    /// The read that has run for longest; `now` is monotonic.
    pub(super) fn oldest_read(&self, now: Duration) -> Option<OldestRead> {
        let reads = self.reads();
        let ((number, _), running) = reads.running.first_key_value()?;
        let (what, request) = (running.what.clone(), running.request);
        Some(OldestRead { number: *number, age: now.saturating_sub(running.began), what, request })
    }

    /// Notes a read that may name anything and ends with [`Self::end_hold`]; returns its number.
    pub(super) fn begin_hold(&self, now: Duration, what: String) -> u64 {
        let place = self.reads().begin(now, Some(what));
        place.0
    }

    /// Ends a hold.
    pub(super) fn end_hold(&self, number: u64) {
        self.reads().end((number, number), None);
    }
}

impl Reads {
    /// Notes a read that looks up.
    fn begin(&mut self, began: Duration, what: Option<String>) -> Place {
        let number = self.number();
        let place = (number, number);
        self.running.insert(place, Running { began, what, request: request::current() });
        self.looking_up.insert(place);
        place
    }

    /// Removes a read. `named` are the extents that it reported.
    fn end(&mut self, place: Place, named: Option<&[ExtentId]>) {
        self.running.remove(&place);
        match named {
            None => {
                self.looking_up.remove(&place);
            }
            Some(extents) => {
                for extent in extents {
                    self.named.remove(&(*extent, place));
                }
            }
        }
    }

    fn is_looking_up(&self, mark: u64) -> bool {
        self.looking_up.first().is_some_and(|(number, _)| *number < mark)
    }
}

/// A running read.
#[derive(Debug)]
pub struct ReadNote {
    inflight: InFlight,
    place: Place,
    began: Duration,
    /// In order; none while it looks up.
    named: Option<Box<[ExtentId]>>,
}

impl ReadNote {
    /// Reports all extents that the read names from now on. Called when a look-up is answered, and
    /// when the read needs fewer extents.
    pub fn names(&mut self, extents: impl IntoIterator<Item = ExtentId>) {
        let mut extents: Vec<ExtentId> = extents.into_iter().collect();
        extents.sort_unstable();
        extents.dedup();
        let extents = extents.into_boxed_slice();
        let mut reads = self.inflight.reads();
        let place = self.place;
        match &self.named {
            None => {
                reads.looking_up.remove(&place);
            }
            Some(before) => {
                for extent in before {
                    reads.named.remove(&(*extent, place));
                }
            }
        }
        reads.named.extend(extents.iter().map(|extent| (*extent, place)));
        drop(reads);
        self.named = Some(extents);
    }

    /// Reports that the read looks up again. Until [`Self::names`] it may name any extent.
    pub fn looks_up(&mut self) {
        let mut reads = self.inflight.reads();
        if let Some(before) = self.named.take() {
            for extent in &before {
                reads.named.remove(&(*extent, self.place));
            }
            reads.looking_up.insert(self.place);
        }
    }

    /// A second read of the content that this one has looked up.
    #[must_use]
    pub fn another(&self) -> Self {
        let mut reads = self.inflight.reads();
        let place = (self.place.0, reads.number());
        let known = reads.running.get(&self.place);
        let what = known.and_then(|running| running.what.clone());
        let request = known.and_then(|running| running.request);
        reads.running.insert(place, Running { began: self.began, what, request });
        match &self.named {
            None => {
                reads.looking_up.insert(place);
            }
            Some(extents) => reads.named.extend(extents.iter().map(|extent| (*extent, place))),
        }
        drop(reads);
        let (inflight, named) = (self.inflight.clone(), self.named.clone());
        Self { inflight, place, began: self.began, named }
    }

    /// Describes the read, for reports of reads that take long.
    pub fn describe(&self, what: String) {
        if let Some(running) = self.inflight.reads().running.get_mut(&self.place) {
            running.what = Some(what);
        }
    }
}

impl Drop for ReadNote {
    fn drop(&mut self) {
        self.inflight.reads().end(self.place, self.named.as_deref());
    }
}

/// A layer of pages that is being written.
#[derive(Debug)]
pub struct LayerNote {
    inflight: InFlight,
    layer: (RoutingKey, u64),
}

impl Drop for LayerNote {
    fn drop(&mut self) {
        self.inflight.reads().layers.remove(&self.layer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ExtentId = ExtentId::new(1);
    const TWO: ExtentId = ExtentId::new(2);
    const NOW: Duration = Duration::from_secs(10);

    #[test]
    fn reads_have_ended_below_the_oldest_that_runs() {
        let inflight = InFlight::default();
        assert_eq!(inflight.reads_ended(), 0);
        let first = inflight.read(NOW);
        let layer = inflight.layer(RoutingKey::min());
        let copy = first.another();
        drop(first);
        assert_eq!(inflight.reads_ended(), 0, "another one reads what it has looked up");
        drop(copy);
        assert_eq!(inflight.reads_ended(), 1);
        drop(layer);
        assert_eq!(inflight.reads_ended(), inflight.next_read());
    }

    #[test]
    fn read_is_waited_for_until_it_tells_and_then_for_its_extents_alone() {
        let inflight = InFlight::default();
        let mut read = inflight.read(NOW);
        let mark = inflight.next_read();
        assert!(inflight.is_read(mark, &[ONE]) && inflight.is_read(mark, &[]));
        read.names([TWO, ONE, TWO]);
        assert!(inflight.is_read(mark, &[ONE]) && inflight.is_read(mark, &[ExtentId::new(3), TWO]));
        assert!(!inflight.is_read(mark, &[ExtentId::new(3)]) && !inflight.is_read(mark, &[]));
        read.names([TWO]);
        assert!(!inflight.is_read(mark, &[ONE]));
        drop(read);
        assert!(!inflight.is_read(mark, &[ONE, TWO]));
    }

    #[test]
    fn read_noted_after_the_mark_holds_nothing() {
        let inflight = InFlight::default();
        let mark = inflight.next_read();
        let mut read = inflight.read(NOW);
        assert!(!inflight.is_read(mark, &[ONE]) && !inflight.is_read(mark, &[]));
        read.names([ONE]);
        assert!(!inflight.is_read(mark, &[ONE]));
        assert!(inflight.is_read(inflight.next_read(), &[ONE]));
    }

    #[test]
    fn further_look_up_may_name_anything_again() {
        let inflight = InFlight::default();
        let mut read = inflight.read(NOW);
        read.names([ONE]);
        let mark = inflight.next_read();
        read.looks_up();
        read.looks_up();
        assert!(inflight.is_read(mark, &[TWO]), "as one noted before the mark");
        read.names([TWO]);
        assert!(!inflight.is_read(mark, &[ONE]) && inflight.is_read(mark, &[TWO]));
    }

    #[test]
    fn second_read_stands_where_the_first_stood() {
        let inflight = InFlight::default();
        let mut first = inflight.read(NOW);
        let while_looking_up = first.another();
        first.names([ONE]);
        let mark = inflight.next_read();
        let second = first.another();
        drop(first);
        assert!(inflight.is_read(mark, &[]));
        drop(while_looking_up);
        assert!(!inflight.is_read(mark, &[]) && inflight.is_read(mark, &[ONE]));
        drop(second);
        assert!(!inflight.is_read(mark, &[ONE]));
    }

    #[test]
    fn nothing_is_left_of_reads_that_ended() {
        let inflight = InFlight::default();
        let mut all = Vec::new();
        for n in 0..10 {
            let mut read = inflight.read(NOW);
            if n % 2 == 0 {
                read.names((0..n).map(ExtentId::new));
            }
            all.push(read.another());
            all.push(read);
        }
        let layer = inflight.layer(RoutingKey::min());
        drop((all, layer));
        let reads = inflight.reads();
        let left = (reads.running.len(), reads.looking_up.len(), reads.named.len());
        assert_eq!((left, reads.layers.len()), ((0, 0, 0), 0));
    }

    #[test]
    fn layer_is_in_the_making_for_marks_after_its_note_alone() {
        let inflight = InFlight::default();
        let (blob, other) = (RoutingKey::from_bytes(vec![1].into()), RoutingKey::min());
        let before = inflight.next_read();
        let layer = inflight.layer(blob.clone());
        let mark = inflight.next_read();
        assert!(inflight.is_making_layer(mark, &blob));
        assert!(
            !inflight.is_making_layer(mark, &other) && !inflight.is_making_layer(before, &blob)
        );
        assert!(!inflight.is_read(mark, &[ONE]), "it holds no bytes");
        drop(layer);
        assert!(!inflight.is_making_layer(mark, &blob));
    }

    #[test]
    fn oldest_read_is_the_first_of_those_that_run() {
        let inflight = InFlight::default();
        assert_eq!(inflight.oldest_read(NOW * 3), None);
        let first = inflight.read(NOW);
        let id = Some(Uuid::from_u128(17));
        let entered = request::enter(id);
        let second = inflight.read(NOW * 2);
        drop(entered);
        second.describe("a long one".to_owned());
        let oldest = inflight.oldest_read(NOW * 3).unwrap();
        assert_eq!((oldest.age, oldest.request), (NOW * 2, None));
        drop(first);
        let expected = (NOW, Some("a long one".to_owned()), id);
        let oldest = inflight.oldest_read(NOW * 3).unwrap();
        assert_eq!((oldest.age, oldest.what, oldest.request), expected);
        let again = second.another();
        drop(second);
        assert_eq!(inflight.oldest_read(NOW * 3).unwrap().request, id, "of the same request");
        drop(again);
    }
}
