//! Names of blobs and names of files: which of the one can be the other.

use std::fmt::Write;
use std::path::Path;
use std::path::PathBuf;

use crate::types::Md5;

/// The prefix of the names of unfinished downloads.
const UNFINISHED: &str = ".blockyard-";
/// Bytes of a name in a folder that common file systems take.
const SEGMENT_BYTES_MAX: usize = 255;
/// Characters of the name of a blob. Source: "Naming and referencing containers, blobs, and
/// metadata".
const CHARACTERS_MAX: usize = 1024;

/// The path below a folder for the name of a blob. The name comes from the server, which may be
/// hostile: no path leaves the folder.
///
/// # Errors
/// Why the name can be no file here.
pub(super) fn safe_path(folder: &Path, name: &str) -> Result<PathBuf, &'static str> {
    let mut path = folder.to_owned();
    for segment in name.split('/') {
        match segment {
            "" if name.starts_with('/') => return Err("it is absolute"),
            "" => return Err("it has an empty part between or behind slashes"),
            "." | ".." => return Err("it has a part that is . or .."),
            segment if segment.contains('\0') => return Err("it has a NUL character"),
            segment if segment.len() > SEGMENT_BYTES_MAX => {
                return Err("a part of it is longer than 255 bytes");
            }
            segment if is_unfinished(segment) => {
                return Err("it is like the file of an unfinished download");
            }
            segment if cfg!(windows) && is_special_on_windows(segment) => {
                return Err("Windows takes no such name");
            }
            segment => path.push(segment),
        }
    }
    Ok(path)
}

/// Separators, streams, devices and names whose end Windows cuts off.
fn is_special_on_windows(segment: &str) -> bool {
    let stem = segment.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let numbered = |name: &str| {
        let rest = stem.strip_prefix(name);
        rest.is_some_and(|rest| rest.len() == 1 && rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    segment.contains(|c: char| c < ' ' || "\\:*?\"<>|".contains(c))
        || segment.ends_with(['.', ' '])
        || ["CON", "PRN", "AUX", "NUL"].contains(&stem.as_str())
        || numbered("COM")
        || numbered("LPT")
}

/// Whether a name in a folder is one of an unfinished download.
pub(super) fn is_unfinished(segment: &str) -> bool {
    segment.starts_with(UNFINISHED)
}

/// The name of a blob for a path below a folder.
///
/// # Errors
/// Why the path can be no blob.
pub(super) fn blob_name(below: &Path) -> Result<String, &'static str> {
    let mut name = String::new();
    for part in below.components() {
        let part = part.as_os_str().to_str().ok_or("its name is not UTF-8")?;
        if !name.is_empty() {
            name.push('/');
        }
        name.push_str(part);
    }
    if name.encode_utf16().count() > CHARACTERS_MAX {
        return Err("its name is longer than 1,024 characters");
    }
    Ok(name)
}

/// The files beside a target in which an unfinished download is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unfinished {
    /// The bytes that have come.
    pub(super) part: PathBuf,
    /// Which of them.
    pub(super) note: PathBuf,
}

impl Unfinished {
    /// Those of a target. They have short names: the target's own may be as long as names can be.
    pub(super) fn of(target: &Path) -> Self {
        let name = target.file_name().unwrap_or_default().as_encoded_bytes();
        let mut hex = String::new();
        for byte in Md5::of(name).as_bytes().iter().take(8) {
            write!(hex, "{byte:02x}").expect("a String takes everything");
        }
        let beside = |ending: &str| target.with_file_name(format!("{UNFINISHED}{hex}.{ending}"));
        Self { part: beside("part"), note: beside("note") }
    }
}

/// The last part of a name.
pub(super) fn last_part(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leaves_the_folder() {
        let folder = Path::new("/home/me/in");
        for name in [
            "/etc/passwd",
            "..",
            "../up",
            "a/../../up",
            "a/./b",
            "a//b",
            "a/",
            "",
            "//x",
            "a\0b",
            ".blockyard-0011223344556677.note",
            "a/.blockyard-x/b",
        ] {
            assert!(safe_path(folder, name).is_err(), "{name:?}");
        }
        assert!(safe_path(folder, &"n".repeat(256)).is_err());
        for name in ["a", "a/b c", "..a/b..", "...", ".hidden", "ü/日本", "a\\..\\b", "-rf", "~"]
        {
            let path = safe_path(folder, name);
            if cfg!(unix) {
                assert_eq!(path, Ok(folder.join(name)), "{name:?}");
            }
        }
    }

    #[test]
    fn names_that_windows_takes_otherwise_are_known() {
        for name in
            ["a\\..\\b", "c:x", "a?", "nul", "NUL.txt", "com1", "LPT9.x", "end.", "end ", "a\u{1}"]
        {
            assert!(is_special_on_windows(name), "{name}");
        }
        for name in ["a", "null", "com", "com10", ".x", "a b"] {
            assert!(!is_special_on_windows(name), "{name}");
        }
    }

    #[test]
    fn blobs_are_named_with_slashes() {
        assert_eq!(blob_name(Path::new("a/b c/d")).unwrap(), "a/b c/d");
        assert!(blob_name(Path::new(&"n/".repeat(513))).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn names_that_are_no_text_are_refused() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        assert!(blob_name(Path::new(OsStr::from_bytes(b"a/\xff"))).is_err());
    }

    #[test]
    fn unfinished_downloads_are_beside_the_target_under_short_names() {
        let long = "n".repeat(255);
        let one = Unfinished::of(Path::new("/in/a"));
        let other = Unfinished::of(&Path::new("/in").join(long));
        assert_ne!(one, other);
        for path in [&one.part, &one.note, &other.part, &other.note] {
            assert_eq!(path.parent(), Some(Path::new("/in")));
            let name = path.file_name().and_then(|name| name.to_str()).unwrap();
            assert!(is_unfinished(name) && name.len() < 40, "{name}");
        }
    }
}
