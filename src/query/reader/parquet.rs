//! Records of Parquet. The position of a fault is the number of the record, from zero.
//!
//! The end of the file says where its columns are. Of each group of rows only the columns of the
//! statement are read, or the smallest one to count its values. They are in memory together as they
//! are in the file; of each, one page and the dictionary are decompressed.

use std::borrow::Cow;
use std::cell::Cell;
use std::convert::Infallible;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::metadata::ParquetMetaDataReader;

use crate::query::answer;
use crate::query::answer::Answer;
use crate::query::eval::Row;
use crate::query::input::parquet::leaf;
use crate::query::input::parquet::leaf::BATCH;
use crate::query::input::parquet::leaf::Leaf;
use crate::query::input::parquet::malformed;
use crate::query::input::parquet::pages::Budget;
use crate::query::input::parquet::pages::PAGE_MAX;
use crate::query::input::parquet::pages::PAGES_MAX;
use crate::query::input::parquet::pages::Pages;
use crate::query::input::parquet::thrift;
use crate::query::input::pieces::Pieces;
use crate::query::output::cell as output;
use crate::query::reader::ROW;
use crate::query::reader::turn::Turn;
use crate::query::reader::turn::Want;
use crate::query::request::Fault;
use crate::query::request::Sink;
use crate::query::sql::Projection;
use crate::query::sql::column::Access;
use crate::query::sql::column::Column;
use crate::query::trouble::INVALID_COLUMN_NAME;
use crate::query::trouble::NOT_SUPPORTED;
use crate::query::trouble::Trouble;
use crate::query::value::Value;

/// Bytes of the end of the file: the length of the metadata, and a word.
const TAIL: u64 = 8;
/// Bytes of the metadata.
const METADATA_MAX: u64 = 4 << 20;
/// Columns of a file.
const COLUMNS_MAX: usize = 4096;
/// Columns of the schema, groups, and columns of groups, all together. In memory one of them has
/// about 500 bytes.
const PARTS_MAX: usize = 32 * 1024;
/// Bytes of the columns of a group of rows as they are in the file.
const GROUP_MAX: u64 = 128 << 20;
/// Bytes that pages may take in any case.
const PAGES_MIN: usize = 1 << 20;

/// The part that is being read.
enum State {
    Tail,
    Metadata(Range<u64>),
    /// Columns of a group, those before it are there.
    Columns {
        group: usize,
        /// Where all of them are in the file.
        ranges: Vec<Range<u64>>,
        chunks: Vec<Bytes>,
    },
    Rows {
        group: usize,
        leaves: Vec<Box<dyn Leaf>>,
        /// Rows of the group that are not decoded.
        left: u64,
        /// Rows of the batch, and the next one of them.
        batch: Range<usize>,
    },
}

/// Reads Parquet.
pub(crate) struct Reader {
    length: u64,
    pieces: Pieces,
    state: State,
    metadata: Option<ParquetMetaData>,
    /// Columns of the file that are read, in order, with their names.
    wanted: Vec<usize>,
    names: Vec<String>,
    /// Where in `wanted` each column of the statement is.
    columns: Vec<usize>,
    /// How many rows were decoded.
    row: u64,
    /// Bytes of the metadata in memory.
    metadata_bytes: u64,
    /// Bytes that the columns of a group need.
    chunks_bytes: u64,
    /// Bytes that those pages of them may take that are out of their compression.
    pages_bytes: usize,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("names", &self.names).finish_non_exhaustive()
    }
}

/// Calls code of the library, which was seen to panic on files that were made for it.
fn guarded<T, E: std::fmt::Display>(work: impl FnOnce() -> Result<T, E>) -> Result<T, Fault> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(|error| malformed(&error)),
        Err(_) => Err(malformed(&"a value in it is impossible")),
    }
}

fn not_supported(text: String) -> Fault {
    Fault::fatal(NOT_SUPPORTED, text, 0)
}

impl Reader {
    pub(crate) fn new(length: u64) -> Self {
        Self {
            length,
            pieces: Pieces::default(),
            state: State::Tail,
            metadata: None,
            wanted: Vec::new(),
            names: Vec::new(),
            columns: Vec::new(),
            row: 0,
            metadata_bytes: 0,
            chunks_bytes: 0,
            pages_bytes: 0,
        }
    }

