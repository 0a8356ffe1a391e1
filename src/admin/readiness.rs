//! Whether the node serves, as others may ask.

use std::sync::Arc;

use tokio::sync::watch;

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
pub struct Readiness(Arc<watch::Sender<Phase>>);

impl Default for Readiness {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Phase::Starting)))
    }
}

impl Readiness {
    /// The current phase.
    #[must_use]
    pub fn phase(&self) -> Phase {
        *self.0.borrow()
    }

    /// Enters a phase.
    pub fn set(&self, phase: Phase) {
        self.0.send_replace(phase);
    }
}
