//! The content of one simulated file: sparse pages and a length.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The unit of space and of holes.
pub(super) const PAGE_BYTES: u64 = 4096;
const PAGE_LEN: usize = 4096;
const _: () = assert!(PAGE_LEN as u64 == PAGE_BYTES);

/// A page that takes space. `None` means zeros, as after a reservation.
type Page = Option<Arc<[u8; PAGE_LEN]>>;

/// A file's content. Pages that are absent are holes.
#[derive(Clone, Debug, Default)]
pub(super) struct Image {
    pages: BTreeMap<u64, Page>,
    len: u64,
}

impl Image {
    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    /// Pages that take space.
    pub(super) fn pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Up to `len` bytes at `offset`; fewer at the end.
    pub(super) fn read(&self, offset: u64, len: usize) -> Vec<u8> {
        let end = self.len.min(offset.saturating_add(len as u64));
        let mut bytes = Vec::with_capacity(index(end.saturating_sub(offset)));
        for (page, from, to) in spans(offset, end) {
            match self.pages.get(&page) {
                Some(Some(data)) => bytes.extend_from_slice(&data[from..to]),
                Some(None) | None => bytes.resize(bytes.len() + to - from, 0),
            }
        }
        bytes
    }

    /// Further pages that a write or reservation of this range would take.
    pub(super) fn missing(&self, offset: u64, len: u64) -> u64 {
        let pages = covering(offset, offset + len);
        let present = self.pages.range(pages.clone()).count() as u64;
        pages.end - pages.start - present
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset + bytes.len() as u64;
        let mut rest = bytes;
        for (page, from, to) in spans(offset, end) {
            let (now, later) = rest.split_at(to - from);
            rest = later;
            let data = self.pages.entry(page).or_default();
            let data = data.get_or_insert_with(|| Arc::new([0; PAGE_LEN]));
            Arc::make_mut(data)[from..to].copy_from_slice(now);
        }
        self.len = self.len.max(end);
    }

    pub(super) fn allocate(&mut self, offset: u64, len: u64) {
        for page in covering(offset, offset + len) {
            self.pages.entry(page).or_default();
        }
        self.len = self.len.max(offset + len);
    }

    /// Removes the whole pages inside the range.
    pub(super) fn punch(&mut self, offset: u64, len: u64) {
        let first = offset.div_ceil(PAGE_BYTES);
        let last = (offset + len) / PAGE_BYTES;
        let holes: Vec<u64> = if first < last {
            self.pages.range(first..last).map(|(page, _)| *page).collect()
        } else {
            Vec::new()
        };
        for page in holes {
            self.pages.remove(&page);
        }
    }

    pub(super) fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.pages.split_off(&len.div_ceil(PAGE_BYTES));
            if let Some(Some(data)) = self.pages.get_mut(&(len / PAGE_BYTES)) {
                Arc::make_mut(data)[index(len % PAGE_BYTES)..].fill(0);
            }
        }
        self.len = len;
    }

    /// Flips one bit. Returns false in a hole, which stays as it is.
    pub(super) fn flip(&mut self, offset: u64, bit: u8) -> bool {
        let Some(Some(data)) = self.pages.get_mut(&(offset / PAGE_BYTES)) else { return false };
        Arc::make_mut(data)[index(offset % PAGE_BYTES)] ^= 1 << (bit % 8);
        offset < self.len
    }

    /// Numbers of the pages with written bytes.
    pub(super) fn written(&self) -> impl Iterator<Item = u64> {
        self.pages.iter().filter(|(_, data)| data.is_some()).map(|(page, _)| *page)
    }
}

/// Simulated files fit in memory.
fn index(value: u64) -> usize {
    usize::try_from(value).expect("a simulated file fits in memory")
}

fn covering(start: u64, end: u64) -> std::ops::Range<u64> {
    start / PAGE_BYTES..end.div_ceil(PAGE_BYTES).max(start / PAGE_BYTES)
}

/// Splits a range at page borders into (page, from, to).
fn spans(start: u64, end: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let pages = if start < end { covering(start, end) } else { 0..0 };
    pages.map(move |page| {
        let base = page * PAGE_BYTES;
        let from = start.max(base) - base;
        let to = end.min(base + PAGE_BYTES) - base;
        (page, index(from), index(to))
    })
}
