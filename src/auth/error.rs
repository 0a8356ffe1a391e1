//! Why a request is not let in.

use thiserror::Error;

/// Why a request is not let in. Details name no key; a string-to-sign is the client's own data.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// No `Authorization`.
    #[error("no authorization header")]
    Missing,
    /// No `Authorization` but a shared access signature in the query, which is not served yet.
    #[error("a shared access signature, which is not served")]
    SharedAccessSignature,
    /// `Authorization` or the date cannot be read.
    #[error("malformed authentication information: {detail}")]
    Malformed {
        /// What is wrong, for the client.
        detail: String,
    },
    /// Neither Shared Key nor Shared Key Lite.
    #[error("unknown authorization scheme")]
    UnknownScheme,
    /// The signature is not one of the account's.
    #[error("wrong signature")]
    WrongSignature {
        /// The server's string-to-sign, for the client.
        detail: String,
    },
    /// The request's date is further from now than the window allows.
    #[error("request date outside the window")]
    ClockSkew {
        /// By how much, for the client.
        detail: String,
    },
}
