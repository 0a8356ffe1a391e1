//! Which account, bucket and key a URL names.

use crate::protocol::model::Address;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::s3::routes::Level;
use crate::protocol::wire::percent::decode;

/// The longest key that S3 makes, bytes of UTF-8. Blob may make longer ones, which S3 reads, lists
/// and deletes.
pub(super) const KEY_BYTES_MAX: usize = 1_024;
const SERVICE: &str = "s3";

/// The account, bucket and key that host and path of a request name, before the account is looked
/// up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Address {
    /// The account that the host names.
    pub account: Option<String>,
    /// The bucket.
    pub bucket: Option<String>,
    /// The key, as it is: never normalised.
    pub key: Option<String>,
    /// Whether the host names the bucket.
    pub is_virtual_hosted: bool,
}

impl S3Address {
    /// The level that the URL names.
    #[must_use]
    pub const fn level(&self) -> Level {
        match (&self.bucket, &self.key) {
            (None, _) => Level::Service,
            (Some(_), None) => Level::Bucket,
            (Some(_), Some(_)) => Level::Object,
        }
    }
}

/// The account and the bucket, if any, that a host name below one of the domains contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Named<'a> {
    account: Option<&'a str>,
    bucket: Option<&'a str>,
}

/// Checks the key of a request that makes an object.
///
/// # Errors
/// `OutOfRangeInput` when it is longer than 1,024 bytes.
pub(super) fn check_made(address: &Address) -> Result<(), Refusal> {
    if is_long(address) { Err(Reason::OutOfRangeInput.into()) } else { Ok(()) }
}

fn is_long(address: &Address) -> bool {
    address.blob.as_ref().is_some_and(|blob| blob.as_str().len() > KEY_BYTES_MAX)
}

/// Explains the refusal of a missing object if its key is one that S3 cannot make.
#[must_use]
pub fn explain_missing(refusal: Refusal, address: impl FnOnce() -> Option<Address>) -> Refusal {
    let is_missing = refusal.reason == Reason::BlobNotFound;
    let is_long = is_missing && address().as_ref().is_some_and(is_long);
    if is_long { Reason::OutOfRangeInput.into() } else { refusal }
}

/// Whether a host is one of S3: `s3.DOMAIN`, `BUCKET.s3.DOMAIN`, `s3.ACCOUNT.DOMAIN` or
/// `BUCKET.s3.ACCOUNT.DOMAIN`.
#[must_use]
pub fn is_s3_host(host: &str, domains: &[String]) -> bool {
    named(host, domains).is_some()
}

/// Reads host and path. Hosts that [`is_s3_host`] does not accept are path-style.
///
/// The key is percent-decoded once. `+` is a plus, and no slash is removed.
///
/// # Errors
/// `InvalidUri` when escapes are broken or the key is not UTF-8.
pub fn address(host: &str, path: &str, domains: &[String]) -> Result<S3Address, Refusal> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let named = named(host, domains).unwrap_or(Named { account: None, bucket: None });
    let (bucket, key) = match named.bucket {
        Some(bucket) => (Some(bucket.to_owned()), path),
        None => {
            let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
            let bucket = decode(bucket).ok_or(Reason::InvalidUri)?;
            (Some(bucket).filter(|bucket| !bucket.is_empty()), key)
        }
    };
    let key = decode(key).ok_or(Reason::InvalidUri)?;
    if bucket.is_none() && !key.is_empty() {
        return Err(Refusal::from(Reason::InvalidUri).message("The URL has a key but no bucket."));
    }
    Ok(S3Address {
        account: named.account.map(str::to_ascii_lowercase),
        bucket,
        key: Some(key).filter(|key| !key.is_empty()),
        is_virtual_hosted: named.bucket.is_some(),
    })
}

fn named<'a>(host: &'a str, domains: &[String]) -> Option<Named<'a>> {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let name = name.strip_suffix('.').unwrap_or(name);
    domains.iter().find_map(|domain| below(name, domain)).and_then(split)
}

