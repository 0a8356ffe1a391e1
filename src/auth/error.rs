//! Why a request is refused.

use std::net::IpAddr;

use thiserror::Error;

/// Why a request is refused. Details contain no key. A string-to-sign is the client's own data.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// No `Authorization`.
    #[error("no authorization header")]
    Missing,
    /// A shared access signature is malformed, not signed by a key of the account, or not valid
    /// now.
    #[error("shared access signature refused")]
    Refused {
        /// Why, for the client.
        detail: String,
    },
    /// A bearer token is refused.
    #[error("token refused")]
    Token {
        /// Why, for the client.
        detail: String,
    },
    /// The signature is for other addresses.
    #[error("wrong source address {address}")]
    SourceAddress {
        /// The client's.
        address: IpAddr,
    },
    /// The signature is for HTTPS.
    #[error("plain HTTP")]
    Protocol,
    /// The signature is for other services.
    #[error("wrong service")]
    Service,
    /// The signature is for other resource types.
    #[error("wrong resource type")]
    ResourceType,
    /// The signature, or the role of the token's holder, does not permit the operation.
    #[error("permission missing")]
    Permission,
    /// No signature of this kind permits the operation.
    #[error("the resource cannot be requested in this way")]
    Unauthorized,
    /// `Authorization` or the date cannot be read.
    #[error("malformed authentication information: {detail}")]
    Malformed {
        /// A description of the problem, for the client.
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

impl Error {
    /// A shared access signature is refused.
    pub(super) fn sas(detail: String) -> Self {
        Self::Refused { detail }
    }
}
