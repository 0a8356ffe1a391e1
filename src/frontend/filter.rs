//! Checks the filters of `blockyard trace` and of the fault dial. A name that no request can have
//! would match nothing, so it is refused.

use thiserror::Error;

use crate::frontend::dialect::operation_names;
use crate::types::AccountName;
use crate::types::ContainerName;
use crate::types::nearest;

/// The operation of a request that was not recognised or not admitted.
pub const REFUSED: &str = "Refused";

/// Why a filter is refused. Each message says what to write.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FilterError {
    /// There is no such operation.
    #[error(
        "there is no operation `{name}`; do you mean {nearest}? docs/compatibility.md lists all"
    )]
    Operation {
        /// As given.
        name: String,
        /// The nearest there is.
        nearest: &'static str,
    },
    /// No account can have the name.
    #[error("`{0}` is not an account name: 3 to 24 lower-case letters and digits")]
    Account(String),
    /// No container can have the name.
    #[error("`{0}` is not a container name: 3 to 63 lower-case letters, digits and single hyphens")]
    Container(String),
    /// No answer can have the status.
    #[error("`{0}` is no status: write a number such as 404, or a class such as 5xx")]
    Status(String),
}

/// Checks the name of an operation, without regard to case.
///
/// # Errors
/// [`FilterError::Operation`].
pub fn operation(name: &str) -> Result<(), FilterError> {
    let known = || operation_names().chain([REFUSED]);
    if known().any(|known| known.eq_ignore_ascii_case(name)) {
        return Ok(());
    }
    let nearest = nearest(name, known()).unwrap_or_default();
    Err(FilterError::Operation { name: name.to_owned(), nearest })
}

/// Checks the name of an account, without regard to case.
///
/// # Errors
/// [`FilterError::Account`].
pub fn account(name: &str) -> Result<(), FilterError> {
    let checked = AccountName::new(&name.to_ascii_lowercase());
    checked.map(drop).map_err(|_| FilterError::Account(name.to_owned()))
}

/// Checks the name of a container, without regard to case.
///
/// # Errors
/// [`FilterError::Container`].
pub fn container(name: &str) -> Result<(), FilterError> {
    let checked = ContainerName::new(&name.to_ascii_lowercase());
    checked.map(drop).map_err(|_| FilterError::Container(name.to_owned()))
}

/// Checks an HTTP status such as `404`, or a class such as `4xx`. A request whose connection the
/// fault dial closed has the status 0.
///
/// # Errors
/// [`FilterError::Status`].
pub fn status(text: &str) -> Result<(), FilterError> {
    let is_known = match text.to_ascii_lowercase().strip_suffix("xx") {
        Some(class) => matches!(class, "1" | "2" | "3" | "4" | "5"),
        None => text.parse().is_ok_and(|status: u16| status == 0 || (100..600).contains(&status)),
    };
    if is_known { Ok(()) } else { Err(FilterError::Status(text.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_requests_can_have_is_taken() {
        for name in ["PutBlob", "putblob", "refused", "FindBlobsByTagsInContainer"] {
            assert_eq!(operation(name), Ok(()), "{name}");
        }
        for text in ["0", "100", "404", "599", "1xx", "5XX"] {
            assert_eq!(status(text), Ok(()), "{text}");
        }
        assert_eq!(
            (account("Photos"), container("$web"), container("a-1")),
            (Ok(()), Ok(()), Ok(()))
        );
    }

    #[test]
    fn what_no_request_can_have_is_refused_and_named() {
        for (refused, named) in [
            (operation("PutBlub"), "`PutBlub`; do you mean PutBlob?"),
            (operation(""), "``"),
            (account("a_b"), "`a_b`"),
            (container("a_b"), "`a_b`"),
            (status("600"), "`600`"),
            (status("6xx"), "`6xx`"),
            (status("xx"), "`xx`"),
            (status("40x"), "`40x`"),
        ] {
            let text = refused.unwrap_err().to_string();
            assert!(text.contains(named), "{text}");
        }
    }
}
