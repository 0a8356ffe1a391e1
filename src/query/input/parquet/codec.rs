//! Compression of pages. No more is written than the header of the page says.

use std::io::Read;

use parquet::basic::Compression;

/// Takes bytes out of their compression; `None` if they do not become exactly so many.
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
        Compression::BROTLI(_) => all(brotli_decompressor::Decompressor::new(bytes, 4096), size),
        Compression::ZSTD(_) => all(ruzstd::decoding::StreamingDecoder::new(bytes).ok()?, size),
        Compression::LZ4_RAW => lz4(bytes, size),
        Compression::LZ4 => framed_lz4(bytes, size).or_else(|| lz4(bytes, size)),
        Compression::LZO => None,
    }
}

/// Reads exactly so many bytes, and looks whether there is one more.
fn all(reader: impl Read, size: usize) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(size);
    reader.take(size as u64 + 1).read_to_end(&mut out).ok()?;
    (out.len() == size).then_some(out)
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
