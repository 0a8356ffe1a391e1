//! Headers of pages.

use crate::query::input::parquet::thrift::Reader;

/// The number of an encoding, of runs of numbers.
pub(crate) const RLE: i64 = 3;

/// Which page follows a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Data,
    Index,
    Dictionary,
    DataV2 { levels: usize, nulls: u32, rows: u32, repetition: u32, definition: u32 },
}

/// A header of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    /// Of the header.
    pub(crate) length: usize,
    pub(crate) compressed: usize,
    pub(crate) decompressed: usize,
    pub(crate) values: u32,
    pub(crate) encoding: i64,
    /// The encoding of the levels that say what is null, of a page of the first version.
    pub(crate) levels: i64,
    pub(crate) is_compressed: bool,
}

/// Reads the header at the front.
pub(crate) fn parse(bytes: &[u8]) -> Option<Header> {
    let mut reader = Reader::new(bytes);
    let mut numbers = Vec::new();
    reader.structure(0, 0, &mut numbers)?;
    let number = |outer, inner| {
        let place = numbers.iter().find(|(place, _)| *place == (outer, inner));
        place.map(|(_, number)| *number)
    };
    let count = |outer, inner| number(outer, inner).and_then(|number| u32::try_from(number).ok());
    let size = |outer| usize::try_from(number(outer, 0)?).ok();
    let (kind, values, encoding) = match number(1, 0)? {
        0 => (Kind::Data, count(5, 1)?, number(5, 2)?),
        1 => (Kind::Index, 0, 0),
        2 => (Kind::Dictionary, count(7, 1)?, number(7, 2)?),
        3 => {
            let (definition, repetition) = (count(8, 5)?, count(8, 6)?);
            let levels = usize::try_from(definition.checked_add(repetition)?).ok()?;
            let (nulls, rows) = (count(8, 2)?, count(8, 3)?);
            let kind = Kind::DataV2 { levels, nulls, rows, repetition, definition };
            (kind, count(8, 1)?, number(8, 4)?)
        }
        _ => return None,
    };
    Some(Header {
        kind,
        length: bytes.len() - reader.rest.len(),
        compressed: size(3)?,
        decompressed: size(2)?,
        values,
        encoding,
        levels: number(5, 3).unwrap_or(RLE),
        is_compressed: number(8, 7) != Some(0),
    })
}
