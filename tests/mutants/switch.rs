//! Which planted fault is switched on. The runner puts this file into its copy of the tree, never
//! into the tree itself.

use std::sync::OnceLock;

/// Whether the environment names this fault.
pub(crate) fn is(name: &str) -> bool {
    static NAME: OnceLock<Option<String>> = OnceLock::new();
    #[expect(clippy::disallowed_methods, reason = "a setting of a test")]
    let chosen = NAME.get_or_init(|| std::env::var("PLANTED_FAULT").ok());
    chosen.as_deref() == Some(name)
}
