//! Messages as bytes: each is decoded as it was sent, and other bytes are refused.

mod samples;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt::Debug;

use bytes::Bytes;
use serde::Deserializer;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::de::Error as _;
use serde::de::Visitor;
use serde::forward_to_deserialize_any;

use crate::index::api::weight::tests as weights;
use crate::index::api::*;
use crate::types::*;

type Failure = serde::de::value::Error;

/// Reads nothing: it notes which variants an enum has.
struct Variants<'a>(&'a Cell<&'static [&'static str]>);

impl<'de> Deserializer<'de> for Variants<'_> {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Failure> {
        Err(Failure::custom("not an enum"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Failure> {
        self.0.set(variants);
        Err(Failure::custom("noted"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// The names of all variants of an enum.
fn variants<T: DeserializeOwned>() -> &'static [&'static str] {
    let found = Cell::new([].as_slice());
    assert!(T::deserialize(Variants(&found)).is_err());
    found.get()
}

/// The value comes back whole. No beginning of its bytes is a value.
fn round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) -> Vec<u8> {
    let bytes = postcard::to_stdvec(value).unwrap();
    let back: T = postcard::from_bytes(&bytes).unwrap_or_else(|error| panic!("{error}: {value:?}"));
    assert!(back == *value, "{value:?} became {back:?}");
    assert_eq!(postcard::to_stdvec(&back).unwrap(), bytes, "{value:?}");
    // Large values have many beginnings, and decoding each takes long: some of them.
    let beginnings = (1_000_000 / bytes.len().max(1)).clamp(10, 1_000);
    for len in (0..bytes.len()).step_by(1 + bytes.len() / beginnings) {
        let cut = bytes.get(..len).unwrap();
        assert!(postcard::from_bytes::<T>(cut).is_err(), "{len} bytes of {value:?}");
    }
    bytes
}

/// The values come back, and there is one of each variant.
fn round_trips<T: Serialize + DeserializeOwned + PartialEq + Debug>(values: &[T]) {
    // The first byte is the number of the variant: no enum has more than 127.
    let seen: BTreeSet<u8> = values.iter().map(|value| round_trip(value)[0]).collect();
    let all = variants::<T>();
    let missing = (0_u8..).zip(all).filter(|(number, _)| !seen.contains(number));
    let missing: Vec<_> = missing.map(|(_, name)| name).collect();
    assert!(missing.is_empty() && !all.is_empty(), "no sample of {missing:?}");
}

#[test]
fn reads_and_their_answers_come_back_as_they_were() {
    round_trips(&samples::reads());
    round_trips(&samples::read_replies());
    round_trips(&samples::pieces());
}

#[test]
fn writes_and_their_answers_come_back_as_they_were() {
    let writes: Vec<Write> = weights::every_write().collect();
    round_trips(&writes);
    round_trips(&samples::account_changes());
    round_trips(&samples::contents());
    round_trips(&samples::write_replies());
    round_trips(&samples::lease_results());
}

#[test]
fn errors_come_back_as_they_were() {
    round_trips(&samples::errors());
    round_trips(&samples::refused());
    round_trips(&samples::damages());
    round_trips(&[Full::Disks, Full::Coordinator("no space".to_owned())]);
}

#[test]
fn target_comes_back_as_it_was() {
    let target =
        Target { partition: PartitionId::new(1), epoch: Epoch::new(2), host: HostId::new(3) };
    round_trip(&target);
}

/// Bytes that were changed on the way are some other message or none: they never cause a panic.
#[test]
fn changed_bytes_decode_to_something_or_nothing() {
    fn change<T: Serialize + DeserializeOwned>(values: &[T]) -> usize {
        let mut refused = 0;
        let mut random = 1_u64;
        for value in values {
            let bytes = postcard::to_stdvec(value).unwrap();
            for _ in 0..200 {
                let mut changed = bytes.clone();
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = usize::try_from(random >> 33).unwrap() % changed.len();
                changed[at] ^= 1 << (random >> 30 & 7);
                refused += usize::from(postcard::from_bytes::<T>(&changed).is_err());
            }
        }
        refused
    }
    assert!(change(&samples::reads()) > 0);
    assert!(change(&samples::read_replies()) > 0);
    assert!(change(&samples::write_replies()) > 0);
    assert!(change(&samples::errors()) > 0);
    assert!(change(&samples::small_writes()) > 0);
}

/// Content and pieces are encrypted once. A message that nests them would exhaust the stack.
#[test]
fn content_that_is_encrypted_twice_is_not_decoded() {
    let plain = NewContent::Inline(Bytes::from_static(b"x"));
    let once = NewContent::Encrypted(samples::NONCE, Box::new(plain));
    let twice = NewContent::Authenticated(samples::NONCE, Box::new(once.clone()));
    assert_eq!(postcard::from_bytes(&postcard::to_stdvec(&once).unwrap()), Ok(once));
    let bytes = postcard::to_stdvec(&twice).unwrap();
    assert!(postcard::from_bytes::<NewContent>(&bytes).is_err());
    let level = postcard::to_stdvec(&(3_u32, samples::NONCE)).unwrap();
    let deep = level.repeat(100_000);
    assert!(postcard::from_bytes::<NewContent>(&deep).is_err());

    let piece = Box::new(Piece::Inline(Bytes::from_static(b"x")));
    let once = Piece::Encrypted { nonce: samples::NONCE, at: 0, piece };
    let piece = Box::new(once.clone());
    let twice = Piece::Authenticated { nonce: samples::NONCE, len: 1, range: 0..1, piece };
    assert_eq!(postcard::from_bytes(&postcard::to_stdvec(&once).unwrap()), Ok(once));
    let bytes = postcard::to_stdvec(&twice).unwrap();
    assert!(postcard::from_bytes::<Piece>(&bytes).is_err());
    let level = postcard::to_stdvec(&(2_u32, samples::NONCE, 0_u64)).unwrap();
    assert!(postcard::from_bytes::<Piece>(&level.repeat(100_000)).is_err());
}

/// Metadata that no request could set is refused in a request. An answer may hold what a row of an
/// earlier release has.
#[test]
fn metadata_is_checked_in_requests_and_not_in_records() {
    let pairs = |name: &str| postcard::to_stdvec(&[(name, "v")].as_slice()).unwrap();
    let change = |name| postcard::from_bytes::<BlobChange>(&[vec![1], pairs(name)].concat());
    assert!(matches!(change("a").unwrap(), BlobChange::Metadata(set) if !set.is_empty()));
    assert!(change("a b").is_err());
    assert!(postcard::from_bytes::<Metadata>(&pairs("a b")).is_ok());
}

/// A name that no request could have does not get in through a message.
#[test]
fn message_with_a_bad_name_is_not_decoded() {
    let read = |name: &str| {
        let name: Box<str> = name.into();
        postcard::from_bytes::<Read>(&postcard::to_stdvec(&(0_u32, name)).unwrap())
    };
    assert_eq!(read("abc").unwrap(), Read::Account(AccountName::new("abc").unwrap()));
    assert!(read("a/c").is_err());
}
