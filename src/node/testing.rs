//! What tests of stores on a real disk share.

use std::path::Path;
use std::sync::Arc;

use crate::env::Env;
use crate::env::OsClock;
use crate::env::OsRand;
use crate::env::Tasks;
use crate::node::config::Config;
use crate::node::settings::Settings;
use crate::node::size::Size;

/// The machine's clock, and tasks of its own.
pub(in crate::node) fn env() -> Env {
    Env { clock: Arc::new(OsClock::new()), rand: Arc::new(OsRand), tasks: Tasks::new() }
}

/// A small store in one data directory, which nothing reads in the background.
pub(in crate::node) fn config(data: &Path) -> Config {
    let settings = Settings {
        data: Some(vec![data.to_owned()]),
        journal_bytes: Some(Size::new(1 << 20)),
        scrub_bytes_per_second: Some(Size::new(0)),
        ..Settings::default()
    };
    Config::from_settings(settings).unwrap()
}
