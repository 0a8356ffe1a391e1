//! Panics of tasks: how often each task panicked, and which tasks will not be started again.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// The panics of all tasks that are counted together. Cheap to clone; clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct TaskHealth(Arc<State>);

#[derive(Debug, Default)]
struct State {
    panics: Family<Task, Counter>,
    /// The message of the panic of each task that is not started again.
    stopped: Mutex<BTreeMap<&'static str, String>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Task {
    task: &'static str,
}

impl TaskHealth {
    /// Registers the counts as `task_panics`.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Panics of background tasks and of the tasks of requests";
        registry.register("task_panics", help, self.0.panics.clone());
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

fn message(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "no message".to_owned(),
    }
}
