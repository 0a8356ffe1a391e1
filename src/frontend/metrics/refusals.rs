//! Refused requests, by reason.

use prometheus_client::registry::Registry;

use crate::frontend::errors;
use crate::frontend::errors::Busy;
use crate::protocol::model::Cause;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::telemetry::Counters;

/// The reason of a 503 without a cause.
const OTHER: &str = "other";

/// A counter for each reason; every reason shows 0 from the start.
#[derive(Clone, Debug)]
pub(super) struct RefusalMetrics {
    busy: Counters,
    authentication: Counters,
    authorization: Counters,
}

impl Default for RefusalMetrics {
    fn default() -> Self {
        let made = Self {
            busy: Counters::new("reason", Busy::ALL.map(Busy::word).into_iter().chain([OTHER])),
            authentication: Counters::new("reason", []),
            authorization: Counters::new("reason", []),
        };
        errors::CAUSES.into_iter().for_each(|cause| made.count(cause, 0));
        made
    }
}

impl RefusalMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let made = Self::default();
        let help = "Requests answered 503 ServerBusy, by the exhausted resource";
        made.busy.register(registry, "busy_answers", help);
        let help = "Requests that failed authentication, by reason";
        made.authentication.register(registry, "authentication_failures", help);
        let help = "Requests that failed authorization, by the mechanism that refused them";
        made.authorization.register(registry, "authorization_failures", help);
        made
    }

    /// Counts a refusal. Other errors are not counted.
    pub(super) fn refused(&self, error: &Refusal) {
        match error.cause {
            Some(cause) => self.count(cause, 1),
            None if error.reason == Reason::ServerBusy => self.count(Cause::Busy(OTHER), 1),
            None => {}
        }
    }

    fn count(&self, cause: Cause, times: u64) {
        let (counters, reason) = match cause {
            Cause::Busy(reason) => (&self.busy, reason),
            Cause::Authentication(reason) => (&self.authentication, reason),
            Cause::Authorization(reason) => (&self.authorization, reason),
        };
        counters.add(reason, times);
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
        let refusals = RefusalMetrics::register(&mut registry);
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
        refusals.refused(&Reason::ServerBusy.into());
        refusals.refused(&Reason::BlobNotFound.into());
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
