//! Markers of lists: the key or common prefix after which the next page begins.
//!
//! A marker that is a common prefix or begins with one skips all of its keys, because the previous
//! page has shown it. This is not so for a page that ended among deleted keys. Its marker is the
//! last key that was passed, extended to be longer than any key. From such a marker the list
//! continues after that key, inside the common prefix.

use crate::protocol::model::operation::ListAfter;
use crate::protocol::s3::address::KEY_BYTES_MAX;

/// Separates the key from its extension. Neither is a character of text.
const END: char = '\u{10fffe}';
const FILL: char = '\u{10ffff}';

/// Where a list goes on after this marker.
pub(super) fn read(marker: &str) -> ListAfter {
    if marker.len() > KEY_BYTES_MAX
        && let Some(key) = marker.trim_end_matches(FILL).strip_suffix(END)
    {
        return ListAfter::Name(key.to_owned());
    }
    ListAfter::NameOrPrefix(marker.to_owned())
}

/// The marker of a page that ended behind a key that it does not show.
pub(super) fn passed(key: &str) -> String {
    let mut marker = format!("{key}{END}");
    while marker.len() <= KEY_BYTES_MAX {
        marker.push(FILL);
    }
    marker
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_were_passed_are_distinguished_from_keys_that_were_shown() {
        for key in ["", "a", "a/b", "a/\u{10fffe}", "a\u{10ffff}", &"k".repeat(1_024)] {
            assert_eq!(read(&passed(key)), ListAfter::Name(key.to_owned()), "{key}");
            assert_eq!(read(key), ListAfter::NameOrPrefix(key.to_owned()), "{key}");
        }
        let long = "k".repeat(2_000);
        assert_eq!(read(&long), ListAfter::NameOrPrefix(long.clone()));
    }
}
