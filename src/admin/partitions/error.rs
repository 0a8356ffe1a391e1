//! Why commands about partitions are refused.

use thiserror::Error as ThisError;

use crate::index;
use crate::index::ChangeError;

/// Why a command is refused. The text says what to do.
#[derive(Debug, ThisError)]
pub enum PartitionError {
    /// No such account.
    #[error(
        "there is no account {0}: `blockyard account list` shows them; #NUMBER names one by its number"
    )]
    NoSuchAccount(String),
    /// No such container.
    #[error("there is no container {0}: make it first; #NUMBER names one by its number")]
    NoSuchContainer(String),
    /// The text names no container.
    #[error("`{0}` names no container: give ACCOUNT/CONTAINER")]
    NotAContainer(String),
    /// No partition may begin at this position.
    #[error(
        "no partition can begin inside {0}: give ACCOUNT, ACCOUNT/CONTAINER or ACCOUNT/CONTAINER/NAME"
    )]
    NoBorder(String),
    /// The keys are of several partitions.
    #[error("the keys lie in several partitions ({0} and {1}): split one at a time")]
    SeveralPartitions(u64, u64),
    /// A partition begins there already.
    #[error("a partition begins at {0} already: leave this key out")]
    AlreadyBorder(String),
    /// The partition is too small.
    #[error("partition {0} has too few keys to be cut: give --at keys, or wait until it is larger")]
    TooFewKeys(u64),
    /// The number of parts is out of range.
    #[error("parts must be 2 to {0}")]
    Parts(usize),
    /// The characters are not usable.
    #[error("characters must be two or more, each once")]
    Characters,
    /// The sibling is empty.
    #[error("no name starts with {0}: leave `like` out, or name a prefix that has names")]
    NoSibling(String),
    /// No such node.
    #[error("no node {0} serves partitions: `blockyard cluster status` shows those that do")]
    NoSuchNode(String),
    /// The map does not change.
    #[error("{}", text_of(.0))]
    Change(#[from] ChangeError),
    /// The index refuses.
    #[error("the index refuses: {0}")]
    Index(#[from] index::Error),
}

fn text_of(error: &ChangeError) -> String {
    match error {
        ChangeError::NoSuchPartition => {
            "no such partition: splits and merges give new numbers, `blockyard partitions list` shows them".to_owned()
        }
        ChangeError::NoSuchHost => {
            "no such host: they count from 0, `blockyard serve --index-hosts` says how many there are".to_owned()
        }
        ChangeError::BadKeys
        | ChangeError::NotNeighbours
        | ChangeError::Striped
        | ChangeError::NotStripable
        | ChangeError::Busy(_) => error.to_string(),
        ChangeError::Refused(_) => format!("nothing was changed: {error}"),
        ChangeError::Failed(_) => {
            format!("the change failed: {error}; `blockyard partitions list` shows what is")
        }
        ChangeError::PartlyDone(_) => {
            format!("{error}; `blockyard partitions list` shows where they are")
        }
    }
}
