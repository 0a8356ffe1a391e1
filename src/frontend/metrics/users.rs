//! Requests of each user of an account. A bounded number of users have counters of their own; the
//! others are counted together, so that the number of metrics is bounded too.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::RwLock;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::types::AccountName;
use crate::types::UserName;

/// The most users with counters of their own.
const USERS_MAX: usize = 100;
/// The account and user of all others: no account has this name.
const OTHER: &str = "_other";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct UserLabels {
    account: String,
    user: String,
}

/// The counters of all users; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct UserMetrics {
    requests: Family<UserLabels, Counter>,
    named: Arc<RwLock<BTreeMap<String, Counter>>>,
}

impl UserMetrics {
    /// Shows them in `registry`.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let what = "Admitted requests of the user, also with temporary keys";
        registry.register("user_requests", what, self.requests.clone());
    }

    /// Counts a request.
    pub(crate) fn count(&self, account: &AccountName, user: &UserName) {
        let place = format!("{account}/{user}");
        if let Some(known) = self.named.read().unwrap_or_else(PoisonError::into_inner).get(&place) {
            known.inc();
            return;
        }
        let mut named = self.named.write().unwrap_or_else(PoisonError::into_inner);
        let has_room = named.len() < USERS_MAX || named.contains_key(&place);
        let [account, user] =
            if has_room { [account.as_str(), user.as_str()] } else { [OTHER, OTHER] };
        let labels = UserLabels { account: account.to_owned(), user: user.to_owned() };
        let counter = self.requests.get_or_create(&labels).clone();
        counter.inc();
        if has_room {
            named.insert(place, counter);
        }
    }

    /// Removes the counters of the users of an account that are not in `users`, which makes room.
    pub(crate) fn keep(&self, account: &AccountName, is_there: impl Fn(&str) -> bool) {
        let mut named = self.named.write().unwrap_or_else(PoisonError::into_inner);
        named.retain(|place, _| match place.split_once('/') {
            Some((of, user)) if of == account.as_str() && !is_there(user) => {
                let (account, user) = (of.to_owned(), user.to_owned());
                self.requests.remove(&UserLabels { account, user });
                false
            }
            Some(_) | None => true,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Exposition;
    use crate::telemetry::render;

    #[test]
    fn users_beyond_the_limit_are_counted_together_and_gone_ones_make_room() {
        let metrics = UserMetrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let account = AccountName::new("acct").unwrap();
        let user = |number: usize| UserName::new(&format!("u{number}")).unwrap();
        for number in 0..USERS_MAX + 5 {
            metrics.count(&account, &user(number));
            metrics.count(&account, &user(number));
        }
        let text = || render(&registry, Exposition::Classic).unwrap();
        let lines = |text: &str| text.lines().filter(|line| line.starts_with("user_")).count();
        assert_eq!(lines(&text()), USERS_MAX + 1);
        for line in [
            "user_requests_total{account=\"acct\",user=\"u3\"} 2\n",
            "user_requests_total{account=\"_other\",user=\"_other\"} 10\n",
        ] {
            assert!(text().contains(line), "{line} is not in\n{}", text());
        }
        metrics.keep(&account, |name| name != "u3");
        metrics.keep(&AccountName::new("other").unwrap(), |_| false);
        assert!(!text().contains("\"u3\""));
        metrics.count(&account, &user(USERS_MAX));
        assert!(text().contains(&format!("user=\"u{USERS_MAX}\"}} 1\n")), "{}", text());
    }
}
