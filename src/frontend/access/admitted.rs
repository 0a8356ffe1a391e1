//! A request that was admitted.

use std::sync::Arc;

use crate::audit_log;
use crate::auth::Overrides;
use crate::frontend::accounts::Account;
use crate::frontend::accounts::User;
use crate::frontend::admission::Pass;
use crate::frontend::dialect::Arrival;
use crate::frontend::dialect::echo::Echo;
use crate::frontend::dialect::framing::Decoder;
use crate::protocol::model::Address;
use crate::protocol::model::Operation;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::DocumentBody;

/// A request that was admitted.
#[derive(Debug)]
pub(crate) struct Admitted {
    /// The account that it is about.
    pub(crate) account: Arc<Account>,
    /// The operation. If the caller may not overwrite, it has the condition that the blob does not
    /// exist.
    pub(crate) operation: Box<Operation>,
    /// Its name in the words of the dialect, for metrics, logs and the fault dial.
    pub(crate) name: &'static str,
    /// The document that completes it.
    pub(crate) document: Option<DocumentBody>,
    /// Headers that the answer carries in place of the blob's own.
    pub(crate) overrides: Overrides,
    /// Whether the caller may not replace what exists. Then the refusal "it exists" becomes "you
    /// may not overwrite".
    pub(crate) create_only: bool,
    /// The refusal of a caller whom the blob's access control list does not permit.
    pub(crate) not_open: Option<Refusal>,
    /// Whether the caller is authenticated.
    pub(crate) authenticated: bool,
    /// The user of the account that sends it, if any.
    pub(crate) user: Option<Arc<User>>,
    /// Takes the content out of the body and verifies it, when the signature covers it.
    pub(crate) decoder: Option<Decoder>,
    /// The request's place in admission, until its answer is sent. The parts of a batch share that
    /// of the batch.
    pub(crate) pass: Option<Pass>,
}

/// Results of admission that a refusal needs too.
#[derive(Debug)]
pub(crate) struct AdmissionNotes<'a, 'd> {
    /// The parts of the request that the answer repeats.
    pub(crate) echo: &'a mut Echo<'d>,
    /// The sender, for the audit log.
    pub(crate) principal: &'a mut audit_log::Principal,
    /// The actual address, if it differs from that of the URL.
    pub(crate) meant: &'a mut Option<Box<Address>>,
}

/// A request whose address is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressedRequest<'a> {
    /// The request as it arrived.
    pub(crate) arrival: Arrival<'a>,
    /// The account, container and blob that it names.
    pub(crate) address: &'a Address,
}
