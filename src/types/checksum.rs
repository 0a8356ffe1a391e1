//! Checksums of content: CRC-32C on disk, CRC-64/NVME and MD5 for the protocols.
//!
//! The only file that names `md5`, and with `content_hasher.rs` `crc_fast`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crc_fast::{CrcAlgorithm, Digest as CrcDigest};
use md5::Digest;
use serde::{Deserialize, Serialize};

/// CRC-32C (Castagnoli), the checksum of everything that this program writes to a disk.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Crc32c(u32);

impl Crc32c {
    /// The checksum of no bytes.
    pub const EMPTY: Self = Self(0);

    /// Wraps a checksum read from disk.
    #[must_use]
    pub const fn new(value: u32) -> Self {
        Self(value)
    }

    /// The bare number, for encoding.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The checksum of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(narrow(crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes)))
    }

    /// The checksum of a concatenation, from the checksums of both parts and the length of the
    /// second. Takes well under a microsecond; `crc_fast` takes 10 or more, which was visible in
    /// profiles of small writes.
    #[must_use]
    pub fn combine(self, second: Self, second_len: u64) -> Self {
        if self == Self::EMPTY {
            return second;
        }
        Self(CRC32C.combine(self.0, second.0, second_len))
    }
}

const CRC32C: Polynomial32 = Polynomial32::new(0x82F6_3B78);

/// The polynomial of a CRC of 32 bits, and the powers that combine checksums.
pub(super) struct Polynomial32 {
    /// The polynomial, with the lowest power in the highest bit, as in the checksums.
    polynomial: u32,
    /// `x^(8 * 2^n)` modulo the polynomial.
    powers: [u32; 64],
}

impl Polynomial32 {
    pub(super) const fn new(polynomial: u32) -> Self {
        let mut powers = [1 << (31 - 8); 64];
        let mut n = 1;
        while n < powers.len() {
            powers[n] = multiply32(powers[n - 1], powers[n - 1], polynomial);
            n += 1;
        }
        Self { polynomial, powers }
    }

    /// The checksum of a concatenation. Appending `length` zero bytes to the first part multiplies
    /// its checksum by x^(8 * length), with one factor for each bit of the length.
    pub(super) fn combine(&self, first: u32, second: u32, second_len: u64) -> u32 {
        let mut shifted = first;
        for (bit, power) in self.powers.iter().enumerate() {
            if second_len >> bit & 1 == 1 {
                shifted = multiply32(*power, shifted, self.polynomial);
            }
        }
        shifted ^ second
    }
}

/// The product of two polynomials over GF(2), modulo that of the CRC.
const fn multiply32(a: u32, mut b: u32, polynomial: u32) -> u32 {
    let mut product = 0;
    let mut bit = 1 << 31;
    while bit != 0 {
        // Masks instead of branches, since the bits are unpredictable.
        product ^= b & 0_u32.wrapping_sub((a & bit != 0) as u32);
        b = (b >> 1) ^ (polynomial & 0_u32.wrapping_sub(b & 1));
        bit >>= 1;
    }
    product
}

fn narrow(crc: u64) -> u32 {
    u32::try_from(crc).expect("a CRC-32 fits 32 bits")
}

/// CRC-32C of bytes that are added piece by piece.
#[derive(Debug)]
pub struct Crc32cHasher(CrcDigest);

impl Default for Crc32cHasher {
    fn default() -> Self {
        Self(CrcDigest::new(CrcAlgorithm::Crc32Iscsi))
    }
}

impl Crc32cHasher {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of everything added.
    #[must_use]
    pub fn finish(&self) -> Crc32c {
        Crc32c(narrow(self.0.finalize()))
    }
}

/// CRC-64/NVME, as in `x-ms-content-crc64`, which has the base64 of the little-endian bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crc64(u64);

impl Crc64 {
    /// The checksum of no bytes.
    pub const EMPTY: Self = Self(0);

