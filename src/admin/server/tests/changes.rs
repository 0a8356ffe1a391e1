//! Lines of the audit log for commands that change keys, faults, disks and backups.

use std::path::PathBuf;

use super::*;
use crate::admin::BackupControl;
use crate::admin::BackupView;
use crate::admin::KeyControl;
use crate::admin::KeyRingView;

/// Fakes of keys, disks and backups.
#[derive(Debug)]
struct Willing;

fn ring() -> KeyRingView {
    KeyRingView { ring: "1".into(), file: "/keys".into(), keys: Vec::new(), resealed: None }
}

fn disk(path: &str) -> DiskView {
    DiskView {
        number: Some(1),
        path: path.into(),
        state: "draining".into(),
        extents: 0,
        live_bytes: 0,
        total_bytes: 0,
        available_bytes: 0,
    }
}

#[async_trait]
impl KeyControl for Willing {
    fn list(&self) -> KeyRingView {
        ring()
    }

    async fn rotate(&self) -> Result<KeyRingView, String> {
        Ok(ring())
    }
}

#[async_trait]
impl DiskControl for Willing {
    async fn list(&self) -> Result<Vec<DiskView>, DiskRefusal> {
        Ok(Vec::new())
    }

    async fn drain(&self, path: &str) -> Result<DiskView, DiskRefusal> {
        Ok(disk(path))
    }

    async fn remove(&self, _: &str) -> Result<(), DiskRefusal> {
        Ok(())
    }

    fn troubles(&self) -> Vec<String> {
        Vec::new()
    }
}

impl BackupControl for Willing {
    fn begin(&self, directory: PathBuf) -> Option<BackupView> {
        Some(BackupView {
            number: 1,
            directory: directory.display().to_string(),
            state: "running".into(),
            extents: 0,
            extents_total: 0,
            copied_bytes: 0,
            summary: None,
            error: None,
        })
    }

    fn last(&self) -> Option<BackupView> {
        None
    }
}

#[tokio::test]
async fn every_command_that_changes_the_node_has_a_line() {
    let kept = Kept::new();
    let served = serve_with_log(kept.log());
    served.ready().await;
    served.state.keys.set(Arc::new(Willing)).unwrap();
    served.state.disks.set(Arc::new(Willing)).unwrap();
    served.state.backups.set(Arc::new(Willing)).unwrap();
    let rule = r#"{"kind":"busy","operations":["PutBlob"],"rate":0.5,"seed":3}"#;
    for (method, path, body, expected) in [
        ("POST", "keys/rotate", "", ("key", "RotateMasterKey", "key ring")),
        ("POST", "faults", rule, ("fault", "SetFault", "1")),
        ("DELETE", "faults/1", "", ("fault", "ClearFault", "1")),
        ("DELETE", "faults", "", ("fault", "ClearFaults", "*")),
        ("POST", "disks/drain", r#"{"disk":"/one"}"#, ("disk", "DrainDisk", "/one")),
        ("POST", "disks/remove", r#"{"disk":"/two"}"#, ("disk", "RemoveDisk", "/two")),
        ("POST", "backup", r#"{"directory":"/three"}"#, ("backup", "BeginBackup", "/three")),
    ] {
        let path = format!("/admin/{path}");
        let (status, answer) = served.ask(method, &path, &token(), body).await;
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        let lines = kept.changes();
        let (of, operation, resource) = expected;
        let expected = (of.to_owned(), operation.to_owned(), resource.to_owned());
        assert_eq!(lines.iter().map(about).collect::<Vec<_>>(), [expected], "{method} {path}");
        assert_eq!(lines[0]["principal"]["kind"], "admin_token");
        assert_eq!(lines[0]["status"], status);
    }
    let refused = served.ask("POST", "/admin/disks/drain", "", r#"{"disk":"/one"}"#).await;
    assert_eq!(refused.0, 401);
    assert!(kept.changes().is_empty(), "what is refused changes nothing");
    served.env.tasks.shutdown().await;
}
