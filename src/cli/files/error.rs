//! Why commands that copy, list and delete blobs and files fail. Each text says what to do.

use std::fmt;
use std::io;
use std::path::Path;
use std::path::PathBuf;

use thiserror::Error;

use crate::cli::escaped::shown;
use crate::node::config::AccountError;

/// A command that cannot be carried out as it was given.
#[derive(Debug, Error)]
pub enum FilesError {
    /// The account cannot be read.
    #[error("{0}")]
    Account(#[from] AccountError),
    /// Not a URL of a blob service.
    #[error("{text} is not the URL of an account, container or blob: {why}")]
    Url {
        /// As given, without its query.
        text: String,
        /// A description of the problem.
        why: &'static str,
    },
    /// A scheme that is not known.
    #[error("{0}:// is not known; give http://, https:// or by://, and ./ before a local path")]
    Scheme(String),
    /// Not the name of a container.
    #[error("`{0}` is not a container: 3 to 63 lower-case letters, digits and hyphens")]
    Container(String),
    /// A connection string that lacks something.
    #[error("the connection string {0}")]
    Connection(&'static str),
    /// The file of certificates cannot be read.
    #[error("--ca: {0}")]
    Authority(io::Error),
    /// A local path where a blob is needed.
    #[error("{} is a local path; name a blob as by://CONTAINER/BLOB or by its URL", path_shown(.0))]
    Local(PathBuf),
    /// Something else is needed there.
    #[error("{0}")]
    Usage(String),
    /// Some files or blobs were not copied or not deleted. They were named before.
    #[error("{failed} of {all} failed; see above. The same command goes on where it stopped")]
    Failed {
        /// How many failed.
        failed: u64,
        /// Of how many.
        all: u64,
    },
    /// Some names in a local folder could not be read. They were named before.
    #[error("{failed} of {all} could not be read; see above")]
    Unread {
        /// How many could not be read.
        failed: u64,
        /// Of how many.
        all: u64,
    },
    /// A request failed.
    #[error("{0}")]
    Call(#[from] CallError),
    /// A local file cannot be read or written.
    #[error("{}: {error}", path_shown(.path))]
    Disk {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Bytes are not those that were expected.
    #[error("{0}")]
    Wrong(String),
}

impl FilesError {
    /// Whether the command itself was wrong.
    #[must_use]
    pub fn is_of_usage(&self) -> bool {
        match self {
            Self::Account(_)
            | Self::Url { .. }
            | Self::Scheme(_)
            | Self::Container(_)
            | Self::Connection(_)
            | Self::Authority(_)
            | Self::Local(_)
            | Self::Usage(_) => true,
            Self::Failed { .. }
            | Self::Unread { .. }
            | Self::Call(_)
            | Self::Disk { .. }
            | Self::Wrong(_) => false,
        }
    }
}

/// A path for people, on one line.
pub(super) fn path_shown(path: &Path) -> String {
    shown(&path.to_string_lossy())
}

/// A request that was refused or not answered.
#[derive(Clone, Debug)]
pub struct CallError {
    /// The requested operation.
    pub(super) what: String,
    /// The status of the answer; none without an answer.
    pub(super) status: Option<u16>,
    /// The code of the answer, or empty.
    pub(super) code: String,
    /// The message of the server, or why there is no answer.
    pub(super) message: String,
}

impl CallError {
    /// Whether the requested resource does not exist.
    pub(super) fn is_missing(&self) -> bool {
        self.status == Some(404)
    }

    /// Whether the sender is authenticated but not permitted to do it.
    pub(super) fn is_not_permitted(&self) -> bool {
        self.status == Some(403) && self.code != "AuthenticationFailed"
    }

    /// Whether staged blocks are encrypted otherwise than the request says.
    pub(super) fn is_of_encryption(&self) -> bool {
        let codes =
            ["BlobDoesNotUseCustomerSpecifiedEncryption", "BlobUsesCustomerSpecifiedEncryption"];
        self.status == Some(409) && codes.contains(&self.code.as_str())
    }

    /// Advice to the user.
    fn advice(&self) -> &'static str {
        match (self.code.as_str(), self.status) {
            ("AuthenticationFailed" | "InvalidAuthenticationInfo", _) | (_, Some(401)) => {
                "; give the right account with --account NAME:KEY, or a URL with a signature"
            }
            ("CannotVerifyCopySource" | "CopySourceNotAllowed", _) => {
                "; the server of the target must be able and permitted to read the source: \
                 --copy-source-allow of `blockyard serve`, or copy through a local folder"
            }
            (_, Some(403)) => "; the account or signature given does not permit it",
            ("ContainerNotFound", _) => "; `cp --make-container` makes the container",
            (
                "BlobDoesNotUseCustomerSpecifiedEncryption" | "BlobUsesCustomerSpecifiedEncryption",
                _,
            ) => {
                "; blocks or a blob with another encryption are there: --force sends all blocks \
                 again; if that does not help, copy to another name"
            }
            ("InvalidBlobOrBlock" | "InvalidBlockId" | "BlockCountExceedsLimit", _) => {
                "; another client has begun to write this blob: wait until it has finished, or \
                 copy to another name"
            }
            (_, Some(412)) => "; the blob was changed meanwhile: run the command again",
            (_, None) => "; check --endpoint and the URL, then run the command again",
            (_, Some(408 | 429 | 500..=599)) => "; run the command again later",
            (_, Some(_)) => "",
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, status, code, message } = self;
        write!(f, "{what}: ")?;
        match status {
            None => write!(f, "{message}")?,
            Some(status) => {
                let code = if code.is_empty() { String::new() } else { format!(" {code}") };
                let said = message.trim_end_matches('.');
                let said = if said.is_empty() { String::new() } else { format!(": {said}") };
                write!(f, "{status}{code}{said}")?;
            }
        }
        f.write_str(self.advice())
    }
}

impl std::error::Error for CallError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_what_to_do() {
        let of = |status, code: &str| {
            let (code, message) = (code.to_owned(), "No.".to_owned());
            CallError { what: "PUT c/b".to_owned(), status, code, message }.to_string()
        };
        for (status, code, advice) in [
            (Some(403), "AuthenticationFailed", "--account"),
            (Some(403), "AuthorizationPermissionMismatch", "permit"),
            (Some(404), "ContainerNotFound", "--make-container"),
            (Some(412), "ConditionNotMet", "again"),
            (Some(409), "BlobUsesCustomerSpecifiedEncryption", "--force"),
            (Some(503), "ServerBusy", "later"),
            (None, "", "--endpoint"),
        ] {
            let text = of(status, code);
            assert!(text.starts_with("PUT c/b: ") && text.contains(advice), "{text}");
        }
        let of_encryption = |status, code: &str| {
            let (what, message, code) = (String::new(), String::new(), code.to_owned());
            CallError { what, status: Some(status), code, message }.is_of_encryption()
        };
        assert!(of_encryption(409, "BlobUsesCustomerSpecifiedEncryption"));
        assert!(of_encryption(409, "BlobDoesNotUseCustomerSpecifiedEncryption"));
        assert!(!of_encryption(409, "BlobExists"));
        assert_eq!(of(Some(409), "BlobExists"), "PUT c/b: 409 BlobExists: No");
    }
}
