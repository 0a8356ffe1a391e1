//! Certificate files that are replaced while the node runs: what `certbot` and its like renew is
//! served without a restart.
//!
//! The files are looked at, not watched: a look costs two system calls, and finds every way of
//! replacing a file, symbolic links included. A pair that cannot be served is logged once, and the
//! old one is served on.

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

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// What tells a file from its successor.
type Stamp = Option<(u64, u64, u64, i64, i64)>;

/// The certificate's files, and what was last found there.
#[derive(Debug)]
pub struct CertificateFiles {
    cert: PathBuf,
    key: PathBuf,
    seen: (Stamp, Stamp),
}

/// What a look found.
#[derive(Debug)]
enum Found {
    /// The same files.
    Nothing,
    /// A new pair.
    Pair(Tls),
    /// New files that cannot be served.
    Useless(CertificateError),
}

impl CertificateFiles {
    /// Reads a pair, and remembers which files it was.
    ///
    /// # Errors
    /// [`CertificateError`].
    pub fn load(cert: &Path, key: &Path) -> Result<(Tls, Self), CertificateError> {
        // The stamps first: a file that is replaced during the reading is read again at the first
        // look.
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
            // Half of a pair, perhaps: the next look has both.
            return Found::Nothing;
        }
        self.seen = stamps;
        match read {
            Ok(tls) => Found::Pair(tls),
            Err(error) => Found::Useless(error),
        }
    }

    /// Has `tls` show what the files hold, until `stop` fires.
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
                        "the new certificate files cannot be served; the old certificate is served on: give it a pair that \
                         belongs together"
                    );
                }
            }
        }
    }
}

/// `None` when there is no file, which a later look may find.
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
