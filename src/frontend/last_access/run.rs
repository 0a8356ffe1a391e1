//! Writes last-access times beside the requests.

use std::sync::Arc;

use crate::frontend::state::FrontEnd;

/// Writes last-access times of a front end that tracks them until the program stops.
pub async fn run(front: Arc<FrontEnd>) {
    if let Some(reads) = &front.last_access {
        reads.write_until_stop(&front.router, &front.env).await;
    }
}
