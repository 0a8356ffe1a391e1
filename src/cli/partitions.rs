//! `blockyard partitions`: its requests and its output.

use std::time::Duration;

use http::Method;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::json;

use crate::admin::Made;
use crate::admin::MapView;
use crate::admin::PartitionView;
use crate::env::terminal_size;
use crate::node::config::Size;

use super::admin::args::AdminArgs;
use super::admin::client::AdminClient;
use super::admin::client::ClientError;
use super::error::CliError;
use super::live::draws;
use super::live::live;
use super::output::json_line;
use super::output::on_terminal;
use super::output::print;
use super::table::table;

pub(super) mod args;
mod watch;

use args::PartitionsCommand;
use args::PrepareArgs;
use args::WatchArgs;
use watch::Screen;

const PATH: &str = "/admin/partitions";
/// The time between two observations of `watch`.
const TICK: Duration = Duration::from_secs(1);
/// Changes `watch` shows.
const CHANGES: u64 = 8;
/// The assumed size of a terminal that does not report it.
const SCREEN: Screen = Screen { columns: 80, lines: 24 };

/// Runs `blockyard partitions`.
///
/// # Errors
/// [`CliError`].
pub(super) async fn partitions(command: &PartitionsCommand) -> Result<(), CliError> {
    match command {
        PartitionsCommand::List(args) => {
            let client = AdminClient::new(&args.admin)?;
            let answer = client.call(Method::GET, PATH, None).await?;
            if args.json {
                print(&json_line(&answer))
            } else {
                print(&list(&read(answer)?, on_terminal()))
            }
        }
        PartitionsCommand::Split(args) => {
            let body = json!({ "at": args.at, "partition": args.partition, "ways": args.ways });
            change(&args.admin, "split", &body, args.json).await
        }
        PartitionsCommand::Stripe(args) => {
            let body = json!({ "partition": args.partition, "stripes": args.stripes });
            change(&args.admin, "stripe", &body, args.json).await
        }
        PartitionsCommand::Unstripe(args) => {
            let body = json!({ "partition": args.partition });
            change(&args.admin, "unstripe", &body, args.json).await
        }
        PartitionsCommand::Merge(args) => {
            let body = json!({ "partitions": args.partitions });
            change(&args.admin, "merge", &body, args.json).await
        }
        PartitionsCommand::Move(args) => {
            let mut body = json!({ "partition": args.partition });
            if let Some(host) = args.host {
                body["host"] = host.into();
            }
            if let Some(node) = &args.node {
                body["node"] = node.as_str().into();
            }
            change(&args.admin, "move", &body, args.json).await
        }
        PartitionsCommand::Prepare(args) => {
            change(&args.admin, "prepare", &preparation(args), args.json).await
        }
        PartitionsCommand::Watch(args) => watch(args).await,
    }
}

fn preparation(args: &PrepareArgs) -> Value {
    json!({
        "container": args.container,
        "prefix": args.prefix,
        "ways": args.ways,
        "like": args.like,
        "characters": args.characters,
        "spread": args.spread,
    })
}

async fn change(
    admin: &AdminArgs,
    what: &str,
    body: &Value,
    as_json: bool,
) -> Result<(), CliError> {
    let client = AdminClient::new(admin)?;
    let answer = client.call(Method::POST, &format!("{PATH}/{what}"), Some(body)).await?;
    if as_json {
        return print(&json_line(&answer));
    }
    print(&outcome(&read(answer)?))
}

fn outcome(made: &Made) -> String {
    let ids: Vec<String> = made.partitions.iter().map(u64::to_string).collect();
    let what = match made.changes {
        0 => "nothing to do: the partitions are there".to_owned(),
        1 => format!("done; writes paused {:.3} ms", made.pause_ms),
        many => format!(
            "done in {many} changes; the longest pause of writes was {:.3} ms",
            made.pause_ms
        ),
    };
    format!("{what}\npartitions {}\n", ids.join(" "))
}

/// The columns of `list`.
const HEADS: [&str; 14] = [
    "id", "host", "epoch", "reads", "writes", "lists", "cpu", "waits", "logged", "rows", "runs",
    "memtable", "log", "from",
];

/// All partitions.
fn list(map: &MapView, on_terminal: bool) -> String {
    let rows: Vec<[String; 14]> = map.partitions.iter().map(cells).collect();
    let page = table(on_terminal, HEADS, &rows);
    if !on_terminal {
        return page;
    }
    let (count, hosts) = (map.partitions.len(), map.hosts);
    page + &format!(
        "{count} partitions on {hosts} hosts, {} changes since the start; counts since the host opened each\n",
        map.latest_change
    )
}

fn cells(partition: &PartitionView) -> [String; 14] {
    // A name may contain control characters, which a terminal must not get.
    let from = match partition.from.as_str() {
        "" => "(the beginning)".to_owned(),
        from => from.escape_debug().to_string(),
    };
    let stripe = partition.stripe.as_ref();
    let stripe = stripe.map(|stripe| format!("  stripe {} of {}", stripe.number + 1, stripe.of));
    let stopped = partition.stopped.as_ref();
    let stopped = stopped.map(|why| format!("  takes no writes: {}", why.escape_debug()));
    [
        partition.id.to_string(),
        host_of(partition.node.as_deref(), partition.host),
        partition.epoch.to_string(),
        partition.reads.to_string(),
        partition.writes.to_string(),
        partition.lists.to_string(),
        time(partition.cpu_us),
        time(partition.queue_age_us),
        Size::new(partition.log_bytes).rounded(),
        partition.rows.to_string(),
        Size::new(partition.run_bytes).rounded(),
        Size::new(partition.memtable_bytes).rounded(),
        partition.log_extents.to_string(),
        from + &stripe.unwrap_or_default() + &stopped.unwrap_or_default(),
    ]
}

