//! S3's entity tag. It is of the content; Azure's ([`crate::types::Etag`]) is of the commit.
//!
//! Decision: ADR 0034.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::types::Crc64;
use crate::types::Etag;
use crate::types::Md5;

/// S3's `ETag`: 32 hexadecimal digits, and for content that was not uploaded in one piece a hyphen
/// and a number. Clients assume that the digits are the MD5 of the content if and only if there is
/// no number. Source: S3, "Object", `ETag`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ContentEtag {
    digits: [u8; 16],
    /// The number after the hyphen, at least 1.
    number: Option<u32>,
}

impl ContentEtag {
    /// The tag of content with this MD5.
    #[must_use]
    pub const fn md5(md5: Md5) -> Self {
        Self { digits: *md5.as_bytes(), number: None }
    }

    /// The tag of an upload in `parts` parts. `md5` is of the MD5s of the parts.
    #[must_use]
    pub fn parts(md5: Md5, parts: u32) -> Self {
        Self::opaque(*md5.as_bytes(), parts)
    }

    /// A tag whose digits are no MD5. It always has a number: `number`, or 1 if that is 0.
    #[must_use]
    pub fn opaque(digits: [u8; 16], number: u32) -> Self {
        Self { digits, number: Some(number.max(1)) }
    }

    /// A tag for content of which no MD5 is known: from its checksum and its length, in bytes.
    #[must_use]
    pub fn of_checksum(crc64: Crc64, len: u64, number: u32) -> Self {
        Self::opaque(halves(crc64.to_be_bytes(), len.to_be_bytes()), number)
    }

    /// A tag for content of which neither an MD5 nor another checksum is known: from the last
    /// commit, and the length in bytes. It also changes with properties and metadata.
    #[must_use]
    pub fn of_commit(etag: Etag, len: u64, number: u32) -> Self {
        Self::opaque(halves(etag.to_be_bytes(), len.to_be_bytes()), number)
    }

    /// Parses a tag, quoted or not. `None` if this server cannot have returned it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bare = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text);
        let (hex, number) = match bare.split_once('-') {
            None => (bare, None),
            Some((hex, number)) => (hex, Some(number)),
        };
        let is_hex = hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if hex.len() != 32 || !is_hex {
            return None;
        }
        let digits = u128::from_str_radix(hex, 16).ok()?.to_be_bytes();
        let number = match number {
            None => None,
            // Only as it is written: digits without a sign and without zeros before them.
            Some(text) if text.starts_with(|first: char| ('1'..='9').contains(&first)) => {
                Some(text.parse().ok()?)
            }
            Some(_) => return None,
        };
        Some(Self { digits, number })
    }

    /// The MD5 of the content, if the tag is one.
    #[must_use]
    pub const fn as_md5(&self) -> Option<Md5> {
        match self.number {
            None => Some(Md5::from_bytes(self.digits)),
            Some(_) => None,
        }
    }

    /// The digits, as bytes.
    pub(super) const fn digits(&self) -> &[u8; 16] {
        &self.digits
    }

    /// The number after the hyphen: how many parts the content was uploaded in, if that is known.
    #[must_use]
    pub const fn number(&self) -> Option<u32> {
        self.number
    }
}

fn halves(first: [u8; 8], second: [u8; 8]) -> [u8; 16] {
    let whole = u128::from(u64::from_be_bytes(first)) << 64;
    (whole | u128::from(u64::from_be_bytes(second))).to_be_bytes()
}

impl fmt::Display for ContentEtag {
    /// Without quotes; headers add them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.digits))?;
        self.number.map_or(Ok(()), |number| write!(f, "-{number}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Timestamp;

    #[test]
    fn tags_are_shown_and_read_as_s3_writes_them() {
        let md5 = Md5::of(b"");
        let of = |tag: ContentEtag| tag.to_string();
        assert_eq!(of(ContentEtag::md5(md5)), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(of(ContentEtag::parts(md5, 7)), "d41d8cd98f00b204e9800998ecf8427e-7");
        assert_eq!(of(ContentEtag::opaque([1; 16], 0)), "01010101010101010101010101010101-1");
        for tag in [
            ContentEtag::md5(md5),
            ContentEtag::parts(md5, 10_000),
            ContentEtag::opaque([0; 16], u32::MAX),
        ] {
            assert_eq!(ContentEtag::parse(&tag.to_string()), Some(tag));
            assert_eq!(ContentEtag::parse(&format!("\"{tag}\"")), Some(tag));
        }
        assert_eq!(ContentEtag::md5(md5).as_md5(), Some(md5));
        assert_eq!(ContentEtag::parts(md5, 1).as_md5(), None);
    }

    #[test]
    fn other_texts_are_no_tags() {
        let hex = "d41d8cd98f00b204e9800998ecf8427e";
        for text in [
            "",
            "*",
            "0x8DE0000000000",
            "\"",
            &hex[1..],
            &hex.to_uppercase(),
            &format!("+{}", &hex[1..]),
            &format!("{hex}0"),
            &format!("{hex}-"),
            &format!("{hex}-0"),
            &format!("{hex}-01"),
            &format!("{hex}-+1"),
            &format!("{hex}-1-1"),
            &format!("{hex}-4294967296"),
            &format!("W/\"{hex}\""),
            &format!("\"{hex}"),
        ] {
            assert_eq!(ContentEtag::parse(text), None, "{text}");
        }
    }

    #[test]
    fn tags_without_a_digest_differ_when_the_content_does() {
        let of = |bytes: &[u8]| ContentEtag::of_checksum(Crc64::of(bytes), bytes.len() as u64, 1);
        assert_eq!(of(b"one"), of(b"one"));
        assert_ne!(of(b"one"), of(b"two"));
        assert_ne!(of(b""), of(b"\0"));
        let at = |ticks| Etag::from_commit(Timestamp::from_ticks(ticks));
        assert_ne!(ContentEtag::of_commit(at(1), 1, 1), ContentEtag::of_commit(at(2), 1, 1));
        assert!(of(b"one").to_string().ends_with("-1"));
    }
}
