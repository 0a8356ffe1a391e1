//! The errors of changes of the partition map.

use crate::index::api::{ChangeError, Error, Full};
use crate::index::engine::Failed;
use crate::index::engine::NotChanged;

impl From<NotChanged> for ChangeError {
    fn from(failed: NotChanged) -> Self {
        match failed {
            NotChanged::Busy(reason) => Self::Busy(reason.into()),
            NotChanged::Failed(failed) => failed.into(),
        }
    }
}

impl From<Failed> for ChangeError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Other(reason) if reason.is_full() => {
                Self::Failed(Error::Full(Full::Coordinator(reason.to_string())))
            }
            Failed::Busy(reason) => Self::Busy(reason.into()),
            Failed::Full(_) | Failed::Refused(_) => Self::Refused(failed.into()),
            Failed::Fenced | Failed::Other(_) => Self::Failed(failed.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_works_later_by_itself_is_busy_and_not_a_failure() {
        for busy in [
            ChangeError::from(Failed::Busy("others were quicker")),
            NotChanged::from(Failed::Busy("others were quicker")).into(),
        ] {
            assert_eq!(busy, ChangeError::Busy("others were quicker".into()));
        }
    }
}