/// The part of a host name before `.DOMAIN`.
fn below<'a>(name: &'a str, domain: &str) -> Option<&'a str> {
    let (above, end) = name.split_at_checked(name.len().checked_sub(domain.len())?)?;
    if !end.eq_ignore_ascii_case(domain) {
        return None;
    }
    above.strip_suffix('.').filter(|above| !above.is_empty())
}

/// `s3`, `BUCKET.s3`, `s3.ACCOUNT` or `BUCKET.s3.ACCOUNT`.
fn split(labels: &str) -> Option<Named<'_>> {
    let service = |labels: &str| {
        let (bucket, last) = match labels.rsplit_once('.') {
            Some((bucket, last)) => (Some(bucket), last),
            None => (None, labels),
        };
        last.eq_ignore_ascii_case(SERVICE).then(|| bucket.map(str::len))
    };
    let bucket_in = |len: Option<usize>| len.and_then(|len| labels.get(..len));
    if let Some(bucket) = service(labels) {
        return Some(Named { account: None, bucket: bucket_in(bucket) });
    }
    let (rest, account) = labels.rsplit_once('.')?;
    service(rest).map(|bucket| Named { account: Some(account), bucket: bucket_in(bucket) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(host: &str, path: &str) -> Result<S3Address, Refusal> {
        address(host, path, &["localhost".to_owned(), "store.example".to_owned()])
    }

    fn three(host: &str, path: &str) -> (Option<String>, Option<String>, Option<String>) {
        let S3Address { account, bucket, key, .. } = of(host, path).unwrap();
        (account, bucket, key)
    }

    fn some(text: &str) -> Option<String> {
        (!text.is_empty()).then(|| text.to_owned())
    }

    #[test]
    fn hosts_name_bucket_and_account() {
        for (host, account, bucket) in [
            ("s3.localhost", "", ""),
            ("S3.LOCALHOST:9000", "", ""),
            ("s3.store.example.", "", ""),
            ("photos.s3.localhost:9000", "", "photos"),
            ("a.dotted.bucket.s3.localhost", "", "a.dotted.bucket"),
            ("s3.acme.localhost", "acme", ""),
            ("photos.s3.acme.store.example", "acme", "photos"),
            ("a.b.s3.acme.localhost", "acme", "a.b"),
            ("x.s3.y.s3.localhost", "", "x.s3.y"),
        ] {
            assert!(is_s3_host(host, &["localhost".to_owned(), "store.example".to_owned()]));
            assert_eq!(three(host, "/"), (some(account), some(bucket), None), "{host}");
        }
        for host in ["localhost", "127.0.0.1:9000", "[::1]:9000", "acme.blob.localhost", "s3.other"]
        {
            assert!(!is_s3_host(host, &["localhost".to_owned()]), "{host}");
            assert_eq!(three(host, "/photos/a"), (None, some("photos"), some("a")), "{host}");
        }
    }

    #[test]
    fn keys_are_what_the_path_says() {
        for (path, bucket, key) in [
            ("/", "", ""),
            ("", "", ""),
            ("/photos", "photos", ""),
            ("/photos/", "photos", ""),
            ("/photos/a", "photos", "a"),
            ("/photos/a/", "photos", "a/"),
            ("/photos//a", "photos", "/a"),
            ("/photos/a//b", "photos", "a//b"),
            ("/photos/a/../b/./c", "photos", "a/../b/./c"),
            ("/photos/a+b%2Bc%20d", "photos", "a+b+c d"),
            ("/photos/%2F%E2%82%AC", "photos", "/\u{20ac}"),
        ] {
            assert_eq!(three("localhost", path), (None, some(bucket), some(key)), "{path}");
            let below = path.strip_prefix("/photos").unwrap_or("/");
            assert_eq!(three("photos.s3.localhost", below).2, some(key), "{below}");
        }
        let deep = "d/".repeat(300);
        assert_eq!(three("localhost", &format!("/b/{deep}")).2, some(&deep));
    }

    #[test]
    fn broken_urls_are_refused() {
        for path in ["/b/%", "/b/%2", "/b/%zz", "/b/%ff", "/%ff/a", "//a"] {
            assert_eq!(of("localhost", path).unwrap_err().reason, Reason::InvalidUri, "{path}");
        }
    }
}