/// A host, with its node in a cluster.
fn host_of(node: Option<&str>, host: u64) -> String {
    match node {
        Some(node) => format!("{}/{host}", node.escape_debug()),
        None => host.to_string(),
    }
}

/// A duration in few digits.
fn time(microseconds: u64) -> String {
    match microseconds {
        0..10_000 => format!("{microseconds} us"),
        10_000..10_000_000 => format!("{} ms", microseconds / 1_000),
        _ => format!("{} s", microseconds / 1_000_000),
    }
}

async fn watch(args: &WatchArgs) -> Result<(), CliError> {
    let client = AdminClient::new(&args.admin)?;
    live(!args.json, observe(&client, args, !args.json && draws())).await
}

async fn observe(client: &AdminClient, args: &WatchArgs, draws: bool) -> Result<(), CliError> {
    let mut before: Option<MapView> = None;
    let mut number = 0;
    loop {
        // The latest few changes are requested each time: a frame shows what two answers have.
        let latest = before.as_ref().map_or(u64::MAX, |map| map.latest_change);
        let after = latest.saturating_sub(CHANGES);
        // Each line of JSON is complete.
        let known = before.as_ref().filter(|_| !args.json);
        let since = known.map_or_else(String::new, |map| format!("&since={}", map.number));
        let answer =
            client.call(Method::GET, &format!("{PATH}?after={after}{since}"), None).await?;
        if args.json {
            print(&json_line(&answer))?;
        }
        let now: MapView = read(answer)?;
        let now = match known {
            Some(known) => now.over(known),
            None => now,
        };
        let from = before.as_ref().unwrap_or(&now);
        if draws {
            let screen = terminal_size().map_or(SCREEN, |size| Screen {
                columns: size.columns.into(),
                lines: size.lines.into(),
            });
            print(&watch::frame(from, &now, screen))?;
        } else if !args.json {
            print(&watch::lines(from, &now))?;
        }
        before = Some(now);
        number += 1;
        if args.seconds.is_some_and(|seconds| number > seconds) {
            return Ok(());
        }
        tokio::time::sleep(TICK).await;
    }
}

fn read<T: DeserializeOwned>(answer: Value) -> Result<T, CliError> {
    let read = serde_json::from_value(answer);
    Ok(read.map_err(|error| ClientError::Refused {
        code: "Version".to_owned(),
        message: format!("this node's answer is of another version: {error}"),
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::PartitionView;
    use crate::admin::StripeView;

    #[test]
    fn tables_show_every_partition_and_no_control_characters() {
        let stripe = Some(StripeView { number: 1, of: 4 });
        let first =
            PartitionView { id: 1, rows: 7, run_bytes: 20_480, stripe, ..PartitionView::default() };
        let second = PartitionView {
            id: 22,
            host: 1,
            from: "photos/raw/a\u{1b}[31m".to_owned(),
            stopped: Some("closing".to_owned()),
            ..PartitionView::default()
        };
        let map = MapView { hosts: 2, partitions: vec![first, second], ..MapView::default() };
        let text = list(&map, true);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(
            lines[1].contains(" 20KiB ") && lines[1].ends_with("(the beginning)  stripe 2 of 4"),
            "{text}"
        );
        assert!(lines[2].ends_with(r"photos/raw/a\u{1b}[31m  takes no writes: closing"), "{text}");
        assert!(lines[3].starts_with("2 partitions on 2 hosts"), "{text}");
        let plain = list(&map, false);
        let rows: Vec<Vec<&str>> = plain.lines().map(|line| line.split('\t').collect()).collect();
        assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [14; 3], "{plain}");
    }

    #[test]
    fn outcomes_say_what_was_done() {
        let made = |changes| Made { partitions: vec![7, 8], changes, pause_ms: 1.25 };
        assert_eq!(outcome(&made(1)), "done; writes paused 1.250 ms\npartitions 7 8\n");
        assert!(outcome(&made(3)).starts_with("done in 3 changes; the longest pause"));
        assert!(outcome(&made(0)).starts_with("nothing to do"));
    }

    #[test]
    fn lists_tell_what_partitions_had_to_do() {
        let partition = PartitionView {
            reads: 70,
            writes: 800,
            lists: 9,
            cpu_us: 2_345_678,
            queue_age_us: 1_234,
            log_bytes: 20_480,
            ..PartitionView::default()
        };
        let text = list(&MapView { partitions: vec![partition], ..MapView::default() }, true);
        let columns = |line: usize| -> Vec<&str> {
            text.lines().nth(line).unwrap().split_whitespace().collect()
        };
        let wanted = ["reads", "writes", "lists", "cpu", "waits", "logged"];
        assert_eq!(columns(0)[3..9], wanted);
        assert_eq!(columns(1)[3..11], ["70", "800", "9", "2345", "ms", "1234", "us", "20KiB"]);
    }

    #[test]
    fn times_are_short() {
        let times = [0, 9_999, 10_000, 9_999_999, 10_000_000].map(time);
        assert_eq!(times, ["0 us", "9999 us", "10 ms", "9999 ms", "10 s"]);
    }
}
