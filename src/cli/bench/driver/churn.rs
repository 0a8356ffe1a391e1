//! Writes, reads, deletes and lists names that only one connection uses, and compares their
//! content. Any answer that is wrong for a store with one writer is a failure.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::call::Call;
use super::client::Client;
use super::data::pick;
use super::shared::Shared;

/// Names of one connection.
const NAMES: u64 = 40;
/// Largest body.
const LARGEST: u64 = 6_000;
/// Names in a page: few, so that lists have many pages.
const PAGE: u32 = 7;

/// The content of a connection's names.
#[derive(Debug)]
pub(super) struct Holdings {
    prefix: String,
    blobs: BTreeMap<String, (String, Bytes)>,
}

impl Holdings {
    /// The names of the connection with this number.
    pub(super) fn new(place: usize) -> Self {
        Self { prefix: format!("{place:03}/"), blobs: BTreeMap::new() }
    }
}

/// Makes one call, which its number determines, and checks the answer.
///
/// # Errors
/// The server refused, or the answer differs from what was written.
pub(super) async fn step(
    client: &mut Client,
    shared: &Shared,
    number: u64,
    own: &mut Holdings,
) -> Result<(), String> {
    let name = format!("{}{:04}", own.prefix, pick(number, NAMES));
    match pick(!number, 100) {
        0..40 => {
            let body = shared.pool.body(number, pick(number << 1, LARGEST) as usize + 1);
            // Until the answer the content of the name is unknown.
            own.blobs.remove(&name);
            let put = Call::Put { name: name.clone(), body: body.clone(), signed: false };
            let tag = client.call(&put).await?.tag;
            own.blobs.insert(name, (tag, body));
        }
        40..65 => get(client, own, name).await?,
        65..75 => head(client, own, name).await?,
        75..88 => {
            if own.blobs.remove(&name).is_some() {
                client.call(&Call::Delete { name }).await?;
            } else {
                missing(client, Call::Delete { name }).await?;
            }
        }
        _ => list(client, own).await?,
    }
    Ok(())
}

/// Lists and reads all names again.
///
/// # Errors
/// As of [`step`].
pub(super) async fn last(client: &mut Client, own: &Holdings) -> Result<(), String> {
    list(client, own).await?;
    for name in own.blobs.keys() {
        get(client, own, name.clone()).await?;
    }
    Ok(())
}

async fn get(client: &mut Client, own: &Holdings, name: String) -> Result<(), String> {
    let Some((tag, body)) = own.blobs.get(&name) else {
        return missing(client, Call::Get { name, from: None, expect: Bytes::new() }).await;
    };
    let call = Call::Get { name: name.clone(), from: None, expect: body.clone() };
    let found = client.call(&call).await?.tag;
    if found == *tag { Ok(()) } else { Err(format!("other tag of {name}: {found}, not {tag}")) }
}

async fn head(client: &mut Client, own: &Holdings, name: String) -> Result<(), String> {
    let Some((tag, body)) = own.blobs.get(&name) else {
        return missing(client, Call::Head { name }).await;
    };
    let found = client.call(&Call::Head { name: name.clone() }).await?;
    if found.tag != *tag || found.length != Some(body.len() as u64) {
        return Err(format!("other properties of {name}: {found:?}, not {tag} of {}", body.len()));
    }
    Ok(())
}

/// Checks that the name does not exist.
async fn missing(client: &mut Client, call: Call) -> Result<(), String> {
    match client.call(&call).await {
        Ok(_) if !client.target.misses(&call) => Ok(()),
        Err(error) if error.starts_with("404") => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(format!("found what was deleted: {call:?}")),
    }
}

/// Lists all names of the connection and checks them and their order.
async fn list(client: &mut Client, own: &Holdings) -> Result<(), String> {
    let mut found = Vec::new();
    let mut marker = None;
    loop {
        let call = Call::List { prefix: own.prefix.clone(), limit: PAGE, marker };
        let page = client.call(&call).await?;
        found.extend(client.target.entries(&page.page));
        marker = page.marker;
        if marker.is_none() {
            break;
        }
    }
    let plain = |tag: &str| tag.trim_matches('"').to_owned();
    let wanted = own.blobs.iter().map(|(name, (tag, _))| (name.clone(), plain(tag)));
    if wanted.eq(found.iter().map(|(name, tag)| (name.clone(), plain(tag)))) {
        return Ok(());
    }
    Err(format!("wrong list of {}; {} names, not {}", own.prefix, found.len(), own.blobs.len()))
}
