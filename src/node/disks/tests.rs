use std::sync::Arc;

use super::*;
use crate::coordinator::SimulatedStore;
use crate::env::Env;
use crate::env::SeededRand;
use crate::env::Tasks;
use crate::env::clock::SimClock;

fn coordinator() -> impl Coordinator {
    let env = Env {
        clock: Arc::new(SimClock::new()),
        rand: Arc::new(SeededRand::new(1)),
        tasks: Tasks::new(),
    };
    SimulatedStore::new().open(&env)
}

/// Directories that hold disks of these numbers.
#[expect(clippy::disallowed_methods, reason = "stands in for a disk")]
fn made(folder: &Path, disks: &[(&str, usize)]) -> Vec<PathBuf> {
    let make = |(name, number): &(&str, usize)| {
        let path = folder.join(name);
        std::fs::create_dir_all(&path).unwrap();
        let format = format!(r#"{{"format":1,"store":"7","disk":"9","number":{number}}}"#);
        std::fs::write(path.join(FORMAT_FILE), format).unwrap();
        path
    };
    disks.iter().map(make).collect()
}

fn given(data: &[PathBuf]) -> Given<'_> {
    Given { data, add: &[], without: &[] }
}

async fn refusal(coordinator: &dyn Coordinator, given: Given<'_>) -> String {
    check(coordinator, given).await.unwrap_err().to_string()
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_directory_is_named() {
    let coordinator = coordinator();
    let folder = tempfile::tempdir().unwrap();
    let data = made(folder.path(), &[("one", 0), ("two", 1), ("three", 2)]);
    check(&coordinator, given(&data[..1])).await.unwrap();
    remember(&coordinator, given(&data)).await.unwrap();
    let text = refusal(&coordinator, given(&data[..1])).await;
    assert!(text.contains("/two, ") && text.contains("/three") && !text.contains("/one"), "{text}");
    assert_eq!(check(&coordinator, given(&data)).await.unwrap(), Absent::default());
    let turned: Vec<PathBuf> = data.iter().rev().cloned().collect();
    check(&coordinator, given(&turned)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_new_directory_needs_to_be_asked_for() {
    let coordinator = coordinator();
    let folder = tempfile::tempdir().unwrap();
    let mut data = made(folder.path(), &[("one", 0), ("two", 1)]);
    remember(&coordinator, given(&data)).await.unwrap();
    data.push(folder.path().join("three"));
    let text = refusal(&coordinator, given(&data)).await;
    assert!(text.contains("/three") && text.contains("--add-disk"), "{text}");
    let asked = Given { add: &data[2..], ..given(&data) };
    assert_eq!(check(&coordinator, asked).await.unwrap(), Absent::default());
    made(folder.path(), &[("three", 2)]);
    remember(&coordinator, asked).await.unwrap();
    // From then on it is one of them, asked for or not.
    check(&coordinator, given(&data)).await.unwrap();
    check(&coordinator, asked).await.unwrap();
    assert!(refusal(&coordinator, given(&data[..2])).await.contains("/three"));
}

#[tokio::test(start_paused = true)]
async fn an_empty_directory_does_not_take_the_place_of_a_disk() {
    let coordinator = coordinator();
    let folder = tempfile::tempdir().unwrap();
    let data = made(folder.path(), &[("one", 0), ("two", 1)]);
    remember(&coordinator, given(&data)).await.unwrap();
    // The mount point of a disk that is not mounted; asking for it to be added does not help.
    let unmounted = [data[0].clone(), folder.path().join("three")];
    for add in [&[], &unmounted[1..]] {
        let text = refusal(&coordinator, Given { add, ..given(&unmounted) }).await;
        assert!(text.contains("/three") && !text.contains("/one"), "{text}");
    }
    let moved = made(folder.path(), &[("four", 1)]).remove(0);
    check(&coordinator, given(&[data[0].clone(), moved])).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_missing_disk_is_done_without_when_it_is_named() {
    let coordinator = coordinator();
    let folder = tempfile::tempdir().unwrap();
    let data = made(folder.path(), &[("one", 0), ("two", 1), ("three", 2)]);
    remember(&coordinator, given(&data)).await.unwrap();
    let without = [data[1].clone()];
    let left = [data[0].clone(), data[2].clone()];
    let choice = Given { without: &without, ..given(&left) };
    let absent = check(&coordinator, choice).await.unwrap();
    assert_eq!((absent.numbers, absent.without), ([1].into(), true));
    remember(&coordinator, choice).await.unwrap();
    // It is still a disk of the store: missed when it is not named, and welcome when it is back.
    assert!(refusal(&coordinator, given(&left)).await.contains("/two"));
    assert_eq!(check(&coordinator, given(&data)).await.unwrap(), Absent::default());
    let other = [folder.path().join("five")];
    let text = refusal(&coordinator, Given { without: &other, ..given(&left) }).await;
    assert!(text.contains("/five") && text.contains("/two"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_removed_disk_is_not_missed_and_not_taken_back() {
    let coordinator = coordinator();
    let folder = tempfile::tempdir().unwrap();
    let data = made(folder.path(), &[("one", 0), ("two", 1)]);
    remember(&coordinator, given(&data)).await.unwrap();
    set_state(&coordinator, 1, State::Draining).await.unwrap();
    remember(&coordinator, given(&data)).await.unwrap();
    assert_eq!(read(&coordinator).await.unwrap()[1].state, State::Draining, "over a restart");
    set_state(&coordinator, 1, State::Removed).await.unwrap();
    let absent = check(&coordinator, given(&data[..1])).await.unwrap();
    assert_eq!((absent.numbers, absent.without), ([1].into(), false));
    remember(&coordinator, given(&data[..1])).await.unwrap();
    let absent = check(&coordinator, given(&data[..1])).await.unwrap();
    assert_eq!(absent.numbers, [1].into(), "its number is not given again");
    assert!(refusal(&coordinator, given(&data)).await.contains("was removed"));
}

#[tokio::test(start_paused = true)]
async fn list_of_an_older_program_is_read_and_a_newer_one_refused() {
    let coordinator = coordinator();
    let folder = tempfile::tempdir().unwrap();
    let data = made(folder.path(), &[("one", 0), ("two", 1)]);
    let old = serde_json::to_vec(&data).unwrap();
    coordinator.txn(&[], &[Op::Put(Bytes::from_static(KEY), old.into())]).await.unwrap();
    let text = refusal(&coordinator, given(&data[..1])).await;
    assert!(text.contains("/two"), "{text}");
    let unmounted = [data[0].clone(), folder.path().join("three")];
    assert!(refusal(&coordinator, given(&unmounted)).await.contains("/three"));
    let absent = check(&coordinator, Given { without: &data[1..], ..given(&data[..1]) }).await;
    assert_eq!(absent.unwrap().numbers, [1].into());
    check(&coordinator, given(&data)).await.unwrap();
    remember(&coordinator, given(&data)).await.unwrap();
    let numbers: Vec<_> =
        read(&coordinator).await.unwrap().into_iter().map(|disk| disk.number).collect();
    assert_eq!(numbers, [Some(0), Some(1)]);
    let newer = Bytes::from_static(br#"{"version":3,"whatever":true}"#);
    coordinator.txn(&[], &[Op::Put(Bytes::from_static(KEY), newer)]).await.unwrap();
    assert!(refusal(&coordinator, given(&data)).await.contains("version 3"));
}
