//! A request that was let in.

use std::sync::Arc;

use crate::audit_log;
use crate::auth::Overrides;
use crate::frontend::accounts::Account;
use crate::frontend::admission::Pass;
use crate::frontend::dialect::echo::Echo;
use crate::protocol::model::Operation;
use crate::protocol::model::operation::DocumentBody;

/// A request that was let in.
#[derive(Debug)]
pub(crate) struct Admitted {
    /// Whose data it is about.
    pub(crate) account: Arc<Account>,
    /// What it asks for; conditioned to replace nothing where the caller may not.
    pub(crate) operation: Operation,
    /// The document that completes it.
    pub(crate) document: Option<DocumentBody>,
    /// What answers carry in the place of a blob's own headers.
    pub(crate) overrides: Overrides,
    /// Whether the caller may not replace what exists: then "it exists" is told as "you may not".
    pub(crate) create_only: bool,
    /// Whether the caller proved who they are.
    pub(crate) authenticated: bool,
    /// Room for the request, until its answer is out; the parts of a batch have that of the batch.
    pub(crate) pass: Option<Pass>,
}

/// What becomes known on the way: what the answer repeats, and who asks, for the audit log.
pub(crate) type Told<'a, 'd> = (&'a mut Echo<'d>, &'a mut audit_log::Principal);
