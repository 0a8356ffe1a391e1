//! Get and Set Blob Service Properties.

use crate::frontend::accounts::Account;
use crate::frontend::body::RequestBody;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::ingest;
use crate::frontend::ops;
use crate::frontend::service::FrontEnd;
use crate::index::AccountChange;
use crate::index::Write;
use crate::protocol::Error;
use crate::protocol::Reply;
use crate::protocol::azure;
use crate::protocol::operation::Upload;

/// Get Blob Service Properties: from the account's record as this process last saw it, which is the newest.
pub(crate) fn get(account: &Account) -> Reply {
    Reply::ServiceProperties(Box::new(account.properties.clone()))
}

/// Set Blob Service Properties: durable, then known to every later request here.
pub(crate) async fn set(
    front: &FrontEnd,
    account: &Account,
    upload: &Upload,
    body: &mut RequestBody,
) -> Result<Reply, Error> {
    let (xml, _crc64, _md5) = ingest::read_whole(&front.pool, body, upload).await?;
    let change = AccountChange::Properties(Box::new(azure::service_properties(&xml)?));
    let write = Write::UpdateAccount { name: account.name.clone(), change };
    let from_index = |error| errors::from_index(&error, Subject::Container);
    ops::commit(front, write, None).await.map_err(from_index)?;
    front.accounts.refresh(&front.router, &account.name).await.map_err(from_index)?;
    Ok(Reply::ServicePropertiesSet)
}
