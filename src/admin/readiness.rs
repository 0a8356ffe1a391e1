//! Whether the node serves.

use std::sync::Arc;

use tokio::sync::watch;

use crate::env::TaskHealth;

/// The phase of a node's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Recovering. Requests wait.
    Starting,
    /// No node of the cluster serves the index, or this one does not reach it.
    Standby,
    /// Serving.
    Ready,
    /// Finishing running requests. New requests are refused.
    Draining,
}

impl Phase {
    /// One word for people and scripts.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Standby => "standby",
            Self::Ready => "ready",
            Self::Draining => "draining",
        }
    }
}

/// The phase of the node; cheap to clone. Clones share it.
#[derive(Clone, Debug)]
pub struct Readiness {
    phase: Arc<watch::Sender<Phase>>,
    /// A task that has stopped for good makes the node unready.
    tasks: TaskHealth,
}

impl Default for Readiness {
    fn default() -> Self {
        let phase = Arc::new(watch::Sender::new(Phase::Starting));
        Self { phase, tasks: TaskHealth::default() }
    }
}

impl Readiness {
    /// The current phase.
    #[must_use]
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// The same with these tasks.
    #[must_use]
    pub fn with_tasks(self, tasks: TaskHealth) -> Self {
        Self { tasks, ..self }
    }

    /// Tasks that panicked and are not restarted, and why. The disk or partition that they served
    /// is stopped.
    #[must_use]
    pub fn stopped(&self) -> Vec<(&'static str, String)> {
        self.tasks.stopped()
    }

    /// Enters a phase.
    pub fn set(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }
}
