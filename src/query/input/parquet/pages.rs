//! The pages of a column, one at a time.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::column::page::PageMetadata;
use parquet::column::page::PageReader;
use parquet::errors::ParquetError;
use parquet::errors::Result;
use parquet::file::metadata::ColumnChunkMetaData;

use crate::query::input::parquet::codec;
use crate::query::input::parquet::header;
use crate::query::input::parquet::header::Header;
use crate::query::input::parquet::header::Kind;
use crate::query::input::parquet::header::RLE;

/// Bytes of a page out of its compression. Programs write pages of about 1 MiB.
pub(crate) const PAGE_MAX: usize = 16 << 20;
/// The most bytes of all pages in memory.
pub(crate) const PAGES_MAX: usize = 128 << 20;
/// Bytes that a value of a dictionary takes in memory beside those of its page.
const ENTRY: usize = 48;

/// The memory that the pages of all columns share.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    used: Arc<AtomicUsize>,
    max: usize,
}

impl Budget {
    /// A memory of `max` bytes.
    pub(crate) fn new(max: usize) -> Self {
        Self { used: Arc::default(), max }
    }

    fn take(&self, size: usize) -> Result<()> {
        let used = self.used.fetch_add(size, Ordering::Relaxed).saturating_add(size);
        if used > self.max {
            let text = format!("its pages need more than {} bytes at once", self.max);
            return Err(ParquetError::General(text));
        }
        Ok(())
    }
}

/// Reads the pages of a column.
#[derive(Debug)]
pub(crate) struct Pages {
    rest: Bytes,
    codec: Compression,
    budget: Budget,
    /// The budget that is reserved for the last page of data.
    held: usize,
    /// Rows that were not in a page yet.
    rows: u64,
    has_dictionary: bool,
    has_nulls: bool,
}

fn wrong<T>(text: &str) -> Result<T> {
    Err(ParquetError::General(text.to_owned()))
}

/// Encodings that are decoded. One is left out because each of its values may repeat the one before
/// it: a small page could take any amount of memory.
fn encoding(number: i64) -> Result<Encoding> {
    Ok(match number {
        0 => Encoding::PLAIN,
        2 => Encoding::PLAIN_DICTIONARY,
        3 => Encoding::RLE,
        5 => Encoding::DELTA_BINARY_PACKED,
        6 => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        8 => Encoding::RLE_DICTIONARY,
        9 => Encoding::BYTE_STREAM_SPLIT,
        7 => return wrong("the encoding DELTA_BYTE_ARRAY is not supported"),
        _ => return wrong("an encoding is not known"),
    })
}

/// How many values a page of lengths says that it has: the third number in front of it.
fn count_of_lengths(mut bytes: &[u8]) -> Option<u64> {
    let mut number = 0;
    for _ in 0..3 {
        (number, bytes) = varint(bytes)?;
    }
    Some(number)
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (at, byte) in bytes.iter().enumerate().take(9) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if *byte < 0x80 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}

impl Pages {
    pub(crate) fn new(
        bytes: Bytes,
        column: &ColumnChunkMetaData,
        budget: Budget,
        rows: u64,
    ) -> Self {
        Self {
            rest: bytes,
            codec: column.compression(),
            budget,
            held: 0,
            rows,
            has_dictionary: false,
            has_nulls: column.column_descr().max_def_level() > 0,
        }
    }

    /// The body of a page out of its compression. The levels of a page of the second version are
    /// never compressed.
    fn body(&self, header: &Header, body: &Bytes) -> Result<Bytes> {
        let plain = match header.kind {
            Kind::DataV2 { levels, .. } => levels,
            Kind::Data | Kind::Index | Kind::Dictionary => 0,
        };
        if plain > body.len() || plain > header.decompressed {
            return wrong("a page is smaller than its levels");
        }
        let (levels, values) = body.split_at(plain);
        let size = header.decompressed - plain;
        if !header.is_compressed || self.codec == Compression::UNCOMPRESSED {
            return if values.len() == size {
                Ok(body.clone())
            } else {
                wrong("a page is cut off")
            };
        }
        if size == 0 && values.is_empty() {
            return Ok(body.clone());
        }
        let Some(values) = codec::decompress(self.codec, values, size) else {
            return wrong("a page cannot be decompressed");
        };
        Ok(if levels.is_empty() { values.into() } else { [levels, &values].concat().into() })
    }