    pub(crate) fn feed(&mut self, bytes: &Bytes) {
        self.pieces.feed(bytes);
    }

    /// Bytes that it needs beside those of every reader; known once the metadata is read.
    pub(crate) fn memory(&self) -> u64 {
        self.metadata_bytes + self.chunks_bytes + self.pages_bytes as u64
    }

    pub(crate) fn names(&self) -> Vec<Cow<'_, str>> {
        self.names.iter().map(|name| Cow::Borrowed(name.as_str())).collect()
    }

    pub(crate) fn work(&mut self, answer: &mut Answer, sink: &mut Sink) -> Result<Want, Fault> {
        if self.pieces.is_cut_off {
            return Err(malformed(&"it is cut off"));
        }
        let mut turn = Turn::new(sink);
        loop {
            let range = match &mut self.state {
                State::Tail => self.length.saturating_sub(TAIL)..self.length,
                State::Metadata(range) => range.clone(),
                State::Columns { group, ranges, chunks } => match ranges.get(chunks.len()) {
                    Some(range) => range.clone(),
                    None => {
                        let group = *group;
                        if !self.open(group)? {
                            return Ok(Want::Nothing);
                        }
                        continue;
                    }
                },
                State::Rows { .. } => match self.rows(answer, sink, &mut turn)? {
                    Some(want) => return Ok(want),
                    None => continue,
                },
            };
            match self.pieces.take(range) {
                Err(piece) => return Ok(Want::Bytes(piece)),
                Ok(bytes) => self.take(bytes, answer)?,
            }
        }
    }

    /// Takes the requested bytes.
    fn take(&mut self, bytes: Bytes, answer: &Answer) -> Result<(), Fault> {
        match &mut self.state {
            State::Tail => {
                self.state = State::Metadata(metadata_range(&bytes, self.length)?);
            }
            State::Metadata(_) => {
                match thrift::parts(&bytes) {
                    Some(parts) if parts <= PARTS_MAX => {}
                    Some(_) => {
                        let text = format!("Its columns and groups are more than {PARTS_MAX}.");
                        return Err(not_supported(text));
                    }
                    None => return Err(malformed(&"its metadata cannot be read")),
                }
                let metadata = guarded(|| ParquetMetaDataReader::decode_metadata(&bytes))?;
                self.find_columns(&metadata, answer)?;
                (self.chunks_bytes, self.pages_bytes) = needed(&metadata, &self.wanted);
                self.metadata_bytes = metadata.memory_size() as u64;
                self.metadata = Some(metadata);
                self.state = self.columns_of(0)?;
            }
            State::Columns { chunks, .. } => chunks.push(bytes),
            State::Rows { .. } => {}
        }
        Ok(())
    }

    /// Finds the columns of the statement in the file.
    fn find_columns(&mut self, metadata: &ParquetMetaData, answer: &Answer) -> Result<(), Fault> {
        let schema = metadata.file_metadata().schema_descr();
        let count = schema.num_columns();
        if count > COLUMNS_MAX {
            return Err(not_supported(format!("The file has more than {COLUMNS_MAX} columns.")));
        }
        let paths: Vec<Vec<String>> =
            (0..count).map(|at| schema.column(at).path().parts().to_vec()).collect();
        let statement = answer.statement();
        let mut found = Vec::new();
        for column in &statement.columns {
            found.push(position(column, &paths)?);
        }
        self.wanted = match statement.projection {
            Projection::All => (0..count).collect(),
            Projection::Items(_) | Projection::Split(_) => {
                let mut wanted = found.clone();
                wanted.sort_unstable();
                wanted.dedup();
                wanted
            }
        };
        if self.wanted.is_empty() {
            self.wanted.extend(smallest(metadata)?);
        }
        let place = |at: &usize| self.wanted.binary_search(at).unwrap_or(0);
        self.columns = found.iter().map(place).collect();
        for at in &self.wanted {
            let name = paths[*at].join(".");
            if schema.column(*at).max_rep_level() > 0 {
                return Err(not_supported(format!("The column {name} has lists.")));
            }
            self.names.push(name);
        }
        Ok(())
    }

    /// The state that reads the columns of a group; without columns if the group does not exist.
    fn columns_of(&self, at: usize) -> Result<State, Fault> {
        let mut ranges = Vec::new();
        let Some(group) = self.metadata.as_ref().and_then(|m| m.row_groups().get(at)) else {
            return Ok(State::Columns { group: at, ranges, chunks: Vec::new() });
        };
        if self.wanted.is_empty() && group.num_rows() != 0 {
            return Err(malformed(&"it has rows without columns"));
        }
        let mut sum = 0_u64;
        for at in &self.wanted {
            let Some(column) = group.columns().get(*at) else {
                return Err(malformed(&"a group of rows lacks a column"));
            };
            // Columns with lists are not read, so each row has a value, even if that is a null.
            if column.num_values() != group.num_rows() {
                return Err(malformed(&"a column has another number of values than rows"));
            }
            let (start, length) = guarded(|| Ok::<_, Infallible>(column.byte_range()))?;
            sum = sum.saturating_add(length);
            match start.checked_add(length).filter(|end| *end <= self.length) {
                Some(end) => ranges.push(start..end),
                None => return Err(malformed(&"a column lies behind its end")),
            }
        }
        if sum > GROUP_MAX {
            let text = "Of a group of rows, the columns of the query have more than";
            return Err(not_supported(format!("{text} {GROUP_MAX} bytes.")));
        }
        Ok(State::Columns { group: at, ranges, chunks: Vec::new() })
    }

    /// Begins with the rows of a group whose columns were read. Returns whether the group exists.
    fn open(&mut self, at: usize) -> Result<bool, Fault> {
        let Some(group) = self.metadata.as_ref().and_then(|m| m.row_groups().get(at)) else {
            return Ok(false);
        };
        let State::Columns { chunks, .. } = &mut self.state else { return Ok(false) };
        let Ok(left) = u64::try_from(group.num_rows()) else {
            return Err(malformed(&"a group has less than no rows"));
        };
        let budget = Budget::new(self.pages_bytes);
        let mut leaves = Vec::new();
        for (column, bytes) in self.wanted.iter().zip(std::mem::take(chunks)) {
            let column = group.column(*column);
            let pages = Pages::new(bytes, column, budget.clone(), left);
            let descriptor = column.column_descr_ptr();
            leaves.push(guarded(|| Ok::<_, Infallible>(leaf::leaf(descriptor, pages)))?);
        }
        self.state = State::Rows { group: at, leaves, left, batch: 0..0 };
        Ok(true)
    }

    /// Gives rows of a group to the answer. `None` if another step follows.
    fn rows(
        &mut self,
        answer: &mut Answer,
        sink: &mut Sink,
        turn: &mut Turn,
    ) -> Result<Option<Want>, Fault> {
        let State::Rows { group, leaves, left, batch } = &mut self.state else { return Ok(None) };
        if batch.start == batch.end {
            if *left == 0 {
                let next = *group + 1;
                self.state = self.columns_of(next)?;
                return Ok(None);
            }
            let count = usize::try_from(*left).unwrap_or(BATCH).min(BATCH);
            for leaf in leaves.iter_mut() {
                guarded(|| leaf.advance(count))?;
            }
            *left -= count as u64;
            *batch = 0..count;
        }
        let (names, columns) = (&self.names, &self.columns);
        for row in batch.by_ref() {
            let touched = Cell::default();
            let record = Record { leaves, row, names, columns, touched };
            answer.record(&record, self.row, sink)?;
            self.row += 1;
            if answer.is_full() {
                return Ok(Some(Want::Nothing));
            }
            if turn.is_over(ROW + record.touched.get(), answer, sink) {
                return Ok(Some(Want::Turn));
            }
        }
        Ok(None)
    }
}

