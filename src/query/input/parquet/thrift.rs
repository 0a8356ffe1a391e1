//! The compact protocol of Thrift, in which Parquet has its metadata and the headers of pages.

/// Structures and lists within each other.
const DEPTH_MAX: usize = 16;

/// Reads the compact protocol from the front.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    pub(crate) rest: &'a [u8],
    /// Items of lists that may still be there: fewer than there were bytes.
    items: usize,
    /// Structures in lists, of the outermost structure and of structures in such lists.
    parts: usize,
}

/// The depths of those lists in the metadata: a value of the file, and one of a group of rows.
const PARTS: [usize; 2] = [3, 5];

/// Whole numbers and truths by the field of the outer structure and that of the one inside of it.
/// Zero stands for the outer structure itself.
pub(crate) type Numbers = Vec<((i16, i16), i64)>;

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, items: bytes.len(), parts: 0 }
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn skip(&mut self, count: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn zigzag(&mut self) -> Option<i64> {
        let value = self.varint()?;
        let half = i64::try_from(value >> 1).ok()?;
        Some(if value & 1 == 1 { -half - 1 } else { half })
    }

    /// Reads a structure; its numbers and those of structures in it go into `numbers`.
    pub(crate) fn structure(
        &mut self,
        outer: i16,
        depth: usize,
        numbers: &mut Numbers,
    ) -> Option<()> {
        let mut id: i16 = 0;
        loop {
            let byte = self.byte()?;
            if byte == 0 {
                return Some(());
            }
            id = match byte >> 4 {
                0 => i16::try_from(self.zigzag()?).ok()?,
                delta => id.checked_add(i16::from(delta))?,
            };
            let place = if depth == 0 { (id, 0) } else { (outer, id) };
            match byte & 0xf {
                12 if depth == 0 => self.structure(id, 1, numbers)?,
                kind @ (1 | 2) if depth < 2 => numbers.push((place, i64::from(kind == 1))),
                4..=6 if depth < 2 => {
                    let number = self.zigzag()?;
                    numbers.push((place, number));
                }
                kind => self.value(kind, depth + 1)?,
            }
        }
    }

    /// Skips a value of this type.
    fn value(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        match kind {
            1 | 2 => Some(()),
            3 => self.skip(1),
            4..=6 => self.varint().map(|_| ()),
            7 => self.skip(8),
            8 => {
                let count = self.varint()?;
                self.skip(count)
            }
            9 | 10 => {
                let byte = self.byte()?;
                let count = match byte >> 4 {
                    15 => usize::try_from(self.varint()?).ok()?,
                    count => usize::from(count),
                };
                self.items = self.items.checked_sub(count)?;
                if byte & 0xf == 12 && PARTS.contains(&depth) {
                    self.parts += count;
                }
                (0..count).try_for_each(|_| self.value(byte & 0xf, depth + 1))
            }
            12 => self.structure(0, depth.max(2), &mut Vec::new()),
            // Parquet has no maps.
            _ => None,
        }
    }
}

/// How many columns and groups metadata has: elements of the schema, groups, and columns of groups.
/// `None` if it is no structure whose lists have no more items than there are bytes. A list of
/// truths may claim any number of them in a few bytes, and to skip it takes the library that long.
pub(crate) fn parts(bytes: &[u8]) -> Option<usize> {
    let mut reader = Reader::new(bytes);
    reader.structure(0, 2, &mut Vec::new())?;
    Some(reader.parts)
}