    /// The next page, which may be one without values for us.
    fn next_page(&mut self) -> Result<Option<Page>> {
        let Some(header) = header::parse(&self.rest) else {
            return wrong("a header of a page cannot be read");
        };
        if header.decompressed > PAGE_MAX {
            let text = format!("a page is larger than {PAGE_MAX} bytes");
            return Err(ParquetError::General(text));
        }
        let end = header.length.saturating_add(header.compressed);
        if end > self.rest.len() {
            return wrong("a page is cut off");
        }
        let body = self.rest.slice(header.length..end);
        self.rest = self.rest.slice(end..);
        if header.kind == Kind::Index {
            return Ok(None);
        }
        let is_dictionary = header.kind == Kind::Dictionary;
        if is_dictionary {
            let entries = usize::try_from(header.values).unwrap_or(usize::MAX);
            if std::mem::replace(&mut self.has_dictionary, true) || entries > header.decompressed {
                return wrong("a dictionary is not one");
            }
            self.budget.take(header.decompressed + entries.saturating_mul(ENTRY))?;
        } else {
            let Some(rows) = self.rows.checked_sub(u64::from(header.values)) else {
                return wrong("a column has more values than rows");
            };
            self.rows = rows;
            // Some programs name another encoding where there are no levels.
            if header.kind == Kind::Data && self.has_nulls && header.levels != RLE {
                return wrong("the encoding BIT_PACKED of levels is not supported");
            }
            self.budget.used.fetch_sub(self.held, Ordering::Relaxed);
            self.held = header.decompressed;
            self.budget.take(self.held)?;
        }
        let buf = self.body(&header, &body)?;
        page(&header, buf).map(Some)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.held, Ordering::Relaxed);
    }
}

/// The page for the decoder.
fn page(header: &Header, buf: Bytes) -> Result<Page> {
    let (num_values, encoding) = (header.values, encoding(header.encoding)?);
    let is_lengths = encoding == Encoding::DELTA_LENGTH_BYTE_ARRAY;
    Ok(match header.kind {
        Kind::Dictionary => {
            Page::DictionaryPage { buf, num_values, encoding: Encoding::PLAIN, is_sorted: false }
        }
        Kind::DataV2 { levels, nulls, rows, repetition, definition } => {
            if is_lengths {
                check_lengths(&buf[levels..], num_values)?;
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                num_nulls: nulls,
                num_rows: rows,
                def_levels_byte_len: definition,
                rep_levels_byte_len: repetition,
                is_compressed: false,
                statistics: None,
            }
        }
        Kind::Data | Kind::Index => {
            if is_lengths {
                return wrong("the encoding DELTA_LENGTH_BYTE_ARRAY is not supported in old pages");
            }
            Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            }
        }
    })
}

/// The decoder makes room for as many lengths as a page says that it has.
fn check_lengths(bytes: &[u8], values: u32) -> Result<()> {
    match count_of_lengths(bytes) {
        Some(count) if count <= u64::from(values) => Ok(()),
        _ => wrong("a page has more lengths than values"),
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        while !self.rest.is_empty() && self.rows > 0 {
            if let Some(page) = self.next_page()? {
                return Ok(Some(page));
            }
        }
        Ok(None)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        wrong("pages are read one after the other")
    }

    fn skip_next_page(&mut self) -> Result<()> {
        wrong("pages are read one after the other")
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        // There are no lists, so each value is a record.
        Ok(true)
    }
}
