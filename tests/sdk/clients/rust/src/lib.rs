//! What both binaries share: one JSON line for each group, `{"group", "error"}`.

use std::future::Future;

/// Runs one group in a task of its own, so that a panic fails that group alone, and prints its
/// line.
pub async fn group<T>(name: &str, run: impl Future<Output = Result<T, String>> + Send + 'static) -> Option<T>
where
    T: Send + 'static,
{
    let (value, error) = match tokio::spawn(run).await {
        Ok(Ok(value)) => (Some(value), String::new()),
        Ok(Err(error)) => (None, error),
        Err(panic) => (None, message(panic)),
    };
    let short: String = error.chars().take(1500).collect();
    println!("{}", serde_json::json!({"group": name, "error": short}));
    value
}

/// The text of a panic.
fn message(error: tokio::task::JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_else(|| "panicked".to_owned()),
        Err(error) => error.to_string(),
    }
}

/// A setting from the environment.
#[must_use]
pub fn setting(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}
