//! A store and its master key file: the first start, later ones, and what is refused.

#![expect(clippy::disallowed_methods, reason = "tests arrange files")]

use std::sync::Arc;

use crate::coordinator::simulated::SimulatedStore;
use crate::env::Env;
use crate::env::SeededRand;
use crate::env::SimClock;
use crate::env::Tasks;
use crate::telemetry::CapturedLog;

use super::*;

const NOW: Timestamp = Timestamp::from_ticks(639_309_636_000_000_000);

fn coordinator() -> Arc<dyn Coordinator> {
    let env = Env {
        clock: Arc::new(SimClock::new()),
        rand: Arc::new(SeededRand::new(1)),
        tasks: Tasks::new(),
    };
    Arc::new(SimulatedStore::new().open(&env))
}

async fn start(path: &Path, store: &Arc<dyn Coordinator>) -> Result<Opened, String> {
    open(path, store.as_ref(), true, NOW).await.map_err(|error| error.to_string())
}

#[tokio::test(start_paused = true)]
async fn first_start_makes_the_file_and_later_ones_need_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.key");
    let store = coordinator();
    let made = start(&path, &store).await.unwrap();
    assert!(!made.plain);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(start(&path, &store).await.unwrap().ring.id(), made.ring.id());

    let kept = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let error = start(&path, &store).await.unwrap_err();
    assert!(error.contains("one.key is missing") && error.contains("--master-key-file"), "{error}");
    assert!(!path.exists(), "no other ring is made");

    start(&path, &coordinator()).await.unwrap();
    let error = start(&path, &store).await.unwrap_err();
    assert!(error.contains(&made.ring.id().to_string()) && error.contains("one.key"), "{error}");

    std::fs::write(&path, kept.replace("active", "retired")).unwrap();
    let error = start(&path, &store).await.unwrap_err();
    assert!(error.contains("one.key: its checksum"), "{error}");
    std::fs::write(&path, kept).unwrap();
    start(&path, &store).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn older_store_is_reported_to_hold_plain_secrets_until_it_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.key");
    let store = coordinator();
    let opened = open(&path, store.as_ref(), false, NOW).await.unwrap();
    assert!(opened.plain);
    assert!(start(&path, &store).await.unwrap().plain, "until it was done");
    remember_sealed(store.as_ref(), opened.ring.id()).await.unwrap();
    assert!(!open(&path, store.as_ref(), false, NOW).await.unwrap().plain);
}

#[test]
fn rotation_keeps_the_keys_of_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.key");
    assert!(rotate(&path, NOW).is_err());
    let ring = make(NOW).unwrap();
    write(&path, &ring).unwrap();
    let rotated = rotate(&path, NOW).unwrap();
    let ids: Vec<_> = rotated.keys().iter().map(crate::auth::MasterKey::id).collect();
    assert_eq!((ids, rotated.active().id(), rotated.id()), (vec![1, 2], 2, ring.id()));
    assert_eq!(read(&path).unwrap().unwrap().to_text(), rotated.to_text());
}

#[tokio::test(start_paused = true)]
async fn key_file_that_was_wide_is_narrowed_or_warned_about_where_another_user_owns_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.key");
    let store = coordinator();
    start(&path, &store).await.unwrap();
    let open = || {
        let wide = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&path, wide).unwrap();
    };
    let mode = || path.metadata().unwrap().permissions().mode() & 0o777;
    let log = CapturedLog::default();
    let _kept = log.begin();
    open();
    start(&path, &store).await.unwrap();
    assert_eq!((mode(), log.lines_with(&["WARN"])), (0o600, 0), "{}", log.text());
    // Only the superuser can give a file away.
    if std::os::unix::fs::chown(&path, Some(12345), None).is_ok() {
        open();
        start(&path, &store).await.unwrap();
        let shown = path.display().to_string();
        let warning =
            ["WARN", "other users may read the master key file", "chmod it to 600", &shown];
        assert_eq!((mode(), log.lines_with(&warning)), (0o644, 1), "{}", log.text());
    }
}
