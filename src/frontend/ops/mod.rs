//! The operations, a file for each group. Each looks up the container first, as the service does.

pub(crate) mod acl;
pub(crate) mod appends;
pub(crate) mod attributes;
pub(crate) mod blobs;
pub(crate) mod blocks;
pub(crate) mod containers;
pub(crate) mod content;
pub(crate) mod copies;
pub(crate) mod delegation;
pub(crate) mod deletions;
mod effort;
pub(crate) mod find;
pub(crate) mod grants;
pub(crate) mod leases;
mod list_begin;
pub(crate) mod listing;
pub(crate) mod locks;
pub(crate) mod pages;
pub(crate) mod parts;
pub(crate) mod query;
pub(crate) mod restore;
pub(crate) mod service_properties;
pub(crate) mod settings;
pub(crate) mod tags;
#[cfg(test)]
mod tests;
pub(crate) mod tiers;
pub(crate) mod upload_lists;
pub(crate) mod uploads;
pub(crate) mod versions;

use crate::frontend::body::ResponseBody;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;

/// The result of an operation.
pub(crate) type Answer = Result<Answered, Refusal>;

/// The answer to a request that was carried out.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The reply.
    pub(crate) reply: Reply,
    /// The body of Get Blob, or the memory that is held for a body that is rendered later.
    pub(crate) stream: Option<ResponseBody>,
}

impl From<Reply> for Answered {
    fn from(reply: Reply) -> Self {
        Self { reply, stream: None }
    }
}
