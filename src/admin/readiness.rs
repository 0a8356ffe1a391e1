//! Whether the node serves, as others may ask.

use std::sync::Arc;

use tokio::sync::watch;

use crate::env::TaskHealth;

/// Where in its life a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Recovering; requests wait.
    Starting,
    /// Serving.
    Ready,
    /// Finishing what runs; new requests are refused.
    Draining,
}

impl Phase {
    /// One word for people and scripts.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Draining => "draining",
        }
    }
}

/// The phase, shared between the node and those who ask; cheap to clone.
#[derive(Clone, Debug)]
pub struct Readiness {
    phase: Arc<watch::Sender<Phase>>,
    /// Tasks that have stopped for good make a node unready.
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

    /// The same phase, of a node with these tasks.
    #[must_use]
    pub fn with_tasks(self, tasks: TaskHealth) -> Self {
        Self { tasks, ..self }
    }

    /// Tasks that panicked and are not started again, and why: what they served is stopped.
    #[must_use]
    pub fn stopped(&self) -> Vec<(&'static str, String)> {
        self.tasks.stopped()
    }

    /// Enters a phase.
    pub fn set(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }
}
