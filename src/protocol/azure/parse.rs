//! Head and query to one operation.

use http::request::Parts;

use crate::protocol::Error;
use crate::protocol::ErrorCode;
use crate::protocol::Operation;
use crate::protocol::azure::Address;
use crate::protocol::azure::Context;

/// Turns an authenticated head into an operation. The body of Put Block List is read later by `xml::block_list`.
///
/// # Errors
/// The documented code of the first thing wrong; `NotImplemented` for what is not served.
pub fn parse(_head: &Parts, _address: &Address, _context: &Context) -> Result<Operation, Error> {
    Err(ErrorCode::NotImplemented.into())
}
