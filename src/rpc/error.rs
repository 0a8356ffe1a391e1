//! Why a call has no answer.

use serde::Deserialize;
use serde::Serialize;
use thiserror::Error as ThisError;

/// Why a call has no answer. The variant says whether the call may have been carried out.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum CallError {
    /// The call was not carried out, and it never will be. It may be sent again, or elsewhere.
    #[error("not carried out: {0}")]
    NotDone(Reason),
    /// The call may have been carried out, or may still be.
    #[error("the outcome is unknown: {0}")]
    Unknown(Reason),
}

/// What happened to a call, for logs.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum Reason {
    /// There is no connection.
    #[error("no connection: {0}")]
    Unreachable(String),
    /// The caller's time was over.
    #[error("it took too long")]
    OutOfTime,
    /// The connection ended.
    #[error("the connection was lost")]
    ConnectionLost,
    /// The other node did not carry it out.
    #[error("{0}")]
    Refused(Refusal),
    /// The call has more bytes than the other node takes.
    #[error("the call is too large")]
    TooLarge,
    /// The task of the call panicked, or its answer was too large.
    #[error("the other node failed; its log says why")]
    Failed,
    /// The answer is not one of this call.
    #[error("the answer is malformed")]
    Malformed,
}

/// Why a node did not carry out a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ThisError)]
pub enum Refusal {
    /// The caller's time was over before the call began, or before it ended if it had no effects.
    #[error("the call arrived too late")]
    Late,
    /// The node has no such method, or not in this role.
    #[error("the other node has no such method")]
    UnknownMethod,
    /// The message is not one of this method, or of a version that the node does not know.
    #[error("the other node cannot read the call")]
    Malformed,
    /// The caller cancelled it before it began, or before it ended if it had no effects.
    #[error("the call was cancelled")]
    Cancelled,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::encode;

    #[test]
    fn refusals_have_golden_bytes() {
        let all = [Refusal::Late, Refusal::UnknownMethod, Refusal::Malformed, Refusal::Cancelled];
        for (code, refusal) in (0..).zip(all) {
            assert_eq!(encode(&refusal).unwrap().as_ref(), [1, code]);
        }
    }
}
