//! Checksums per MiB: what every byte pays on its way in and out.

use blockyard::types::crc32c;
use divan::Bencher;
use divan::counter::BytesCount;
use md5::Digest;
use md5::Md5;

const BYTES: usize = 1 << 20;

/// CRC-32C, taken of every frame at ingest and again at every read.
#[divan::bench]
fn crc32c_mib(bencher: Bencher<'_, '_>) {
    let bytes = vec![7_u8; BYTES];
    bencher.counter(BytesCount::new(BYTES)).bench(|| crc32c(divan::black_box(&bytes)));
}

/// CRC-64/NVME, the Blob service's own checksum.
#[divan::bench]
fn crc64_mib(bencher: Bencher<'_, '_>) {
    let bytes = vec![7_u8; BYTES];
    bencher
        .counter(BytesCount::new(BYTES))
        .bench(|| crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, divan::black_box(&bytes)));
}

/// MD5, which Put Blob owes every blob.
#[divan::bench]
fn md5_mib(bencher: Bencher<'_, '_>) {
    let bytes = vec![7_u8; BYTES];
    bencher.counter(BytesCount::new(BYTES)).bench(|| Md5::digest(divan::black_box(&bytes)));
}
