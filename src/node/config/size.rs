//! Sizes, as users write them, such as `64MiB`.

use std::fmt;
use std::str::FromStr;

use parse_size::Config;
use serde::Deserialize;
use thiserror::Error;

/// The units of a shown size, the largest first.
const UNITS: [(u64, &str); 5] =
    [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "")];

/// A number of bytes. Read from `64MiB` or `64M` (units of 1,024), `64MB` (units of 1,000) or a
/// plain number of bytes; shown in the largest unit of 1,024 that keeps it exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "Written")]
pub struct Size(u64);

/// Not a size.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a size: write 64MiB, 64M, 64MB (units of 1000) or a number of bytes")]
pub struct SizeError(String);

/// A size in the configuration file.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a size such as \"64MiB\", or a number of bytes")]
enum Written {
    Bytes(u64),
    Text(String),
}

impl Size {
    /// A size of `bytes`.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// The size in few digits, rounded down.
    #[must_use]
    pub fn rounded(self) -> String {
        let large = UNITS.into_iter().find(|(unit, _)| self.0 / unit >= 10);
        match large {
            None | Some((1, _)) => format!("{}B", self.0),
            Some((unit, name)) => format!("{}{name}", self.0 / unit),
        }
    }
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        // As in GNU programs: only a B directly behind the letter means units of 1,000.
        let lower = text.to_ascii_lowercase();
        let thousands = lower.ends_with('b') && !lower.ends_with("ib");
        let config = if thousands { Config::new() } else { Config::new().with_binary() };
        config.parse_size(text.trim()).map(Self).map_err(|_| SizeError(text.to_owned()))
    }
}

impl TryFrom<Written> for Size {
    type Error = SizeError;

    fn try_from(written: Written) -> Result<Self, SizeError> {
        match written {
            Written::Bytes(bytes) => Ok(Self(bytes)),
            Written::Text(text) => text.parse(),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = UNITS.into_iter().find(|(unit, _)| self.0 > 0 && self.0.is_multiple_of(*unit));
        let (unit, name) = exact.unwrap_or((1, ""));
        write!(f, "{}{name}", self.0 / unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown_exactly() {
        for (text, bytes, shown) in [
            ("0", 0, "0"),
            ("1000", 1000, "1000"),
            ("1024", 1024, "1KiB"),
            ("64MiB", 64 << 20, "64MiB"),
            ("64M", 64 << 20, "64MiB"),
            ("64m", 64 << 20, "64MiB"),
            ("64 mib", 64 << 20, "64MiB"),
            ("64MB", 64_000_000, "62500KiB"),
            ("1.5GiB", 3 << 29, "1536MiB"),
            ("3T", 3 << 40, "3TiB"),
            ("18446744073709551615", u64::MAX, "18446744073709551615"),
        ] {
            let size: Size = text.parse().unwrap();
            assert_eq!((size.bytes(), size.to_string().as_str()), (bytes, shown), "{text}");
            assert_eq!(size.to_string().parse(), Ok(size), "what is shown is read");
        }
    }

    #[test]
    fn rounded_sizes_are_short() {
        for (bytes, shown) in [
            (0, "0B"),
            (10_239, "10239B"),
            (10_240, "10KiB"),
            (12_345_678, "11MiB"),
            (12_345_678_901, "11GiB"),
            (u64::MAX, "16777215TiB"),
        ] {
            assert_eq!(Size::new(bytes).rounded(), shown);
        }
    }

    #[test]
    fn nonsense_is_refused_with_examples() {
        for text in ["", "M", "MiB", "-1", "0x40", "64MiBs", "64 furlongs", "17E", "∞"] {
            let refused = text.parse::<Size>().unwrap_err().to_string();
            assert!(
                refused.contains(&format!("`{text}`")) && refused.contains("64MiB"),
                "{refused}"
            );
        }
    }

    #[test]
    fn file_has_numbers_or_texts() {
        #[derive(Debug, Deserialize)]
        struct File {
            size: Size,
        }
        let of = |value: &str| toml::from_str::<File>(&format!("size = {value}"));
        assert_eq!(of("1_048_576").unwrap().size, Size::new(1 << 20));
        assert_eq!(of("'1M'").unwrap().size, Size::new(1 << 20));
        for wrong in ["-1", "true", "1.5", "'much'"] {
            let refused = of(wrong).unwrap_err().to_string();
            assert!(refused.contains("64MiB") && refused.contains("size ="), "{refused}");
        }
    }
}
