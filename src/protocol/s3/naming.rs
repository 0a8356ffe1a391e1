//! S3's rules of bucket names. They are checked only when a request creates a bucket: S3 requests
//! can read, change and delete a container of any name.
//!
//! Source: S3 User Guide, "General purpose bucket naming rules". [`ContainerName`] has the rules of
//! length, characters and IP addresses.

use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::types::ContainerName;

/// Reserved prefixes of bucket names.
const PREFIXES: &[&str] = &["xn--", "sthree-", "amzn-s3-demo-"];
/// Reserved suffixes of bucket names.
const SUFFIXES: &[&str] = &["-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3"];

/// Checks the name of a new bucket.
///
/// # Errors
/// `InvalidResourceName`.
pub(super) fn bucket(name: &ContainerName) -> Result<(), Refusal> {
    let name = name.as_str();
    let is_reserved = name.starts_with('$')
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || SUFFIXES.iter().any(|suffix| name.ends_with(suffix));
    if is_reserved { Err(Reason::InvalidResourceName.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_legal(name: &str) -> bool {
        ContainerName::new(name).is_ok_and(|name| bucket(&name).is_ok())
    }

    #[test]
    fn buckets_have_names_of_s3() {
        for name in ["abc", "a.b.c", "a--b", "1a-2", "0.0.0", "x.s3alias", &"k".repeat(63)] {
            assert!(is_legal(name), "{name}");
        }
        let long = "k".repeat(64);
        for name in [
            "ab",
            long.as_str(),
            "Abc",
            "a_b",
            "-abc",
            "abc-",
            ".abc",
            "abc.",
            "a..b",
            "192.168.5.4",
            "xn--abc",
            "sthree-abc",
            "amzn-s3-demo-bucket",
            "abc-s3alias",
            "abc--ol-s3",
            "abc.mrap",
            "abc--x-s3",
            "abc--table-s3",
            "$web",
            "$root",
            "\u{e4}bc",
        ] {
            assert!(!is_legal(name), "{name}");
        }
    }
}
