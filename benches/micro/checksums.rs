//! Checksums per MiB, a cost of every byte that is written or read.

use blockyard::types::ChunkCipher;
use blockyard::types::ChunkWriter;
use blockyard::types::Crc32c;
use blockyard::types::CustomerKey;
use blockyard::types::KeyedNonce;
use blockyard::types::MD5_BATCH_MAX;
use blockyard::types::Md5Batch;
use blockyard::types::Md5Stream;
use bytes::Bytes;
use divan::Bencher;
use divan::counter::BytesCount;
use md5::Digest;
use md5::Md5;

const BYTES: usize = 1 << 20;

/// CRC-32C, computed for every frame at ingest and at every read.
#[divan::bench]
fn crc32c_mib(bencher: Bencher<'_, '_>) {
    let bytes = vec![7_u8; BYTES];
    bencher.counter(BytesCount::new(BYTES)).bench(|| Crc32c::of(divan::black_box(&bytes)));
}

/// CRC-64/NVME, the Blob service's own checksum.
#[divan::bench]
fn crc64_mib(bencher: Bencher<'_, '_>) {
    let bytes = vec![7_u8; BYTES];
    bencher
        .counter(BytesCount::new(BYTES))
        .bench(|| crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, divan::black_box(&bytes)));
}

/// MD5, which Put Blob computes for every blob.
#[divan::bench]
fn md5_mib(bencher: Bencher<'_, '_>) {
    let bytes = vec![7_u8; BYTES];
    bencher.counter(BytesCount::new(BYTES)).bench(|| Md5::digest(divan::black_box(&bytes)));
}

/// The same bytes as 16 messages in a batch, as bodies that arrive at the same time are hashed.
#[divan::bench]
fn md5_batch_mib(bencher: Bencher<'_, '_>) {
    let bytes = vec![7_u8; BYTES];
    let batch = Md5Batch::new().expect("the library is right on this processor");
    bencher.counter(BytesCount::new(BYTES)).bench(|| {
        let mut streams = vec![Md5Stream::default(); MD5_BATCH_MAX];
        let pieces = divan::black_box(&bytes).chunks(BYTES / MD5_BATCH_MAX);
        batch.update(&mut streams.iter_mut().zip(pieces).collect::<Vec<_>>());
        streams
    });
}

fn customer_key() -> (CustomerKey, KeyedNonce) {
    let text = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let key = CustomerKey::from_base64(text).expect("base64 of 32 bytes");
    let nonce = key.keyed_nonce([1; 16]);
    (key, nonce)
}

fn cipher() -> ChunkCipher {
    let (key, nonce) = customer_key();
    key.chunks(&nonce, BYTES as u64).expect("the nonce is of the key")
}

/// Decryption in counter mode, of content of earlier releases under a customer-provided key.
#[divan::bench]
fn customer_key_counter_mode_mib(bencher: Bencher<'_, '_>) {
    let (bytes, (key, nonce)) = (vec![7_u8; BYTES], customer_key());
    bencher
        .counter(BytesCount::new(BYTES))
        .bench(|| key.cipher(&nonce).map(|mut cipher| cipher.apply(0, divan::black_box(&bytes))));
}

/// Encryption of content under a customer-provided key.
#[divan::bench]
fn customer_key_encrypt_mib(bencher: Bencher<'_, '_>) {
    let bytes = vec![7_u8; BYTES];
    bencher.counter(BytesCount::new(BYTES)).bench(|| {
        let mut writer = ChunkWriter::new(cipher());
        (writer.push(divan::black_box(&bytes)), writer.finish())
    });
}

/// Decryption of such content.
#[divan::bench]
fn customer_key_decrypt_mib(bencher: Bencher<'_, '_>) {
    let mut writer = ChunkWriter::new(cipher());
    let mut encrypted = writer.push(&[7_u8; BYTES]);
    encrypted.extend(writer.finish());
    let encrypted = [Bytes::from(encrypted.concat())];
    let all = 0..BYTES as u64;
    bencher
        .counter(BytesCount::new(BYTES))
        .bench(|| cipher().decrypt(&all, divan::black_box(&encrypted)));
}
