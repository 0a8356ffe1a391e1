//! Panics of tasks: how often each task panicked, and which tasks will not be started again. And
//! violations of invariants.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// The invariants that the program asserts.
const ASSERTED: [&str; 15] = [
    "I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12", "I14", "I16", "I17",
];
/// The number of violations whose texts are kept. Later ones are only counted.
const VIOLATIONS_KEPT: usize = 16;

/// The panics of all tasks that are counted together, and the invariants that these tasks found
/// violated. Cheap to clone; clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct TaskHealth(Arc<State>);

#[derive(Debug, Default)]
struct State {
    panics: Family<Task, Counter>,
    /// The message of the panic of each task that is not started again.
    stopped: Mutex<BTreeMap<&'static str, String>>,
    violated: Family<Violated, Counter>,
    /// The texts of the first violations.
    violations: Mutex<Vec<String>>,
    /// Invariants that a unit test violates on purpose.
    #[cfg(test)]
    violated_by_test: Mutex<Vec<&'static str>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Task {
    task: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Violated {
    invariant: &'static str,
}

impl TaskHealth {
    /// Registers the counts as `task_panics` and `invariant_violations`.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Panics of background tasks and of the tasks of requests";
        registry.register("task_panics", help, self.0.panics.clone());
        let help = "Violated invariants, by number; each stopped the part that it belongs to";
        registry.register("invariant_violations", help, self.0.violated.clone());
        // Shown as 0: a first violation is seen as a growth then.
        for invariant in ASSERTED {
            drop(self.0.violated.get_or_create(&Violated { invariant }));
        }
    }

    /// Counts the violation of an invariant, and keeps `found`, the contradicting state. The caller
    /// logs it, and stops the part that the invariant belongs to (`docs/invariants.md`).
    ///
    /// In a unit test this ends the process, unless the test violates the invariant on purpose.
    /// Otherwise the part would stop, and a test might take that for an outage.
    pub fn violated(&self, invariant: &'static str, found: &str) {
        #[cfg(test)]
        self.end_unless_on_purpose(invariant, found);
        self.0.violated.get_or_create(&Violated { invariant }).inc();
        let mut violations = self.0.violations.lock().unwrap_or_else(PoisonError::into_inner);
        if violations.len() < VIOLATIONS_KEPT {
            violations.push(format!("invariant {invariant} is violated: {found}"));
        }
    }

    /// The first 16 violations of invariants, oldest first.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.0.violations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Number of panics of tasks with this name.
    #[must_use]
    pub fn panics(&self, task: &'static str) -> u64 {
        self.0.panics.get(&Task { task }).map_or(0, |count| count.get())
    }

    /// Tasks that panicked and are not started again, with the messages of their panics. A part of
    /// the node is out of service then.
    #[must_use]
    pub fn stopped(&self) -> Vec<(&'static str, String)> {
        let stopped = self.0.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        stopped.iter().map(|(task, why)| (*task, why.clone())).collect()
    }

    /// Creates the count of a task, with 0. So a monitor sees the first panic as an increase.
    pub(super) fn expect(&self, task: &'static str) {
        drop(self.0.panics.get_or_create(&Task { task }));
    }

    /// Counts and logs one panic; returns its message.
    pub(super) fn panicked(&self, task: &'static str, panic: &(dyn Any + Send)) -> String {
        let said = message(panic);
        self.0.panics.get_or_create(&Task { task }).inc();
        tracing::error!(task, panic = said, "a task panicked");
        said
    }

    /// Notes that a task will not be started again.
    pub(super) fn stop(&self, task: &'static str, why: String) {
        self.0.stopped.lock().unwrap_or_else(PoisonError::into_inner).insert(task, why);
    }
}

#[cfg(test)]
impl TaskHealth {
    /// The test violates this invariant on purpose.
    pub(crate) fn expect_violation(&self, invariant: &'static str) {
        self.0.violated_by_test.lock().unwrap_or_else(PoisonError::into_inner).push(invariant);
    }

    /// Ends the process: a panic would only end the task that found the violation.
    fn end_unless_on_purpose(&self, invariant: &'static str, found: &str) {
        let on_purpose = self.0.violated_by_test.lock().unwrap_or_else(PoisonError::into_inner);
        if !on_purpose.contains(&invariant) {
            let thread = std::thread::current();
            let test = thread.name().unwrap_or("a test");
            // Not captured, as `eprintln` would be.
            let text = format!("\n{test}: invariant {invariant} is violated: {found}\n");
            drop(std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes()));
            std::process::abort();
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "no message".to_owned(),
    }
}
