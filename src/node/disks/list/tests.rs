use std::sync::Arc;

use crate::coordinator::SimulatedStore;
use crate::env::Env;
use crate::env::SeededRand;
use crate::env::Tasks;
use crate::env::clock::SimClock;

use super::*;

/// Of a node alone.
async fn check(
    coordinator: &dyn Coordinator,
    given: Given<'_>,
    numbers: &Numbers,
) -> Result<Absent, NodeError> {
    super::check(coordinator, given, numbers, false).await
}

fn coordinator() -> impl Coordinator {
    let env = Env {
        clock: Arc::new(SimClock::new()),
        rand: Arc::new(SeededRand::new(1)),
        tasks: Tasks::new(),
    };
    SimulatedStore::new().open(&env)
}

/// A new disk.
const NEW: Option<usize> = None;

fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(|name| Path::new("/disks").join(name)).collect()
}

fn given(data: &[PathBuf]) -> Given<'_> {
    Given { data, add: &[], without: &[] }
}

async fn refusal(coordinator: &dyn Coordinator, given: Given<'_>, numbers: &Numbers) -> String {
    check(coordinator, given, numbers).await.unwrap_err().to_string()
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_directory_is_named() {
    let coordinator = coordinator();
    let data = paths(&["one", "two", "three"]);
    let numbers = [Some(0), Some(1), Some(2)];
    check(&coordinator, given(&data[..1]), &numbers[..1]).await.unwrap();
    remember(&coordinator, given(&data), &numbers).await.unwrap();
    let text = refusal(&coordinator, given(&data[..1]), &numbers[..1]).await;
    assert!(text.contains("/two, ") && text.contains("/three") && !text.contains("/one"), "{text}");
    assert_eq!(check(&coordinator, given(&data), &numbers).await.unwrap(), Absent::default());
    let turned: Vec<PathBuf> = data.iter().rev().cloned().collect();
    check(&coordinator, given(&turned), &[Some(2), Some(1), Some(0)]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_new_directory_needs_to_be_asked_for() {
    let coordinator = coordinator();
    let data = paths(&["one", "two", "three"]);
    remember(&coordinator, given(&data[..2]), &[Some(0), Some(1)]).await.unwrap();
    let text = refusal(&coordinator, given(&data), &[Some(0), Some(1), NEW]).await;
    assert!(text.contains("/three") && text.contains("--add-disk"), "{text}");
    let asked = Given { add: &data[2..], ..given(&data) };
    let absent = check(&coordinator, asked, &[Some(0), Some(1), NEW]).await.unwrap();
    assert_eq!(absent, Absent::default());
    let numbers = [Some(0), Some(1), Some(2)];
    remember(&coordinator, asked, &numbers).await.unwrap();
    // From then on it is one of them, asked for or not.
    check(&coordinator, given(&data), &numbers).await.unwrap();
    check(&coordinator, asked, &numbers).await.unwrap();
    assert!(refusal(&coordinator, given(&data[..2]), &numbers[..2]).await.contains("/three"));
}

#[tokio::test(start_paused = true)]
async fn an_empty_directory_does_not_take_the_place_of_a_disk() {
    let coordinator = coordinator();
    let data = paths(&["one", "two"]);
    remember(&coordinator, given(&data), &[Some(0), Some(1)]).await.unwrap();
    // The mount point of a disk that is not mounted; asking for it to be added does not help.
    let unmounted = paths(&["one", "three"]);
    for add in [&[], &unmounted[1..]] {
        let given = Given { add, ..given(&unmounted) };
        let text = refusal(&coordinator, given, &[Some(0), NEW]).await;
        assert!(text.contains("/three") && !text.contains("/one"), "{text}");
    }
    let moved = paths(&["one", "four"]);
    check(&coordinator, given(&moved), &[Some(0), Some(1)]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_missing_disk_is_done_without_when_it_is_named() {
    let coordinator = coordinator();
    let data = paths(&["one", "two", "three"]);
    let numbers = [Some(0), Some(1), Some(2)];
    remember(&coordinator, given(&data), &numbers).await.unwrap();
    let without = [data[1].clone()];
    let left = [data[0].clone(), data[2].clone()];
    let left_numbers = [Some(0), Some(2)];
    let choice = Given { without: &without, ..given(&left) };
    let absent = check(&coordinator, choice, &left_numbers).await.unwrap();
    assert_eq!((absent.numbers, absent.without), ([1].into(), true));
    remember(&coordinator, choice, &left_numbers).await.unwrap();
    // It is still a disk of the store: missed when it is not named, and welcome when it is back.
    assert!(refusal(&coordinator, given(&left), &left_numbers).await.contains("/two"));
    assert_eq!(check(&coordinator, given(&data), &numbers).await.unwrap(), Absent::default());
    let other = paths(&["five"]);
    let choice = Given { without: &other, ..given(&left) };
    let text = refusal(&coordinator, choice, &left_numbers).await;
    assert!(text.contains("/five") && text.contains("/two"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_removed_disk_is_not_missed_and_not_taken_back() {
    let coordinator = coordinator();
    let data = paths(&["one", "two"]);
    let numbers = [Some(0), Some(1)];
    remember(&coordinator, given(&data), &numbers).await.unwrap();
    set_state(&coordinator, 1, State::Draining).await.unwrap();
    remember(&coordinator, given(&data), &numbers).await.unwrap();
    assert_eq!(read(&coordinator).await.unwrap()[1].state, State::Draining, "over a restart");
    set_state(&coordinator, 1, State::Removed).await.unwrap();
    let absent = check(&coordinator, given(&data[..1]), &numbers[..1]).await.unwrap();
    assert_eq!((absent.numbers, absent.without), ([1].into(), false));
    remember(&coordinator, given(&data[..1]), &numbers[..1]).await.unwrap();
    let absent = check(&coordinator, given(&data[..1]), &numbers[..1]).await.unwrap();
    assert_eq!(absent.numbers, [1].into(), "its number is not given again");
    assert!(refusal(&coordinator, given(&data), &numbers).await.contains("was removed"));
}

#[tokio::test(start_paused = true)]
async fn list_of_an_older_program_is_read_and_a_newer_one_refused() {
    let coordinator = coordinator();
    let data = paths(&["one", "two"]);
    let both = [Some(0), Some(1)];
    let old = serde_json::to_vec(&data).unwrap();
    coordinator.txn(&[], &[Op::Put(Bytes::from_static(KEY), old.into())]).await.unwrap();
    let text = refusal(&coordinator, given(&data[..1]), &both[..1]).await;
    assert!(text.contains("/two"), "{text}");
    let unmounted = paths(&["one", "three"]);
    assert!(refusal(&coordinator, given(&unmounted), &[Some(0), NEW]).await.contains("/three"));
    let choice = Given { without: &data[1..], ..given(&data[..1]) };
    let absent = check(&coordinator, choice, &both[..1]).await;
    assert_eq!(absent.unwrap().numbers, [1].into());
    check(&coordinator, given(&data), &both).await.unwrap();
    remember(&coordinator, given(&data), &both).await.unwrap();
    let numbers: Vec<_> =
        read(&coordinator).await.unwrap().into_iter().map(|disk| disk.number).collect();
    assert_eq!(numbers, both);
    let newer = Bytes::from_static(br#"{"version":3,"whatever":true}"#);
    coordinator.txn(&[], &[Op::Put(Bytes::from_static(KEY), newer)]).await.unwrap();
    assert!(refusal(&coordinator, given(&data), &both).await.contains("version 3"));
}
