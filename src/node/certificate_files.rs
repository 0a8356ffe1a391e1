//! Reloads certificate files that are replaced while the node runs, for example by `certbot`.
//!
//! The files are polled. A poll costs two system calls and finds every way of replacing a file,
//! symbolic links included. A pair that cannot be served is logged once, and the old pair stays in
//! use.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::env::Env;
use crate::frontend::Tls;

use super::tls::CertificateError;
use super::tls::from_files;

/// The interval between two polls.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Tells a file from its replacement: device, inode, size and change time.
type Stamp = Option<(u64, u64, u64, i64, i64)>;

/// The files of a certificate, and the versions that were last read.
#[derive(Debug)]
pub struct CertificateFiles {
    cert: PathBuf,
    key: PathBuf,
    seen: (Stamp, Stamp),
}

/// The result of a poll.
#[derive(Debug)]
enum Found {
    /// The files have not changed.
    Nothing,
    /// A new pair.
    Pair(Tls),
    /// New files that cannot be served.
    Useless(CertificateError),
}

impl CertificateFiles {
    /// Reads a pair and remembers the versions of its files.
    ///
    /// # Errors
    /// [`CertificateError`].
    pub fn load(cert: &Path, key: &Path) -> Result<(Tls, Self), CertificateError> {
        // Taken first: a file that is replaced during the read is read again at the first poll.
        let mut files = Self { cert: cert.to_owned(), key: key.to_owned(), seen: (None, None) };
        files.seen = files.stamps();
        Ok((from_files(cert, key)?, files))
    }

    fn stamps(&self) -> (Stamp, Stamp) {
        (stamp(&self.cert), stamp(&self.key))
    }

    fn look(&mut self) -> Found {
        let stamps = self.stamps();
        if stamps == self.seen {
            return Found::Nothing;
        }
        let read = from_files(&self.cert, &self.key);
        if self.stamps() != stamps {
            // Perhaps only half of the pair was replaced yet. The next poll finds both.
            return Found::Nothing;
        }
        self.seen = stamps;
        match read {
            Ok(tls) => Found::Pair(tls),
            Err(error) => Found::Useless(error),
        }
    }

    /// Keeps `tls` equal to the files until `stop` fires.
    pub async fn follow(mut self, tls: Tls, env: Env, stop: CancellationToken) {
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = env.clock.sleep(LOOK_EVERY) => {}
            }
            let looking = env.tasks.spawn_blocking("certificate files", move || {
                let found = self.look();
                (self, found)
            });
            let Ok((files, found)) = looking.await else { return };
            self = files;
            match found {
                Found::Nothing => {}
                Found::Pair(new) => {
                    tls.replace(&new);
                    tracing::info!(path = %self.cert.display(), "the certificate was replaced");
                }
                Found::Useless(error) => {
                    tracing::warn!(
                        %error,
                        "the new certificate files cannot be served and the old certificate stays in use: provide a \
                         certificate and the key that belongs to it"
                    );
                }
            }
        }
    }
}

/// `None` when there is no file; a later poll may find one.
fn stamp(path: &Path) -> Stamp {
    let found: io::Result<_> = std::fs::metadata(path);
    found.ok().map(|file| (file.dev(), file.ino(), file.size(), file.ctime(), file.ctime_nsec()))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests arrange files")]
mod tests {
    use rcgen::generate_simple_self_signed;

    use super::*;

    fn pair() -> (String, String) {
        let made = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn new_pairs_are_found_and_useless_ones_named_once() {
        let folder = tempfile::tempdir().unwrap();
        let (cert, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
        let (first, second) = (pair(), pair());
        let put = |path: &Path, text: &str| {
            let new = path.with_extension("new");
            std::fs::write(&new, text).unwrap();
            std::fs::rename(&new, path).unwrap();
        };
        put(&cert, &first.0);
        put(&key, &first.1);
        let (_, mut files) = CertificateFiles::load(&cert, &key).unwrap();
        assert!(matches!(files.look(), Found::Nothing));
        put(&cert, &second.0);
        assert!(matches!(files.look(), Found::Useless(_)), "the key is still the old one");
        assert!(matches!(files.look(), Found::Nothing), "told once");
        put(&key, &second.1);
        assert!(matches!(files.look(), Found::Pair(_)));
        std::fs::remove_file(&key).unwrap();
        assert!(matches!(files.look(), Found::Useless(_)));
        put(&key, "nothing");
        assert!(matches!(files.look(), Found::Useless(_)));
        put(&key, &second.1);
        assert!(matches!(files.look(), Found::Pair(_)));
    }
}
