//! How many files the process may have open: extents and connections need more than most systems
//! grant at first.

use rustix::process::Resource;
use rustix::process::Rlimit;
use rustix::process::getrlimit;
use rustix::process::setrlimit;

/// Below this the defaults do not fit: 4,096 connections, and 1,024 extents of a disk.
const ENOUGH: u64 = 8_192;

/// Raises the limit as far as the process may. A lower one is no reason not to serve.
pub(super) fn raise() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: maximum, maximum };
    let granted = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => maximum,
        Err(error) => {
            tracing::debug!(%error, "the limit of open files could not be raised");
            current
        }
    };
    if let Some(granted) = granted.filter(|granted| *granted < ENOUGH) {
        tracing::warn!(
            granted,
            wanted = ENOUGH,
            "few open files are allowed: raise the hard limit (`ulimit -Hn`)"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_as_high_as_it_may_be() {
        raise();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!(current, maximum);
    }
}
