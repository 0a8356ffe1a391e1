//! Requests per second of an account: a token bucket that holds the requests of one second.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use crate::frontend::errors;
use crate::frontend::errors::Busy;
use crate::protocol::model::Refusal;
use crate::types::AccountId;

/// An account that was idle may send a burst of as many requests as its rate permits in this time.
const BURST: Duration = Duration::from_secs(1);

/// The rate limit of every account, and how far each has used it.
#[derive(Debug)]
pub(crate) struct Rates {
    /// The time between two requests at the limit; `None` without a limit.
    step: Option<Duration>,
    /// When the requests so far would have come at exactly the limit's rate. Monotonic.
    used: Mutex<HashMap<AccountId, Duration>>,
}

impl Rates {
    /// A limit for each account; 0 means no limit.
    pub(crate) fn new(per_second: u32) -> Self {
        let step = (per_second > 0).then(|| Duration::from_secs(1) / per_second);
        Self { step, used: Mutex::default() }
    }

    /// Counts a request of a known account. `now` is called only if there is a limit.
    ///
    /// # Errors
    /// `ServerBusy`, with the message of the service.
    pub(crate) fn count(
        &self,
        account: AccountId,
        now: impl FnOnce() -> Duration,
    ) -> Result<(), Refusal> {
        let Some(step) = self.step else { return Ok(()) };
        let now = now();
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let used = used.entry(account).or_default();
        let after = now.max(*used) + step;
        if after > now + BURST {
            return Err(errors::busy(Busy::Rate)
                .message("Operations per second is over the account limit."));
        }
        *used = after;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::model::Reason;

    const A: AccountId = AccountId::new(1);
    const B: AccountId = AccountId::new(2);

    fn let_in(rates: &Rates, account: AccountId, now: Duration, asked: usize) -> usize {
        (0..asked).filter(|_| rates.count(account, || now).is_ok()).count()
    }

    #[test]
    fn without_a_limit_nobody_looks_at_the_clock() {
        let rates = Rates::new(0);
        for _ in 0..10_000 {
            rates.count(A, || unreachable!()).unwrap();
        }
    }

    #[test]
    fn accounts_get_their_rate_each_and_a_second_of_it_at_once() {
        let rates = Rates::new(100);
        let begun = Duration::from_secs(7);
        assert_eq!(let_in(&rates, A, begun, 1_000), 100);
        assert_eq!(let_in(&rates, B, begun, 1_000), 100, "another account has its own");
        let mut more = 0;
        for millisecond in 1..=3_000 {
            more += let_in(&rates, A, begun + Duration::from_millis(millisecond), 10);
        }
        assert_eq!(more, 300);
        assert_eq!(
            let_in(&rates, A, begun + Duration::from_secs(60), 1_000),
            100,
            "rest is not saved up"
        );
        let refused = rates.count(A, || begun + Duration::from_secs(60)).unwrap_err();
        assert_eq!(refused.reason, Reason::ServerBusy);
    }
}
