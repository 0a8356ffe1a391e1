//! The workloads of a run.

use crate::cli::files::error::FilesError;

use super::args::BenchArgs;
use super::args::Load;
use super::driver::workload::Kind;
use super::driver::workload::Order;
use super::driver::workload::Set;
use super::driver::workload::Unit;
use super::driver::workload::Workload;

/// Largest body. A body is a slice of one buffer.
const LARGEST: u64 = 256 << 20;
/// Names in a page.
const PAGE: u32 = 1_000;
/// The smallest part of an upload of S3, but for the last one.
const PART_MIN: usize = 5 << 20;

/// One workload, and the size of its bodies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) workload: Workload,
    pub(super) size: usize,
}

/// The workloads that the arguments name. All names begin with `prefix`.
///
/// # Errors
/// [`FilesError::Usage`].
pub(super) fn steps(args: &BenchArgs, prefix: &str, is_s3: bool) -> Result<Vec<Step>, FilesError> {
    if args.rate.is_some_and(|rate| !(0.001..=1e9).contains(&rate)) {
        return Err(FilesError::Usage("--rate must be from 0.001 to 1e9".to_owned()));
    }
    let all = args.workload.iter().enumerate();
    all.map(|(place, load)| step((place, *load), args, prefix, is_s3)).collect()
}

/// The largest body of all workloads.
pub(super) fn largest(steps: &[Step]) -> usize {
    steps.iter().map(|step| step.size).max().unwrap_or(0)
}

fn step(
    (place, load): (usize, Load),
    args: &BenchArgs,
    prefix: &str,
    is_s3: bool,
) -> Result<Step, FilesError> {
    let wanted = args.size.map(crate::node::config::Size::bytes);
    let bytes = wanted.unwrap_or(if load == Load::Blocks { 8 << 20 } else { 4 << 10 });
    let size = usize::try_from(bytes).unwrap_or(usize::MAX);
    let wrong = |why: &str| Err(FilesError::Usage(format!("--size {bytes}: {why}")));
    if bytes == 0 || bytes > LARGEST {
        return wrong("between 1 byte and 256MiB");
    }
    if load == Load::Blocks && is_s3 && args.blocks > 1 && size < PART_MIN {
        return wrong("S3 takes no part below 5MiB but the last one; see --blocks");
    }
    if load == Load::Range && size < RANGES {
        return wrong("a sixteenth of a blob must have a byte");
    }
    let count = args.blobs;
    // Leaked: names are needed as long as the program runs.
    let set = |of: &str, count| {
        let name: &'static str = format!("{prefix}{of}").leak();
        Set { name, count, size, order: Order::Counted }
    };
    // Workloads that only read have the blobs in common. Each that writes has names of its own.
    let read = || set("read", count);
    let before = args.workload.iter().take(place).filter(|other| **other == load).count();
    let own = match before {
        0 => load.name().to_owned(),
        before => format!("{}-{}", load.name(), before + 1),
    };
    let kind = match load {
        Load::Put => Kind::Put(set(&own, 0)),
        Load::Get => Kind::Get(read()),
        Load::Range => Kind::Range(read(), size / RANGES),
        Load::Head => Kind::Head(read()),
        Load::List => Kind::List(read(), PAGE),
        Load::Mixed => Kind::Mixed(read(), set(&own, count)),
        Load::Blocks => Kind::Blocks(set(&own, 0), args.blocks),
        Load::Delete => Kind::Delete(set(&own, 0)),
    };
    let ops = args.ops.unwrap_or(count);
    let concurrency = usize::try_from(args.clients).unwrap_or(usize::MAX);
    Ok(Step {
        workload: Workload { name: load.name(), kind, ops, concurrency, unit: Unit::Op },
        size,
    })
}

/// Of one blob.
const RANGES: usize = 16;

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: BenchArgs,
    }

    fn planned(line: &str, is_s3: bool) -> Result<Vec<(String, usize, u64)>, String> {
        let args = Line::try_parse_from(["bench"].into_iter().chain(line.split_whitespace()));
        let args = args.map_err(|error| error.to_string())?.args;
        let steps = steps(&args, "p/", is_s3).map_err(|error| error.to_string())?;
        let shown = |step: &Step| (step.workload.name.to_owned(), step.size, step.workload.ops);
        Ok(steps.iter().map(shown).collect())
    }

    #[test]
    fn workloads_have_the_sizes_and_numbers_that_are_given() {
        let plan = planned("--workload put,blocks,list", false).unwrap();
        assert_eq!(plan[0], ("put".to_owned(), 4 << 10, 1_000));
        assert_eq!(plan[1], ("blocks".to_owned(), 8 << 20, 1_000));
        assert_eq!(plan[2], ("list".to_owned(), 4 << 10, 1_000));
        let plan = planned("-w mixed,delete --size 1MiB --ops 7 --blobs 20", true).unwrap();
        assert_eq!(plan[1], ("delete".to_owned(), 1 << 20, 7));
    }

    #[test]
    fn each_workload_that_writes_has_names_of_its_own() {
        let words = ["bench", "-w", "put,put,get,mixed,mixed,blocks,delete,put,delete"];
        let args = Line::try_parse_from(words).unwrap().args;
        let mut names = Vec::new();
        for step in steps(&args, "p/", false).unwrap() {
            match step.workload.kind {
                Kind::Put(set) | Kind::Blocks(set, _) | Kind::Delete(set) | Kind::Mixed(_, set) => {
                    names.push(set.name);
                }
                Kind::Get(set) => assert_eq!(set.name, "p/read"),
                kind @ (Kind::PutSigned(_)
                | Kind::Range(..)
                | Kind::Head(_)
                | Kind::List(..)
                | Kind::Pages(..)
                | Kind::Idle
                | Kind::Audit(_)
                | Kind::Churn
                | Kind::Ready(_)) => panic!("{kind:?}"),
            }
        }
        let wanted = ["put", "put-2", "mixed", "mixed-2", "blocks", "delete", "put-3", "delete-2"];
        assert_eq!(names, wanted.map(|name| format!("p/{name}")));
    }

    #[test]
    fn what_cannot_be_is_refused_and_says_why() {
        for (line, is_s3, why) in [
            ("--size 0", false, "between 1 byte"),
            ("--size 300MiB", false, "between 1 byte"),
            ("-w blocks --size 1MiB", true, "5MiB"),
            ("-w range --size 15", false, "sixteenth"),
            ("--rate 0", false, "--rate"),
            ("--rate NaN", false, "--rate"),
            ("--rate 1e-20", false, "--rate"),
            ("--clients 0", false, "clients"),
            ("--ops 5 --duration 1s", false, "cannot be used"),
            ("-w fly", false, "possible values"),
        ] {
            let refused = planned(line, is_s3).unwrap_err();
            assert!(refused.contains(why), "{line}: {refused}");
        }
        assert!(planned("-w blocks --size 1MiB --blocks 1", true).is_ok());
        assert!(planned("-w blocks --size 1MiB", false).is_ok());
    }
}
