//! Backups of a node that stops.

use std::fs::File;

use rustix::fs::CWD;
use rustix::fs::FileType;
use rustix::fs::Mode;
use rustix::fs::mknodat;

use tokio::runtime::Handle;
use tokio::task::block_in_place;

use super::*;

const TEXT: &str = "the node stops: run the command again";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_that_a_stop_ends_is_reported_as_stopped_not_as_damaged() {
    let at = Folders::new();
    let running = Running::start(&at.data).await.unwrap();
    running.content(1_000).await;
    let capacity = Arc::clone(&running.storage.capacity);
    let stop = move || Handle::current().block_on(capacity.shutdown());
    // The stop comes before the first extent is copied.
    let progress = Arc::new(move |_: Step| block_in_place(&stop));
    let error = backup(&running.source(), &at.backup, &running.env, progress).await.unwrap_err();
    assert_eq!(error.to_string(), TEXT);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_that_a_stop_ends_before_the_cut_is_reported_as_stopped_not_as_damaged() {
    let at = Folders::new();
    let running = Running::start(&at.data).await.unwrap();
    // The index stops before what it needs.
    running.assembly.index.index.shutdown().await;
    let made = backup(&running.source(), &at.backup, &running.env, silent()).await;
    assert_eq!(made.unwrap_err().to_string(), TEXT);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_does_not_answer_does_not_keep_the_node_from_stopping() {
    let at = Folders::new();
    let running = Running::start(&at.data).await.unwrap();
    // The mark is read, as from a mount that hangs: what reads it waits for who writes to it.
    let mark = at.other("backup.incomplete");
    mknodat(CWD, &mark, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let backups = NodeBackups::new(running.source(), running.env.clone());
    backups.begin(at.root.path().to_owned()).unwrap();
    let hung = tokio::task::spawn_blocking(|| File::options().write(true).open(mark).unwrap());
    let hung = hung.await.unwrap();
    let stopped = tokio::time::timeout(Duration::from_secs(60), running.stop()).await;
    let view = backups.last().unwrap();
    // The reader goes on, so that the test ends whatever it found.
    drop(hung);
    stopped.expect("the node waits for the directory");
    assert_eq!((view.state.as_str(), view.error.as_deref()), ("failed", Some(TEXT)));
}
