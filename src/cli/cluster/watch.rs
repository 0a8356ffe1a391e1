//! `blockyard cluster watch`: shows a cluster again and again.

use std::time::Duration;

use serde_json::json;

use crate::cli::error::CliError;
use crate::cli::live::draws;
use crate::cli::live::live;
use crate::cli::output::json_line;
use crate::cli::output::print;
use crate::env::Env;
use crate::node::cluster::status;

use super::ClusterWatchArgs;
use super::shown::as_json;
use super::shown::as_text;

/// How often the coordinator is asked.
const TICK: Duration = Duration::from_secs(1);

/// Shows the cluster until ctrl-C. The first observation must succeed: a wrong address is told.
/// Later ones may fail for as long as etcd is away.
pub(super) async fn watch(args: &ClusterWatchArgs, env: &Env) -> Result<(), CliError> {
    live(!args.json, observe(args, env)).await
}

async fn observe(args: &ClusterWatchArgs, env: &Env) -> Result<(), CliError> {
    let (mut number, mut last) = (0, String::new());
    loop {
        let seen = match status(&args.coordinator, env).await {
            Ok(status) if args.json => json_line(&as_json(&status)),
            Ok(status) => as_text(&status),
            Err(error) if number == 0 => return Err(error.into()),
            Err(error) if args.json => json_line(&json!({ "error": error.to_string() })),
            Err(error) => format!("the cluster cannot be shown now: {error}\n"),
        };
        if args.json {
            print(&seen)?;
        } else if draws() {
            print(&frame(&seen))?;
        } else if seen != last {
            print(&format!("{seen}\n"))?;
        }
        last = seen;
        number += 1;
        if args.seconds.is_some_and(|seconds| number > seconds) {
            return Ok(());
        }
        env.clock.sleep(TICK).await;
    }
}

/// The text on an empty screen, with terminal codes. What was there is overwritten, so that nothing
/// flickers.
fn frame(text: &str) -> String {
    let lines: String = text.lines().map(|line| format!("{line}\x1b[K\r\n")).collect();
    format!("\x1b[H{lines}\x1b[J")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_begins_at_the_top_and_leaves_nothing_of_the_last_one() {
        assert_eq!(frame("a\nb\n"), "\x1b[Ha\x1b[K\r\nb\x1b[K\r\n\x1b[J");
    }
}
