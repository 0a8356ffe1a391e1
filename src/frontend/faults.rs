//! The fault dial: injects faults into requests, for people who test how their code handles them.
//!
//! It is off unless rules are set through the admin listener. A rule applies to admitted requests
//! that match it. Its seed decides which of them get the fault, so the same seed selects the same
//! requests by number. The first rule that selects a request decides its fault. While a rule is
//! set, a line is logged every minute, and `/metrics` counts.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::ValueEnum;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde::Serialize;
use serde_json::json;

use crate::audit_log::AuditLog;
use crate::audit_log::Change;
use crate::audit_log::Entry;
use crate::audit_log::Principal;
use crate::audit_log::Thing;
use crate::env::Env;
use crate::env::Rand;
use crate::env::SeededRand;

use super::filter;
use super::filter::FilterError;

/// Rules at a time.
const RULES_MAX: usize = 64;
/// The time between two log lines while the dial is on.
const REMINDER: Duration = Duration::from_secs(60);
/// The resolution of rates.
const STEPS: u64 = 1 << 32;

/// The fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum FaultKind {
    /// 503 `ServerBusy` with `Retry-After`; the request is not executed.
    Busy,
    /// 500 `InternalError`; the request is not executed.
    Error,
    /// No answer: the connection is closed after `delay_ms`; the request is not executed.
    Timeout,
    /// The request is executed, but its answer is lost: the connection is closed after `delay_ms`.
    Lost,
    /// The request is executed, and the body of its answer is sent at `bytes_per_second`.
    Slow,
}

impl FaultKind {
    /// One word, as in metrics and on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Lost => "lost",
            Self::Slow => "slow",
        }
    }
}

/// A rule as users write it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// The fault.
    pub kind: FaultKind,
    /// Only these operations, by REST name without regard to case; all when empty.
    #[serde(default)]
    pub operations: Vec<String>,
    /// Only these accounts; all when empty.
    #[serde(default)]
    pub accounts: Vec<String>,
    /// Only these containers; all requests, also those without a container, when empty.
    #[serde(default)]
    pub containers: Vec<String>,
    /// The part of the matching requests that gets the fault, above 0 and up to 1.
    #[serde(default = "always")]
    pub rate: f64,
    /// Selects the requests: the same seed selects the same ones by number.
    #[serde(default)]
    pub seed: u64,
    /// The number of faults after which the rule ends.
    #[serde(default)]
    pub count: Option<u64>,
    /// The number of seconds after which the rule ends.
    #[serde(default)]
    pub seconds: Option<u32>,
    /// How long `timeout` and `lost` keep the client waiting, at most 10 minutes. Default 0: the
    /// connection is closed immediately.
    #[serde(default)]
    pub delay_ms: u32,
    /// The rate of `slow`. Default 1,024.
    #[serde(default = "trickle")]
    pub bytes_per_second: u32,
}

impl FaultRule {
    /// Checks the numbers, and that requests can match.
    ///
    /// # Errors
    /// [`FaultError`].
    pub fn check(&self) -> Result<(), FaultError> {
        if !(self.rate > 0.0 && self.rate <= 1.0) {
            return Err(FaultError::Rate(self.rate));
        }
        if self.bytes_per_second == 0 {
            return Err(FaultError::Pace(0));
        }
        if self.delay_ms > 600_000 {
            return Err(FaultError::Delay(self.delay_ms));
        }
        self.operations.iter().try_for_each(|name| filter::operation(name))?;
        self.accounts.iter().try_for_each(|name| filter::account(name))?;
        Ok(self.containers.iter().try_for_each(|name| filter::container(name))?)
    }
}

const fn always() -> f64 {
    1.0
}

const fn trickle() -> u32 {
    1024
}

/// A rule in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultState {
    /// Its number.
    pub id: u64,
    /// The rule.
    pub rule: FaultRule,
    /// Requests that matched it.
    pub matched: u64,
    /// Requests that got its fault.
    pub struck: u64,
}

