//! The rows of accounts, read past partitions that do not serve.

use crate::frontend::accounts::Unread;
use crate::frontend::route::Router;
use crate::index::AccountRecord;
use crate::index::Error;
use crate::index::ListAccounts;
use crate::index::Read;
use crate::index::ReadReply;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::ContainerId;
use crate::types::KeyRange;
use crate::types::RoutingKey;

/// Accounts read at a time.
const PAGE: usize = 1000;

/// What was found of the rows of accounts.
#[derive(Debug, Default)]
pub struct AccountRows {
    /// Names and records, in name order within a range that was read.
    pub rows: Vec<(AccountName, AccountRecord)>,
    /// Where more may be.
    pub unread: Vec<Unread>,
}

impl AccountRows {
    /// The keys of all accounts.
    #[must_use]
    pub fn table() -> KeyRange {
        RoutingKey::container_range(AccountId::new(0), ContainerId::new(0))
    }

    /// Reads the rows of a range.
    ///
    /// # Errors
    /// The index's, but for outages: they are noted as unread.
    pub async fn read(&mut self, router: &Router, range: &KeyRange) -> Result<(), Error> {
        let mut next = Some(range.low().as_bytes().clone());
        while let Some(from) = next.filter(|from| range.contains(from)) {
            let list = ListAccounts { from: Some(from.clone()), limit: PAGE };
            let page = match router.read(&list.position(), Read::Accounts(list)).await {
                Ok(ReadReply::Accounts(page)) => page,
                Ok(_) => return Err(mismatched()),
                Err(error) if error.is_outage() => {
                    let rest = KeyRange::new(RoutingKey::from_bytes(from), range.high().cloned());
                    let unread = part_of_one(router, &rest, &error)?;
                    next = unread.keys.high().map(|high| high.as_bytes().clone());
                    self.unread.push(unread);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let rows = page.entries.into_iter().filter_map(|(name, record)| {
                let Ok(name) = AccountName::new(&name) else {
                    tracing::error!(name, "the row of an account has no valid name: left out");
                    return None;
                };
                let is_in = range.contains(RoutingKey::account(&name).as_bytes());
                is_in.then_some((name, record))
            });
            self.rows.extend(rows);
            next = page.next;
        }
        Ok(())
    }
}

/// The first part of `keys` that one partition has, which failed with `error`.
///
/// # Errors
/// [`Error::WrongPartition`] when no partition has them.
pub fn part_of_one(router: &Router, keys: &KeyRange, error: &Error) -> Result<Unread, Error> {
    let map = router.map();
    let owner = map.owner(keys.low().as_bytes());
    let (partition, keys) = owner
        .and_then(|owner| Some((owner.id, owner.keys.range().intersect(keys)?)))
        .ok_or(Error::WrongPartition)?;
    tracing::debug!(%partition, ?keys, %error, "accounts cannot be read");
    Ok(Unread { keys, partition })
}

fn mismatched() -> Error {
    Error::Unavailable("an answer of another kind".to_owned())
}
