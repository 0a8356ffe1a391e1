//! What a node does for its cluster runs in tasks that end with it.

use crate::env::Tasks;

/// Starts work that ends when these tasks are stopped.
pub(super) fn run(
    tasks: &Tasks,
    name: &'static str,
    work: impl Future<Output = ()> + Send + 'static,
) {
    let stop = tasks.stopping();
    drop(tasks.spawn(name, async move {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = work => {}
        }
    }));
}