/// The column that is read where a statement names none, so that only rows count which are there:
/// the metadata may claim any number of them. It has the fewest bytes in the first group.
fn smallest(metadata: &ParquetMetaData) -> Result<Option<usize>, Fault> {
    let schema = metadata.file_metadata().schema_descr();
    let Some(group) = metadata.row_groups().first() else { return Ok(None) };
    let has_lists = |at: usize| schema.column(at).max_rep_level() > 0;
    let columns = group.columns().iter().enumerate();
    let cost = |column: &ColumnChunkMetaData| {
        let is_refused = column.encodings().any(|one| one == Encoding::DELTA_BYTE_ARRAY);
        (is_refused, column.compressed_size())
    };
    let count = schema.num_columns();
    let found = columns
        .filter(|(at, _)| *at < count && !has_lists(*at))
        .min_by_key(|(_, column)| cost(column));
    if found.is_none() && count > 0 {
        return Err(not_supported("All columns of the file have lists.".to_owned()));
    }
    Ok(found.map(|(at, _)| at))
}

/// Bytes that the largest group needs: its columns as they are in the file, and the dictionary and
/// a page of each out of their compression, twice for what the library keeps beside them.
fn needed(metadata: &ParquetMetaData, wanted: &[usize]) -> (u64, usize) {
    let (mut chunks, mut pages) = (0, 0);
    for group in metadata.row_groups() {
        let columns = || wanted.iter().filter_map(|at| group.columns().get(*at));
        let stored = columns().map(|column| u64::try_from(column.compressed_size()).unwrap_or(0));
        let whole = columns().map(|c| usize::try_from(c.uncompressed_size()).unwrap_or(usize::MAX));
        chunks = stored.fold(0, u64::saturating_add).max(chunks);
        pages =
            whole.map(|whole| whole.min(2 * PAGE_MAX)).fold(0, usize::saturating_add).max(pages);
    }
    let pages = pages.saturating_mul(2).saturating_add(PAGES_MIN);
    (chunks.min(GROUP_MAX), pages.min(PAGES_MAX))
}

