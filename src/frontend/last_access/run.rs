//! The task that writes last-access times.

use std::sync::Arc;

use crate::frontend::state::FrontEnd;

/// Writes last-access times until the program stops, if the front end tracks them.
pub async fn run(front: Arc<FrontEnd>) {
    if let Some(reads) = &front.last_access {
        reads.write_until_stop(&front.rows.router, &front.env).await;
    }
}