    /// The checksum of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(crc_fast::checksum(CrcAlgorithm::Crc64Nvme, bytes))
    }

    /// The checksum of a concatenation. [`Crc64Combiner`] is faster for many parts of one length.
    #[must_use]
    pub fn combine(self, second: Self, second_len: u64) -> Self {
        Crc64Combiner::default().combine(self, second, second_len)
    }

    /// Reads the header value; `None` unless it is base64 of 8 bytes.
    #[must_use]
    pub fn from_base64(text: &str) -> Option<Self> {
        let bytes: [u8; 8] = STANDARD.decode(text).ok()?.try_into().ok()?;
        Some(Self(u64::from_le_bytes(bytes)))
    }

    /// The checksum with these bytes, little endian.
    #[must_use]
    pub const fn from_le_bytes(bytes: [u8; 8]) -> Self {
        Self(u64::from_le_bytes(bytes))
    }

    /// Its bytes, little endian.
    #[must_use]
    pub const fn to_le_bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }

    /// The checksum with these bytes, big endian.
    #[must_use]
    pub const fn from_be_bytes(bytes: [u8; 8]) -> Self {
        Self(u64::from_be_bytes(bytes))
    }

    /// Its bytes, big endian, as in `x-amz-checksum-crc64nvme`.
    #[must_use]
    pub const fn to_be_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// The header value.
    #[must_use]
    pub fn to_base64(self) -> String {
        STANDARD.encode(self.0.to_le_bytes())
    }
}

/// Combines checksums of parts and keeps the factor of the last length. The blocks of a blob mostly
/// have one length, so a list of 50,000 is combined in milliseconds. (`crc_fast` takes 10 us or
/// more for each.)
#[derive(Debug, Default)]
pub struct Crc64Combiner {
    /// The last length and `x^(8 * length)` modulo the polynomial.
    last: Option<(u64, u64)>,
}

impl Crc64Combiner {
    /// The checksum of a concatenation.
    pub fn combine(&mut self, first: Crc64, second: Crc64, second_len: u64) -> Crc64 {
        let shift = match self.last {
            Some((len, shift)) if len == second_len => shift,
            _ => power_of_256(second_len),
        };
        self.last = Some((second_len, shift));
        Crc64(multiply(shift, first.0) ^ second.0)
    }
}

/// The polynomial of CRC-64/NVME, with the lowest power in the highest bit, as in the checksums.
const CRC64_POLYNOMIAL: u64 = 0x9A6C_9329_AC4B_C9B5;
/// The polynomial 1.
const ONE: u64 = 1 << 63;
/// `x^(2^n)` modulo the polynomial; 8 times a 64-bit length needs n up to 66.
const POWERS: [u64; 67] = {
    let mut powers = [1 << 62; 67];
    let mut n = 1;
    while n < powers.len() {
        powers[n] = multiply(powers[n - 1], powers[n - 1]);
        n += 1;
    }
    powers
};

/// The product of two polynomials over GF(2), modulo the CRC's.
const fn multiply(a: u64, mut b: u64) -> u64 {
    let mut product = 0;
    let mut bit = ONE;
    while bit != 0 {
        if a & bit != 0 {
            product ^= b;
        }
        b = (b >> 1) ^ (CRC64_POLYNOMIAL & (b & 1).wrapping_neg());
        bit >>= 1;
    }
    product
}

/// `x^(8 * len)`: appending `len` bytes multiplies by it.
fn power_of_256(len: u64) -> u64 {
    let bits = POWERS.iter().skip(3).enumerate();
    let wanted = bits.filter(|(n, _)| len >> n & 1 == 1);
    wanted.fold(ONE, |product, (_, power)| multiply(*power, product))
}

/// CRC-64/NVME of bytes that are added piece by piece.
#[derive(Debug)]
pub struct Crc64Hasher(CrcDigest);

impl Default for Crc64Hasher {
    fn default() -> Self {
        Self(CrcDigest::new(CrcAlgorithm::Crc64Nvme))
    }
}

impl Crc64Hasher {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of everything added.
    #[must_use]
    pub fn finish(&self) -> Crc64 {
        Crc64(self.0.finalize())
    }
}

/// An MD5 digest, as in `Content-MD5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Md5([u8; 16]);

impl Md5 {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(md5::Md5::digest(bytes).into())
    }

    /// The digest with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Reads the header value; `None` unless it is base64 of 16 bytes.
    #[must_use]
    pub fn from_base64(text: &str) -> Option<Self> {
        Some(Self(STANDARD.decode(text).ok()?.try_into().ok()?))
    }

    /// The header value.
    #[must_use]
    pub fn to_base64(self) -> String {
        STANDARD.encode(self.0)
    }
}

/// MD5 of bytes that are added piece by piece. It takes about 2 ms of processor time per MiB, so it
/// is computed only where the protocol demands it.
#[derive(Debug, Default)]
pub struct Md5Hasher(md5::Md5);

impl Md5Hasher {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of everything added.
    #[must_use]
    pub fn finish(self) -> Md5 {
        Md5(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests;
