//! Ranges, in pages at one revision.

use bytes::Bytes;

use super::super::api::Error;
use super::super::api::Revision;
use super::super::api::Snapshot;
use super::super::api::Versioned;
use super::client::Client;
use super::client::Repeat;
use super::keys::Keys;
use super::keys::end_of;
use super::keys::next_of;
use super::meaning::Meaning;
use super::meaning::meaning;
use super::meaning::of_read;
use super::wire::RangeRequest;

/// The most keys of a page. If they are too large for one answer, the page becomes smaller.
const PAGE_KEYS: i64 = 512;
/// How often a range is tried, if its revision is compacted before its last page.
const TRIES_MAX: usize = 3;

/// Reads all keys under a prefix at one revision.
///
/// # Errors
/// [`Error::Unavailable`], [`Error::Corrupt`].
pub(super) async fn range(client: &Client, keys: &Keys, prefix: &[u8]) -> Result<Snapshot, Error> {
    for _ in 0..TRIES_MAX {
        match once(client, keys, prefix).await {
            Err(Error::Compacted) => {}
            done => return done,
        }
    }
    let reason = "etcd is compacted faster than a range is read";
    Err(Error::Unavailable { reason: reason.into() })
}

async fn once(client: &Client, keys: &Keys, prefix: &[u8]) -> Result<Snapshot, Error> {
    let prefix = keys.outer(prefix);
    let range_end = end_of(&prefix);
    let (mut key, mut revision, mut limit) = (prefix, 0, PAGE_KEYS);
    let mut entries: Vec<(Bytes, Versioned)> = Vec::new();
    loop {
        let (key_now, range_end) = (key.clone(), range_end.clone());
        let page = RangeRequest { key: key_now, range_end, limit, revision, count_only: false };
        let page = match client.call(&page, Repeat::Harmless).await {
            Ok(page) => page,
            Err(error) if meaning(&error) == Meaning::TooLarge && limit > 1 => {
                limit /= 2;
                continue;
            }
            Err(error) => return Err(of_read(&error)),
        };
        let newest = client.note(page.header);
        if revision == 0 {
            revision = newest;
        }
        if let Some(last) = page.kvs.last() {
            key = next_of(&last.key);
        } else if page.more {
            let reason = "etcd answered an empty page that is not the last one";
            return Err(Error::Unavailable { reason: reason.into() });
        }
        for kv in page.kvs {
            let Some(key) = keys.inner(&kv.key) else {
                let reason = "etcd answered a foreign key";
                return Err(Error::Unavailable { reason: reason.into() });
            };
            let mod_revision = Revision(u64::try_from(kv.mod_revision).unwrap_or(0));
            entries.push((key, Versioned { value: kv.value, mod_revision }));
        }
        if !page.more {
            let revision = Revision(u64::try_from(revision).unwrap_or(0));
            return Ok(Snapshot { revision, entries });
        }
    }
}
