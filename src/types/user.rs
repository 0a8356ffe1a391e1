//! Users of accounts, and the ids of their access keys.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::types::AccountName;
use crate::types::NameError;

/// The issuer that role assignments of users name in the place of an issuer of tokens. No issuer of
/// tokens can have this name: it would have to be an https URL.
pub const USER_ISSUER: &str = "blockyard:user";

/// The name of a user of an account: 1 to 64 letters, digits and `+=,.@_-` of ASCII. Source: IAM,
/// "IAM and AWS STS quotas".
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Box<str>")]
pub struct UserName(Box<str>);

impl UserName {
    /// Checks `text`.
    ///
    /// # Errors
    /// [`NameError`].
    pub fn new(text: &str) -> Result<Self, NameError> {
        Self::check(text).map(|()| Self(text.into()))
    }

    fn check(text: &str) -> Result<(), NameError> {
        if !(1..=64).contains(&text.len()) {
            return Err(NameError::Length);
        }
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"+=,.@_-".contains(&b);
        if text.bytes().all(is_plain) { Ok(()) } else { Err(NameError::Invalid) }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The id of a user's access key: 3 to 128 letters, digits, hyphens, dots and underscores of ASCII.
/// It is not an account name: an account's name is the id of the key of its root.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Box<str>")]
pub struct AccessKeyId(Box<str>);

impl AccessKeyId {
    /// The prefix of generated ids.
    pub const BEGIN: &str = "BY";
    /// Random bytes of which an id is generated: 90 bits are used.
    pub const RANDOM_BYTES: usize = 18;

    /// Checks `text`.
    ///
    /// # Errors
    /// [`NameError`].
    pub fn new(text: &str) -> Result<Self, NameError> {
        Self::check(text).map(|()| Self(text.into()))
    }

    /// A new id of 20 upper-case letters and digits, as long as those of AWS.
    #[must_use]
    pub fn of_random(bytes: [u8; Self::RANDOM_BYTES]) -> Self {
        Self(spelled_id(Self::BEGIN, &bytes).into())
    }

    fn check(text: &str) -> Result<(), NameError> {
        if !(3..=128).contains(&text.len()) {
            return Err(NameError::Length);
        }
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        if !text.bytes().all(is_plain) || AccountName::new(text).is_ok() {
            return Err(NameError::Invalid);
        }
        Ok(())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Text that begins with `begin`, then one upper-case letter or digit for 5 bits of each byte.
#[must_use]
pub fn spelled_id(begin: &str, bytes: &[u8]) -> String {
    let symbol = |byte: &u8| match byte & 31 {
        letter @ 0..=25 => char::from(b'A' + letter),
        digit => char::from(b'2' + digit - 26),
    };
    begin.chars().chain(bytes.iter().map(symbol)).collect()
}

macro_rules! texts {
    ($($name:ident),*) => {$(
        impl TryFrom<Box<str>> for $name {
            type Error = NameError;

            fn try_from(text: Box<str>) -> Result<Self, NameError> {
                Self::check(&text).map(|()| Self(text))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

texts!(UserName, AccessKeyId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_what_iam_permits() {
        for good in ["a", "Alice.B+c=d,e@f_g-h", &"x".repeat(64)] {
            assert_eq!(UserName::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "a/b", "a b", "a:b", "\u{e4}", &"x".repeat(65)] {
            assert!(UserName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ids_of_keys_are_no_names_of_accounts() {
        for good in ["AKI", "minio-admin", "a.b", "GK31c2f218a2e44f485b94239e", &"x".repeat(128)] {
            assert_eq!(AccessKeyId::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "AB", "devstoreaccount1", "a/b", "A B", "A:B", "A,B", &"X".repeat(129)] {
            assert!(AccessKeyId::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn generated_ids_are_long_and_plain() {
        let id = AccessKeyId::of_random([255; AccessKeyId::RANDOM_BYTES]);
        assert_eq!(id.as_str(), "BY777777777777777777");
        assert_eq!(spelled_id("X", &[0, 25, 26, 31, 32]), "XAZ27A");
        assert!(AccessKeyId::new(id.as_str()).is_ok());
    }
}
