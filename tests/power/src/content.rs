//! The bytes of a file, as pages; pages that are absent are holes.

use std::collections::BTreeMap;
use std::sync::Arc;

/// What file systems allocate and punch in.
pub const PAGE_BYTES: u64 = 4096;

/// The unit a disk writes whole or not at all.
pub const SECTOR_BYTES: u64 = 512;

/// A page that has room on the disk.
#[derive(Clone, Debug)]
enum Page {
    /// Allocated and never written: reads as zeros.
    Zeros,
    Bytes(Box<[u8; PAGE_BYTES as usize]>),
}

/// One change of a file's content.
#[derive(Clone, Debug)]
pub enum Change {
    Write {
        offset: u64,
        bytes: Arc<[u8]>,
    },
    /// Cuts or extends the file to this length.
    Length(u64),
    /// Takes room. Unless `keep_length`, the file is afterwards at least as long as the end.
    Allocate {
        offset: u64,
        len: u64,
        keep_length: bool,
    },
    /// Makes a range read as zeros and gives whole pages back; the length stays.
    Punch {
        offset: u64,
        len: u64,
    },
}

/// A file's bytes and length.
#[derive(Clone, Debug, Default)]
pub struct Content {
    len: u64,
    pages: BTreeMap<u64, Page>,
}

impl Content {
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Bytes of room taken, whole pages.
    pub fn allocated(&self) -> u64 {
        self.pages.len() as u64 * PAGE_BYTES
    }

    /// Up to `len` bytes from `offset`, fewer at the end of the file.
    pub fn read(&self, offset: u64, len: usize) -> Vec<u8> {
        let end = self.len.min(offset.saturating_add(len as u64));
        let mut bytes = vec![0; end.saturating_sub(offset) as usize];
        for (number, page) in self.pages.range(offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES)) {
            let Page::Bytes(page) = page else { continue };
            let start = number * PAGE_BYTES;
            let (from, to) = (start.max(offset), (start + PAGE_BYTES).min(end));
            if from < to {
                bytes[(from - offset) as usize..(to - offset) as usize]
                    .copy_from_slice(&page[(from - start) as usize..(to - start) as usize]);
            }
        }
        bytes
    }

    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Write { offset, bytes } => self.write(*offset, bytes),
            Change::Length(len) => self.set_len(*len),
            Change::Allocate { offset, len, keep_length } => {
                let end = offset.saturating_add(*len);
                for number in offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES) {
                    self.pages.entry(number).or_insert(Page::Zeros);
                }
                if !keep_length {
                    self.len = self.len.max(end);
                }
            }
            Change::Punch { offset, len } => self.clear(*offset, offset.saturating_add(*len)),
        }
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset + bytes.len() as u64;
        let mut at = offset;
        while at < end {
            let start = at / PAGE_BYTES * PAGE_BYTES;
            let to = (start + PAGE_BYTES).min(end);
            let page = self.page(at / PAGE_BYTES);
            page[(at - start) as usize..(to - start) as usize]
                .copy_from_slice(&bytes[(at - offset) as usize..(to - offset) as usize]);
            at = to;
        }
        self.len = self.len.max(end);
    }

    /// A page's bytes, made if it has none.
    fn page(&mut self, number: u64) -> &mut [u8; PAGE_BYTES as usize] {
        let page = self.pages.entry(number).or_insert(Page::Zeros);
        if matches!(page, Page::Zeros) {
            *page = Page::Bytes(Box::new([0; PAGE_BYTES as usize]));
        }
        match page {
            Page::Bytes(bytes) => bytes,
            Page::Zeros => unreachable!("given bytes above"),
        }
    }

    fn set_len(&mut self, len: u64) {
        if len < self.len {
            // What is past the end must read as zeros when the file grows again.
            self.clear(len, u64::MAX);
        }
        self.len = len;
    }

    /// Removes whole pages of a range and zeroes the rest of it.
    fn clear(&mut self, from: u64, to: u64) {
        let (first, last) = (from.div_ceil(PAGE_BYTES), to / PAGE_BYTES);
        if first < last {
            let mut kept = self.pages.split_off(&first);
            let mut after = kept.split_off(&last);
            self.pages.append(&mut after);
        }
        for number in [from / PAGE_BYTES, to / PAGE_BYTES] {
            let start = number * PAGE_BYTES;
            let (low, high) = (from.max(start), to.min(start.saturating_add(PAGE_BYTES)));
            if low >= high {
                continue;
            }
            if let Some(Page::Bytes(page)) = self.pages.get_mut(&number) {
                page[(low - start) as usize..(high - start) as usize].fill(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same changes on plain bytes.
    fn apply_plainly(plain: &mut Vec<u8>, change: &Change) {
        match change {
            Change::Write { offset, bytes } => {
                let end = *offset as usize + bytes.len();
                if plain.len() < end {
                    plain.resize(end, 0);
                }
                plain[*offset as usize..end].copy_from_slice(bytes);
            }
            Change::Length(len) => plain.resize(*len as usize, 0),
            Change::Allocate { offset, len, keep_length } => {
                let end = (offset + len) as usize;
                if !keep_length && plain.len() < end {
                    plain.resize(end, 0);
                }
            }
            Change::Punch { offset, len } => {
                let end = plain.len().min((offset + len) as usize);
                let from = end.min(*offset as usize);
                plain[from..end].fill(0);
            }
        }
    }

    #[test]
    fn content_agrees_with_plain_bytes() {
        for seed in 0..200 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let (mut content, mut plain) = (Content::default(), Vec::new());
            for _ in 0..60 {
                let offset = rng.u64(..30_000);
                let len = rng.u64(1..10_000);
                let change = match rng.u8(..5) {
                    0 | 1 => Change::Write { offset, bytes: vec![rng.u8(..); len as usize].into() },
                    2 => Change::Length(offset),
                    3 => Change::Punch { offset, len },
                    _ => Change::Allocate { offset, len, keep_length: rng.bool() },
                };
                content.apply(&change);
                apply_plainly(&mut plain, &change);
                assert_eq!(content.len(), plain.len() as u64, "seed {seed}");
                assert!(content.read(0, 1 << 20) == plain, "seed {seed}");
                let from = offset.min(plain.len() as u64);
                let to = plain.len().min((from + len) as usize);
                assert!(
                    content.read(from, len as usize) == plain[from as usize..to],
                    "seed {seed}"
                );
            }
        }
    }

    #[test]
    fn room_is_taken_by_writes_and_given_back_by_holes() {
        let mut content = Content::default();
        content.apply(&Change::Allocate { offset: 0, len: 3 * PAGE_BYTES, keep_length: true });
        assert_eq!((content.len(), content.allocated()), (0, 3 * PAGE_BYTES));
        content.apply(&Change::Write { offset: 10 * PAGE_BYTES, bytes: vec![1].into() });
        assert_eq!(content.allocated(), 4 * PAGE_BYTES);
        content.apply(&Change::Punch { offset: 1, len: 2 * PAGE_BYTES });
        assert_eq!(content.allocated(), 3 * PAGE_BYTES);
        content.apply(&Change::Length(0));
        assert_eq!(content.allocated(), 0);
    }
}
