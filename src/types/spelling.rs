//! Suggestions for misspelled words.

/// The word among `known` that needs the fewest changes of letters to become `word`.
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known.into_iter().min_by_key(|known| distance(known, word))
}

/// Whether a word may be a misspelling of another: at most one letter in four differs.
#[must_use]
pub fn resembles(word: &str, known: &str) -> bool {
    distance(known, word) <= (word.len() / 4).max(1)
}

/// How many letters must be added, removed or changed to turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_few_changes_resemble_each_other() {
        for (word, known, wanted) in [
            ("acount", "account", true),
            ("blob-lsten", "blob-listen", true),
            ("new", "key", false),
            ("queueCert", "queueHost", false),
        ] {
            assert_eq!(resembles(word, known), wanted, "{word}");
        }
    }

    #[test]
    fn nearest_word_is_found() {
        let known = ["GetBlob", "GetBlobTags", "PutBlob"];
        assert_eq!(nearest("PutBlub", known), Some("PutBlob"));
        assert_eq!(nearest("getblobtag", known), Some("GetBlobTags"));
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn distance_counts_letters() {
        for (a, b, expected) in [("", "abc", 3), ("abc", "abc", 0), ("kitten", "sitting", 3)] {
            assert_eq!((distance(a, b), distance(b, a)), (expected, expected));
        }
    }
}