/// Why a rule is refused; the text says what to change.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FaultError {
    /// The rate.
    #[error("rate must be above 0 and at most 1, not {0}")]
    Rate(f64),
    /// The pace.
    #[error("bytes_per_second must be 1 to 4294967295, not {0}")]
    Pace(u64),
    /// The delay.
    #[error("delay_ms must be at most 600000, not {0}")]
    Delay(u32),
    /// No request can match.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// Too many.
    #[error("there are {RULES_MAX} rules already: clear some with `blockyard fault clear`")]
    TooMany,
}

/// The parts of a request that rules match.
#[derive(Clone, Copy, Debug)]
pub(super) struct FaultTarget<'a> {
    pub(super) operation: &'a str,
    pub(super) account: &'a str,
    pub(super) container: Option<&'a str>,
}

/// The fault that a request gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InjectedFault {
    pub(super) kind: FaultKind,
    pub(super) delay: Duration,
    pub(super) bytes_per_second: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
}

#[derive(Debug)]
struct InForce {
    state: FaultState,
    draws: SeededRand,
    /// When it ends, by the monotonic clock.
    ends: Option<Duration>,
}

#[derive(Debug, Default)]
struct Rules {
    in_force: Vec<InForce>,
    last_id: u64,
    reminding: bool,
}

/// The dial; cheap to clone, clones share the rules.
#[derive(Clone, Debug)]
pub struct Faults {
    on: Arc<AtomicBool>,
    rules: Arc<Mutex<Rules>>,
    env: Env,
    in_force: Gauge,
    struck: Family<KindLabels, Counter>,
    audit_log: AuditLog,
}

impl Faults {
    /// A dial without rules, its metrics in `registry`.
    #[must_use]
    pub fn new(env: Env, registry: &mut Registry) -> Self {
        let (in_force, struck) = (Gauge::default(), Family::<KindLabels, Counter>::default());
        registry.register(
            "fault_rules",
            "Rules of the fault dial in force; 0 except during tests",
            in_force.clone(),
        );
        for kind in FaultKind::value_variants() {
            drop(struck.get_or_create(&KindLabels { kind: kind.word() }));
        }
        registry.register(
            "faults_struck",
            "Requests in which the fault dial injected a fault",
            struck.clone(),
        );
        let (on, rules, audit_log) = (Arc::default(), Arc::default(), AuditLog::default());
        Self { on, rules, env, in_force, struck, audit_log }
    }

    /// The same dial, which writes a line of the audit log when a rule ends by itself. The admin
    /// listener writes those of rules that are set and cleared.
    #[must_use]
    pub fn with_audit_log(self, audit_log: AuditLog) -> Self {
        Self { audit_log, ..self }
    }

    /// Puts a rule in force, and returns its state.
    ///
    /// # Errors
    /// [`FaultError`].
    pub fn set(&self, rule: FaultRule) -> Result<FaultState, FaultError> {
        rule.check()?;
        let ends = rule
            .seconds
            .map(|seconds| self.env.clock.monotonic() + Duration::from_secs(u64::from(seconds)));
        let mut rules = self.rules();
        if rules.in_force.len() >= RULES_MAX {
            return Err(FaultError::TooMany);
        }
        rules.last_id += 1;
        let state = FaultState { id: rules.last_id, rule, matched: 0, struck: 0 };
        tracing::warn!(id = state.id, rule = ?state.rule, "FAULT DIAL ON: requests will fail on purpose");
        let draws = SeededRand::new(state.rule.seed);
        rules.in_force.push(InForce { state: state.clone(), draws, ends });
        self.changed(&rules);
        if !rules.reminding {
            rules.reminding = true;
            let dial = self.clone();
            drop(self.env.tasks.spawn("fault reminder", dial.remind()));
        }
        Ok(state)
    }

    /// The rules in force.
    #[must_use]
    pub fn list(&self) -> Vec<FaultState> {
        let mut rules = self.rules();
        self.end_due(&mut rules);
        rules.in_force.iter().map(|rule| rule.state.clone()).collect()
    }

