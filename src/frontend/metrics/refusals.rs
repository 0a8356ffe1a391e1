//! Requests that were refused, by the reason an operator is told.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::frontend::errors;
use crate::frontend::errors::Busy;
use crate::protocol::Cause;
use crate::protocol::Error;
use crate::protocol::ErrorCode;

/// The reason of a 503 that says none.
const OTHER: &str = "other";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

/// A counter for each reason; every reason shows 0 from the start.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusals {
    busy: Family<Reason, Counter>,
    authentication: Family<Reason, Counter>,
    authorization: Family<Reason, Counter>,
}

impl Refusals {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let made = Self::default();
        for word in Busy::ALL.map(Busy::word).into_iter().chain([OTHER]) {
            drop(made.busy.get_or_create(&Reason { reason: word }));
        }
        for cause in errors::CAUSES {
            made.count(cause, 0);
        }
        let help = "Requests answered 503 ServerBusy, by what was short";
        registry.register("busy_answers", help, made.busy.clone());
        let help = "Requests whose sender did not prove who they are, by what was wrong";
        registry.register("authentication_failures", help, made.authentication.clone());
        let help = "Requests whose sender may not do what they ask, by what did not allow it";
        registry.register("authorization_failures", help, made.authorization.clone());
        made
    }

    /// Counts a refusal. Errors that are no refusal are not counted.
    pub(super) fn refused(&self, error: &Error) {
        match error.cause {
            Some(cause) => self.count(cause, 1),
            None if error.code == ErrorCode::ServerBusy => self.count(Cause::Busy(OTHER), 1),
            None => {}
        }
    }

    fn count(&self, cause: Cause, times: u64) {
        let (family, reason) = match cause {
            Cause::Busy(reason) => (&self.busy, reason),
            Cause::Authentication(reason) => (&self.authentication, reason),
            Cause::Authorization(reason) => (&self.authorization, reason),
        };
        family.get_or_create(&Reason { reason }).inc_by(times);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth;
    use crate::telemetry::Exposition;
    use crate::telemetry::render;

    #[test]
    fn every_reason_shows_from_the_start_and_counts() {
        let mut registry = Registry::default();
        let refusals = Refusals::register(&mut registry);
        let shown = || render(&registry, Exposition::Classic).unwrap();
        let before = shown();
        for busy in Busy::ALL {
            let line = format!("busy_answers_total{{reason=\"{}\"}} ", busy.word());
            assert!(before.contains(&format!("{line}0\n")), "{line}");
            refusals.refused(&errors::busy(busy));
            assert!(shown().contains(&format!("{line}1\n")), "{line}");
        }
        let detail = String::new();
        refusals.refused(&errors::from_auth(&auth::Error::ClockSkew { detail }));
        refusals.refused(&errors::from_auth(&auth::Error::Permission));
        refusals.refused(&ErrorCode::ServerBusy.into());
        refusals.refused(&ErrorCode::BlobNotFound.into());
        let after = shown();
        for line in [
            "authentication_failures_total{reason=\"clock\"} 1\n",
            "authentication_failures_total{reason=\"signature\"} 0\n",
            "authorization_failures_total{reason=\"permission\"} 1\n",
            "busy_answers_total{reason=\"other\"} 1\n",
        ] {
            assert!(after.contains(line), "{line} is not in\n{after}");
        }
    }
}
