//! Permission letters of shared access signatures.

use std::fmt;

/// Every letter the service knows, in the order it asks for: read, add, create, write, delete,
/// delete version, permanent delete, list, tags, find by tags, move, execute, ownership,
/// permissions, immutability; update and process are of queues.
const ORDER: &[u8] = b"racwdxyltfmeopiu";

/// A set of permission letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SasPermissions(u32);

impl SasPermissions {
    /// No letter.
    pub const NONE: Self = Self(0);
    /// Every letter.
    pub const ALL: Self = Self((1 << ORDER.len()) - 1);

    /// Letters as written, in any order; `None` when one is unknown.
    #[must_use]
    pub const fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let (mut bits, mut at) = (0, 0);
        while at < bytes.len() {
            match bit(bytes[at]) {
                Some(bit) => bits |= bit,
                None => return None,
            }
            at += 1;
        }
        Some(Self(bits))
    }

    /// Letters of a table in code.
    ///
    /// # Panics
    /// When a letter is unknown; in a constant that is an error of the compiler's.
    #[must_use]
    pub const fn of(text: &str) -> Self {
        match Self::parse(text) {
            Some(letters) => letters,
            None => panic!("an unknown permission letter"),
        }
    }

    /// Whether one of `others` is among these.
    #[must_use]
    pub const fn any(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }

    /// Whether each of `others` is among these; true when there are none.
    #[must_use]
    pub const fn all(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Whether there is no letter.
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
    let mut at = 0;
    while at < ORDER.len() {
        if ORDER[at] == letter {
            return Some(1 << at);
        }
        at += 1;
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