/// Where the metadata is, from the last bytes of the file.
fn metadata_range(tail: &[u8], length: u64) -> Result<Range<u64>, Fault> {
    let Some((size, word)) = tail.split_first_chunk::<4>() else {
        return Err(malformed(&"it is too short"));
    };
    match word {
        b"PAR1" => {}
        b"PARE" => return Err(not_supported("The file is encrypted.".to_owned())),
        _ => return Err(malformed(&"it does not end in PAR1")),
    }
    let size = u64::from(u32::from_le_bytes(*size));
    let end = length - TAIL;
    let Some(start) = end.checked_sub(size).filter(|_| size > 0) else {
        return Err(malformed(&"its metadata is longer than it"));
    };
    if size > METADATA_MAX {
        return Err(not_supported(format!("Its metadata has more than {METADATA_MAX} bytes.")));
    }
    Ok(start..end)
}

/// The column of the file that a column of the statement is.
fn position(column: &Column, paths: &[Vec<String>]) -> Result<usize, Fault> {
    let is_it = |path: &Vec<String>| {
        let is_named = |(access, part): (&Access, &String)| access.is_named(part);
        path.len() == column.path.len() && column.path.iter().zip(path).all(is_named)
    };
    let ordinal = || column.ordinal().map(|ordinal| ordinal - 1).filter(|at| *at < paths.len());
    let missing = || {
        let text = format!("The file has no column {}.", column.written());
        Fault::fatal(INVALID_COLUMN_NAME, text, 0)
    };
    paths.iter().position(is_it).or_else(ordinal).ok_or_else(missing)
}

/// A row of a batch.
struct Record<'a> {
    leaves: &'a [Box<dyn Leaf>],
    row: usize,
    names: &'a [String],
    columns: &'a [usize],
    /// Bytes of the values that were examined. One of a dictionary may be large and in many rows.
    touched: Cell<usize>,
}

impl Record<'_> {
    fn touch(&self, leaf: &dyn Leaf) {
        self.touched.set(self.touched.get().saturating_add(leaf.size(self.row)));
    }
}

impl Row for Record<'_> {
    fn column(&self, column: usize) -> Result<Value<'_>, Trouble> {
        let leaf = &self.leaves[self.columns[column]];
        self.touch(leaf.as_ref());
        leaf.value(self.row)
    }
}

impl answer::Record for Record<'_> {
    fn all(
        &self,
        each: &mut dyn FnMut(&str, output::Cell<'_>) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        for (leaf, name) in self.leaves.iter().zip(self.names) {
            self.touch(leaf.as_ref());
            each(name, output::Cell::Value(leaf.value(self.row)?))?;
        }
        Ok(())
    }

    fn names(&self) -> Vec<Cow<'_, str>> {
        self.names.iter().map(|name| Cow::Borrowed(name.as_str())).collect()
    }
}
