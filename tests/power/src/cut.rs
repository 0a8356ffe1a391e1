//! How the power fails, and which changes survive.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::content::SECTOR_BYTES;

/// What survives of the changes that were not synced.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// Nothing.
    Forget,
    /// Of each file a prefix of the writes with the last one cut, or arbitrary sectors of all; of
    /// the names a prefix.
    Torn,
    /// Of files and names a random part, whatever was issued before it.
    Reordered,
}

impl Mode {
    #[cfg(test)]
    pub const ALL: [Self; 3] = [Self::Forget, Self::Torn, Self::Reordered];
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "forget" => Ok(Self::Forget),
            "torn" => Ok(Self::Torn),
            "reordered" => Ok(Self::Reordered),
            _ => Err(format!("no mode '{text}': forget, torn or reordered")),
        }
    }
}

/// What a power failure met.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Unsynced changes of files.
    pub changes: usize,
    /// How many of them survived; each sector of a torn write counts.
    pub survived: usize,
    /// Unsynced changes of names.
    pub names: usize,
    pub names_survived: usize,
    /// Files and folders that no name leads to any more.
    pub lost: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { changes, survived, names, names_survived, lost } = self;
        write!(f, "changes={changes} survived={survived} names={names} ")?;
        write!(f, "names_survived={names_survived} lost={lost}")
    }
}

/// The sectors of a write, as ranges of its bytes; the first and last may be a part of one.
pub fn sectors(offset: u64, bytes: &[u8]) -> Vec<Range<usize>> {
    let end = offset + bytes.len() as u64;
    let mut found = Vec::new();
    let mut at = offset;
    while at < end {
        let next = (at / SECTOR_BYTES + 1) * SECTOR_BYTES;
        let to = next.min(end);
        found.push((at - offset) as usize..(to - offset) as usize);
        at = to;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_aligned_on_the_disk() {
        assert_eq!(sectors(500, &[0; 600]), [0..12, 12..524, 524..600]);
        assert_eq!(sectors(512, &[0; 512]), vec![0..512]);
        assert!(sectors(7, &[]).is_empty());
    }
}