    /// Ends one rule, or all; returns how many ended.
    pub fn clear(&self, id: Option<u64>) -> usize {
        let mut rules = self.rules();
        let before = rules.in_force.len();
        rules.in_force.retain(|rule| id.is_some_and(|id| rule.state.id != id));
        let ended = before - rules.in_force.len();
        if ended > 0 {
            tracing::warn!(ended, left = rules.in_force.len(), "fault dial: rules cleared");
        }
        self.changed(&rules);
        ended
    }

    /// Whether a rule is in force. This is all that a request pays while none is.
    pub(super) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// The fault that this request gets, if any.
    pub(super) fn inject(&self, target: FaultTarget<'_>) -> Option<InjectedFault> {
        let mut rules = self.rules();
        self.end_due(&mut rules);
        let fault = rules.in_force.iter_mut().find_map(|rule| rule.draw(target))?;
        self.end_due(&mut rules);
        drop(rules);
        self.struck.get_or_create(&KindLabels { kind: fault.kind.word() }).inc();
        tracing::debug!(?target, ?fault, "the fault dial injects a fault");
        Some(fault)
    }

    fn rules(&self) -> std::sync::MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes rules that have ended.
    fn end_due(&self, rules: &mut Rules) {
        let now = self.env.clock.monotonic();
        let over: Vec<InForce> = rules.in_force.extract_if(.., |rule| rule.is_over(now)).collect();
        if over.is_empty() {
            return;
        }
        tracing::warn!(left = rules.in_force.len(), "fault dial: rules ran out");
        self.changed(rules);
        for InForce { state, .. } in over {
            let entry = Entry {
                principal: Principal::Node { task: "fault dial" },
                operation: "EndFault".into(),
                resource: Some(state.id.to_string()),
                ..Entry::default()
            };
            let detail = json!({ "struck": state.struck });
            self.audit_log.change_now(&entry, &Change { of: Thing::Fault, detail });
        }
    }

    fn changed(&self, rules: &Rules) {
        self.on.store(!rules.in_force.is_empty(), Ordering::Relaxed);
        self.in_force.set(i64::try_from(rules.in_force.len()).unwrap_or(i64::MAX));
    }

    /// Logs every minute that the dial is on, until it is switched off.
    async fn remind(self) {
        loop {
            tokio::select! {
                biased;
                () = self.env.tasks.stopping().cancelled_owned() => return,
                () = self.env.clock.sleep(REMINDER) => {}
            }
            let mut rules = self.rules();
            self.end_due(&mut rules);
            if rules.in_force.is_empty() {
                rules.reminding = false;
                return;
            }
            let struck: u64 = rules.in_force.iter().map(|rule| rule.state.struck).sum();
            tracing::warn!(
                rules = rules.in_force.len(),
                struck,
                "FAULT DIAL IS ON: requests fail on purpose; `blockyard fault clear` ends it"
            );
        }
    }
}

impl InForce {
    /// Decides about a request. Each matching request uses exactly one random number, so that the
    /// same seed gives the same decisions.
    fn draw(&mut self, target: FaultTarget<'_>) -> Option<InjectedFault> {
        if !matches(&self.state.rule, target) {
            return None;
        }
        self.state.matched += 1;
        let rule = &self.state.rule;
        let drawn = self.draws.below(STEPS);
        #[expect(clippy::cast_precision_loss, reason = "below 2^32, exact")]
        if drawn as f64 >= rule.rate * STEPS as f64 {
            return None;
        }
        self.state.struck += 1;
        Some(InjectedFault {
            kind: rule.kind,
            delay: Duration::from_millis(u64::from(rule.delay_ms)),
            bytes_per_second: rule.bytes_per_second,
        })
    }

    fn is_over(&self, now: Duration) -> bool {
        self.ends.is_some_and(|ends| now >= ends)
            || self.state.rule.count.is_some_and(|count| self.state.struck >= count)
    }
}

fn matches(rule: &FaultRule, target: FaultTarget<'_>) -> bool {
    let among = |wanted: &[String], value: &str| {
        wanted.is_empty() || wanted.iter().any(|name| name.eq_ignore_ascii_case(value))
    };
    among(&rule.operations, target.operation)
        && among(&rule.accounts, target.account)
        && among(&rule.containers, target.container.unwrap_or(""))
}

#[cfg(test)]
mod tests;
