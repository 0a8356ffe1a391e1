//! `blockyard cp`: copies files and blobs.

use std::collections::VecDeque;
use std::ffi::OsString;

use clap::Args;
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::json;

use crate::cli::escaped::shown;
use crate::cli::output::json_line;
use crate::cli::output::print;
use crate::cli::output::warn;
use crate::env::boxed;
use crate::node::config::Size;

use super::blocks::BLOCK_BYTES_MAX;
use super::cat;
use super::connect::ConnectArgs;
use super::connect::Login;
use super::copying::Copying;
use super::copying::Options;
use super::copying::parallel;
use super::error::FilesError;
use super::meter::Summary;
use super::place::Place;
use super::place::places;
use super::plan::Manner;
use super::plan::differ;
use super::plan::plan;
use super::service::Service;
use super::work::Job;
use super::work::Next;
use super::work::Work;

/// Requests at a time.
const PARALLEL: usize = 8;
/// Bytes of a block.
const BLOCK_SIZE: u64 = 8 << 20;

/// Arguments of `cp`.
#[derive(Args, Debug)]
#[command(override_usage = "blockyard cp [OPTIONS] SRC... DST")]
pub struct CpArgs {
    /// What to copy, and at the end to where: local paths, - for standard input or output, URLs of
    /// blobs and containers, or by://CONTAINER/BLOB at the endpoint
    #[arg(value_name = "PLACE", required = true, num_args = 2..)]
    pub paths: Vec<OsString>,
    /// Copy folders with everything in them: SRC/a becomes DST/a. Several sources keep their names:
    /// DST/SRC/a. Symbolic links in folders are not followed
    #[arg(long, short)]
    pub recursive: bool,
    /// Requests at a time; each needs memory for a block
    #[arg(long, value_name = "N", default_value_t = PARALLEL, value_parser = parallel)]
    pub parallel: usize,
    /// Bytes of a block: files with more are copied in blocks, and a killed copy goes on at the
    /// next block
    #[arg(long, value_name = "SIZE", default_value_t = Size::new(BLOCK_SIZE))]
    pub block_size: Size,
    /// Copy also files and blobs that are equal at the target: same size and Content-MD5; without a
    /// Content-MD5, same size and a target that was changed after the source
    #[arg(long, short)]
    pub force: bool,
    /// Create the container of DST if it does not exist
    #[arg(long)]
    pub make_container: bool,
    /// The Content-Type of uploads [default: from the file name extension]
    #[arg(long, value_name = "TYPE")]
    pub content_type: Option<String>,
    /// Keep downloads whose bytes are not those of the blob's Content-MD5
    #[arg(long)]
    pub no_verify: bool,
    /// Print a JSON object for each failure, and one with the counts
    #[arg(long)]
    pub json: bool,
    /// The endpoint and the account.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// Runs `blockyard cp`.
///
/// # Errors
/// [`FilesError`].
pub(in crate::cli) async fn cp(args: &CpArgs) -> Result<(), FilesError> {
    let login = Login::new(&args.connect.login)?;
    let block_size = args.block_size.bytes();
    if !(1..=BLOCK_BYTES_MAX).contains(&block_size) {
        return Err(FilesError::Usage("--block-size must be 1 to 4000MiB".to_owned()));
    }
    let mut sources = places(&args.paths, &login)?;
    let target = sources.pop().expect("clap demands two");
    let options = Options {
        parallel: args.parallel,
        block_size,
        force: args.force,
        verify: !args.no_verify,
        content_type: args.content_type.clone(),
    };
    let copying = Copying::new(Service::new(&args.connect)?, options);
    if matches!(target, Place::Standard) {
        if args.json {
            let text = "--json and - both need standard output";
            return Err(FilesError::Usage(text.to_owned()));
        }
        for source in sources {
            cat::print_blob(&copying, &source.remote()?, None).await?;
        }
        return Ok(());
    }
    if args.make_container
        && let Place::Remote(target) = &target
    {
        target.container()?;
        copying.service.make_container(target).await?;
    }
    let manner = Manner { recursive: args.recursive, several: sources.len() > 1 };
    let mut works = VecDeque::new();
    for source in sources {
        works.push_back(plan(&copying, source, &target, manner).await?);
    }
    differ(&works)?;
    let began = copying.service.env.clock.monotonic();
    run(&copying, works, args.json).await;
    let took = copying.service.env.clock.monotonic().saturating_sub(began);
    report(&summary(&copying, took.as_secs_f64()), args.json)
}

/// Does all of it, some at a time.
async fn run(copying: &Copying, works: VecDeque<Work>, json: bool) {
    let all = stream::unfold(works, |mut works| async move {
        loop {
            let next = works.front_mut()?.next(copying).await;
            match next {
                Ok(Some(next)) => return Some((next, works)),
                Ok(None) => drop(works.pop_front()),
                Err(error) => {
                    works.pop_front();
                    let (name, why) = ("the list of what to copy".to_owned(), error.to_string());
                    return Some((Next::Refused { name, why }, works));
                }
            }
        }
    });
    all.for_each_concurrent(copying.options.parallel, |next| async move {
        match next {
            Next::Job(job) => one(copying, &job, json).await,
            Next::LeftOut { name, why } => {
                copying.meter.note(&format!("blockyard: {} is left out: {why}\n", shown(&name)));
            }
            Next::Refused { name, why } => failed(copying, &name, &why, json),
        }
    })
    .await;
}

async fn one(copying: &Copying, job: &Job, json: bool) {
    copying.meter.expect(job.bytes());
    let done = match job {
        Job::Upload(job) => boxed(|| copying.upload(job)).await,
        Job::Download(job) => boxed(|| copying.download(job)).await,
        Job::Transfer(job) => boxed(|| copying.transfer(job)).await,
        Job::Input(target) => boxed(|| copying.upload_input(target)).await,
    };
    match done {
        Ok(outcome) => copying.meter.ended(outcome, job.bytes()),
        Err(error) => failed(copying, &job.name(), &error.to_string(), json),
    }
}

fn failed(copying: &Copying, name: &str, why: &str, json: bool) {
    copying.meter.failed(&format!("blockyard: FAILED {}: {}\n", shown(name), shown(why)));
    if json {
        drop(print(&json_line(&json!({ "failed_name": name, "why": why }))));
    }
}

fn summary(copying: &Copying, seconds: f64) -> Summary {
    use std::sync::atomic::Ordering::Relaxed;
    let traffic = &copying.service.traffic;
    Summary {
        sent_bytes: traffic.sent.load(Relaxed),
        received_bytes: traffic.received.load(Relaxed),
        repeated_requests: traffic.repeated.load(Relaxed),
        ..copying.meter.end(seconds)
    }
}

fn report(summary: &Summary, json: bool) -> Result<(), FilesError> {
    let printed = if json { print(&json_line(summary)) } else { warn(&summary.line()) };
    printed.map_err(|error| FilesError::Wrong(error.to_string()))?;
    if summary.failed == 0 {
        return Ok(());
    }
    let all = summary.files + summary.skipped + summary.failed;
    Err(FilesError::Failed { failed: summary.failed, all })
}
