//! Compression of pages. No more is given back than the header of the page says.
//!
//! Zstandard and Brotli also keep the end of their output, as much as a window has. That of
//! Zstandard is made as large as the page, that of Brotli has 16 MiB at most.

use std::io::Read;

use parquet::basic::Compression;
use ruzstd::decoding::BlockDecodingStrategy;
use ruzstd::decoding::FrameDecoder;

use crate::query::input::parquet::zstd::BLOCK_MAX;
use crate::query::input::parquet::zstd::Lengths;

/// The first bits of Brotli with a window of more than the 16 MiB that its standard allows.
const LARGE_WINDOW: u8 = 0x11;
/// The first bytes of a frame of Zstandard.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The kind of a block of Zstandard that is neither stored nor one byte again and again.
const COMPRESSED: u32 = 2;

/// Decompresses bytes; `None` if the result is not exactly `size` bytes.
pub(crate) fn decompress(codec: Compression, bytes: &[u8], size: usize) -> Option<Vec<u8>> {
    match codec {
        Compression::UNCOMPRESSED => (bytes.len() == size).then(|| bytes.to_vec()),
        Compression::SNAPPY => {
            if snap::raw::decompress_len(bytes).ok()? != size {
                return None;
            }
            let mut out = vec![0; size];
            let written = snap::raw::Decoder::new().decompress(bytes, &mut out).ok()?;
            (written == size).then_some(out)
        }
        Compression::GZIP(_) => all(flate2::read::MultiGzDecoder::new(bytes), size),
        Compression::BROTLI(_) => brotli(bytes, size),
        Compression::ZSTD(_) => zstd(bytes, size),
        Compression::LZ4_RAW => lz4(bytes, size),
        Compression::LZ4 => framed_lz4(bytes, size).or_else(|| lz4(bytes, size)),
        Compression::LZO => None,
    }
}

/// Reads exactly `size` bytes, and checks that no more follow.
fn all(reader: impl Read, size: usize) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(size);
    reader.take(size as u64 + 1).read_to_end(&mut out).ok()?;
    (out.len() == size).then_some(out)
}

fn brotli(bytes: &[u8], size: usize) -> Option<Vec<u8>> {
    if bytes.first()? & 0x7f == LARGE_WINDOW {
        return None;
    }
    all(brotli_decompressor::Decompressor::new(bytes, 4096), size)
}

/// Where the blocks of a frame of Zstandard begin, and whether its checksum follows them. `None` if
/// it needs a dictionary.
fn zstd_blocks(bytes: &[u8]) -> Option<(&[u8], bool)> {
    let [descriptor, rest @ ..] = bytes.strip_prefix(&ZSTD)? else { return None };
    let is_single = descriptor & 0x20 != 0;
    let window = usize::from(!is_single);
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size = [usize::from(is_single), 2, 4, 8][usize::from(descriptor >> 6)];
    let numbers = rest.get(window..window + dictionary)?;
    let blocks = rest.get(window + dictionary + size..)?;
    numbers.iter().all(|byte| *byte == 0).then_some((blocks, descriptor & 4 != 0))
}

/// A frame names the window that it needs, which may be 100 MiB for a page of a few KiB, and the
/// decoder returns nothing before that is full. So the frame gets a header with a window of the
/// size of the page: no text can reach back further. Excess output is detected after each block.
fn zstd(bytes: &[u8], size: usize) -> Option<Vec<u8>> {
    let (mut blocks, has_checksum) = zstd_blocks(bytes)?;
    let mut header = ZSTD.to_vec();
    header.push(if has_checksum { 0xe4 } else { 0xe0 });
    header.extend((size as u64).to_le_bytes());
    let mut decoder = FrameDecoder::new();
    decoder.init(header.as_slice()).ok()?;
    let mut lengths = Lengths::default();
    while !decoder.is_finished() {
        let header = u32::from_le_bytes([*blocks.first()?, *blocks.get(1)?, *blocks.get(2)?, 0]);
        let stored = usize::try_from(header >> 3).ok()?;
        if header >> 1 & 3 == COMPRESSED
            && lengths.of_block(blocks.get(3..3 + stored)?)? > BLOCK_MAX
        {
            return None;
        }
        decoder.decode_blocks(&mut blocks, BlockDecodingStrategy::UptoBlocks(1)).ok()?;
        if !decoder.is_finished() && decoder.can_collect() > 0 {
            return None;
        }
    }
    let is_whole = decoder.can_collect() == size;
    if is_whole { decoder.collect() } else { None }
}

fn lz4(bytes: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut out = vec![0; size];
    let written = lz4_flex::block::decompress_into(bytes, &mut out).ok()?;
    (written == size).then_some(out)
}

/// Blocks as Hadoop writes them: the length of the text and that of the block before each.
fn framed_lz4(mut bytes: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let (lengths, rest) = bytes.split_first_chunk::<8>()?;
        let length = |at: usize| {
            let of = [lengths[at], lengths[at + 1], lengths[at + 2], lengths[at + 3]];
            usize::try_from(u32::from_be_bytes(of)).ok()
        };
        let (text, block) = (length(0)?, length(4)?);
        if text > size - out.len() {
            return None;
        }
        let (block, rest) = rest.split_at_checked(block)?;
        out.append(&mut lz4(block, text)?);
        bytes = rest;
    }
    (out.len() == size).then_some(out)
}
