//! The permissions of shared access signatures, written as letters.

use std::fmt;

/// All letters of the service, in the order that it requires: read, add, create, write, delete,
/// delete version, permanent delete, list, tags, find by tags, move, execute, ownership,
/// permissions, immutability. Update and process are permissions of queues.
const ORDER: &[u8] = b"racwdxyltfmeopiu";

/// A set of permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SasPermissions(u32);

impl SasPermissions {
    /// No permission.
    pub const NONE: Self = Self(0);
    /// All permissions.
    pub const ALL: Self = Self((1 << ORDER.len()) - 1);

    /// Reads letters in any order; `None` when one is unknown.
    #[must_use]
    pub const fn parse(text: &str) -> Option<Self> {
        let (mut bits, mut rest) = (0, text.as_bytes());
        while let Some((&letter, others)) = rest.split_first() {
            match bit(letter) {
                Some(bit) => bits |= bit,
                None => return None,
            }
            rest = others;
        }
        Some(Self(bits))
    }

    /// Reads letters of a constant.
    ///
    /// # Panics
    /// When a letter is unknown: in a constant this is a compile error.
    #[must_use]
    pub const fn of(text: &str) -> Self {
        match Self::parse(text) {
            Some(letters) => letters,
            None => panic!("an unknown permission letter"),
        }
    }

    /// Whether it contains one of `others`.
    #[must_use]
    pub const fn any(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }

    /// Whether it contains all of `others`.
    #[must_use]
    pub const fn all(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Whether it is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for SasPermissions {
    /// In the service's order.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &letter in ORDER.iter().filter(|&&letter| bit(letter).is_some_and(|b| self.0 & b != 0))
        {
            write!(f, "{}", char::from(letter))?;
        }
        Ok(())
    }
}

const fn bit(letter: u8) -> Option<u32> {
    let (mut bit, mut rest) = (1, ORDER);
    while let Some((&first, others)) = rest.split_first() {
        if first == letter {
            return Some(bit);
        }
        (bit, rest) = (bit << 1, others);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_a_set_in_the_order_of_the_service() {
        let letters = SasPermissions::parse("lwr").unwrap();
        assert_eq!(letters.to_string(), "rwl");
        assert!(letters.any(SasPermissions::of("dw")) && !letters.any(SasPermissions::of("dc")));
        assert!(letters.all(SasPermissions::of("rl")) && !letters.all(SasPermissions::of("rd")));
        assert!(letters.all(SasPermissions::NONE) && !letters.any(SasPermissions::NONE));
        assert_eq!(SasPermissions::ALL.to_string(), "racwdxyltfmeopiu");
    }

    #[test]
    fn unknown_letters_are_refused() {
        for text in ["R", "rz", "r w", "r,w", "é", "%72"] {
            assert_eq!(SasPermissions::parse(text), None, "{text}");
        }
        assert_eq!(SasPermissions::parse(""), Some(SasPermissions::NONE));
    }
}
