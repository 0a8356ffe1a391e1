//! Stub front page; see the constitution.
