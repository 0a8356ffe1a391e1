//! Reloads certificate files that are replaced while the node runs, for example by `certbot`.
//!
//! The files are polled. A poll costs two system calls and finds every way of replacing a file,
//! symbolic links included. A pair that cannot be served is logged once, and the old pair stays in
//! use.

use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::env::Env;
use crate::env::FileVersion;
use crate::frontend::Tls;
use crate::node::config::PfxFile;

use super::error::CertificateError;
use super::pfx;

/// The interval between two polls.
const POLL_EVERY: Duration = Duration::from_secs(5);

/// The stamps of a pair of files; `None` for a file that does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stamps {
    cert: Option<FileVersion>,
    key: Option<FileVersion>,
}

/// A certificate that was read from files.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) tls: Tls,
    pub(super) files: CertificateFiles,
}

/// Where a certificate and its key are.
#[derive(Clone, Debug)]
enum Place {
    /// In two PEM files.
    Pem { cert: PathBuf, key: PathBuf },
    /// In one file.
    Pfx(PfxFile),
}

/// The files of a certificate, and the versions that were last read.
#[derive(Clone, Debug)]
pub struct CertificateFiles {
    place: Place,
    seen: Stamps,
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
    pub(super) fn load(cert: &Path, key: &Path) -> Result<Loaded, CertificateError> {
        Self::load_from(Place::Pem { cert: cert.to_owned(), key: key.to_owned() })
    }

    /// The same for a PFX file.
    ///
    /// # Errors
    /// [`CertificateError`].
    pub(super) fn load_pfx(file: &PfxFile) -> Result<Loaded, CertificateError> {
        Self::load_from(Place::Pfx(file.clone()))
    }

    fn load_from(place: Place) -> Result<Loaded, CertificateError> {
        // Taken first: a file that is replaced during the read is read again at the first poll.
        let seen = place.stamps();
        Ok(Loaded { tls: place.read()?, files: Self { place, seen } })
    }

    fn poll(&mut self) -> Found {
        let stamps = self.place.stamps();
        if stamps == self.seen {
            return Found::Nothing;
        }
        let read = self.place.read();
        if self.place.stamps() != stamps {
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
    pub fn keep(self, tls: Tls, env: &Env, stop: CancellationToken) {
        self.keep_with(Self::poll, tls, env, stop);
    }

    fn keep_with(self, poll: fn(&mut Self) -> Found, tls: Tls, env: &Env, stop: CancellationToken) {
        let (of, stopping) = (env.clone(), stop.clone());
        // After a panic it begins with the stamps of the first read: a pair may be loaded twice,
        // and none is missed.
        let following = move || self.clone().follow(poll, tls.clone(), of.clone(), stop.clone());
        drop(env.supervise("certificate files", stopping, following));
    }

    async fn follow(
        mut self,
        poll: fn(&mut Self) -> Found,
        tls: Tls,
        env: Env,
        stop: CancellationToken,
    ) {
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = env.clock.sleep(POLL_EVERY) => {}
            }
            let mut files = self.clone();
            let polling = env.tasks.spawn_blocking("certificate files", move || {
                let found = poll(&mut files);
                (files, found)
            });
            // A panic was counted and logged. The next poll finds the new files.
            let Ok((files, found)) = polling.await else { continue };
            self = files;
            match found {
                Found::Nothing => {}
                Found::Pair(new) => {
                    tls.replace(&new);
                    tracing::info!(path = %self.place.path().display(), "the certificate was replaced");
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

impl Place {
    fn stamps(&self) -> Stamps {
        match self {
            Self::Pem { cert, key } => Stamps { cert: stamp(cert), key: stamp(key) },
            Self::Pfx(file) => Stamps { cert: stamp(&file.path), key: None },
        }
    }

    /// The file of the certificate.
    fn path(&self) -> &Path {
        match self {
            Self::Pem { cert, .. } => cert,
            Self::Pfx(file) => &file.path,
        }
    }

    fn read(&self) -> Result<Tls, CertificateError> {
        match self {
            Self::Pem { cert, key } => from_files(cert, key),
            Self::Pfx(file) => pfx::read(file),
        }
    }
}

/// `None` when there is no file; a later poll may find one.
fn stamp(path: &Path) -> Option<FileVersion> {
    let found: io::Result<_> = std::fs::metadata(path);
    found.ok().map(|file| FileVersion::of(&file))
}

/// The pair in these files.
fn from_files(cert: &Path, key: &Path) -> Result<Tls, CertificateError> {
    let chain = required(cert)?;
    Tls::from_pem(&chain, &required(key)?)
        .map_err(|error| CertificateError::Tls { path: cert.to_owned(), error })
}

fn required(path: &Path) -> Result<String, CertificateError> {
    std::fs::read_to_string(path)
        .map_err(|error| CertificateError::File { path: path.to_owned(), error })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests arrange files")]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering;

    use rcgen::CertificateParams;
    use rcgen::KeyPair;
    use rcgen::date_time_ymd;
    use rcgen::generate_simple_self_signed;
    use zeroize::Zeroizing;

    use super::*;
    use crate::env::SeededRand;
    use crate::env::SimClock;
    use crate::env::Tasks;
    use crate::env::clock::TrapClock;

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
        let Loaded { mut files, .. } = CertificateFiles::load(&cert, &key).unwrap();
        assert!(matches!(files.poll(), Found::Nothing));
        put(&cert, &second.0);
        assert!(matches!(files.poll(), Found::Useless(_)), "the key is still the old one");
        assert!(matches!(files.poll(), Found::Nothing), "reported once");
        put(&key, &second.1);
        assert!(matches!(files.poll(), Found::Pair(_)));
        std::fs::remove_file(&key).unwrap();
        assert!(matches!(files.poll(), Found::Useless(_)));
        put(&key, "nothing");
        assert!(matches!(files.poll(), Found::Useless(_)));
        put(&key, &second.1);
        assert!(matches!(files.poll(), Found::Pair(_)));
    }

    #[test]
    fn pfx_file_that_is_replaced_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.pfx");
        let put = |bytes: &[u8]| {
            let new = path.with_extension("new");
            std::fs::write(&new, bytes).unwrap();
            std::fs::rename(&new, &path).unwrap();
        };
        put(&pfx::tests::new_file());
        let password = Zeroizing::new("secret".to_owned());
        let file = PfxFile { path: path.clone(), password };
        let Loaded { mut files, .. } = CertificateFiles::load_pfx(&file).unwrap();
        assert!(matches!(files.poll(), Found::Nothing));
        put(&pfx::tests::new_file());
        assert!(matches!(files.poll(), Found::Pair(_)));
        put(b"nothing");
        assert!(matches!(files.poll(), Found::Useless(_)), "the old one stays");
    }

    /// A pair that ends in a year.
    fn pair_until(year: i32) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, 1, 1);
        (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
    }

    /// Files that are polled, and the certificate that is served.
    struct Kept {
        folder: tempfile::TempDir,
        tls: Tls,
        env: Env,
        clock: Arc<TrapClock>,
    }

    impl Kept {
        fn start(poll: fn(&mut CertificateFiles) -> Found) -> Self {
            let folder = tempfile::tempdir().unwrap();
            put(&folder, &pair_until(2040));
            let at = |name| folder.path().join(name);
            let Loaded { tls, files } = CertificateFiles::load(&at("c.pem"), &at("k.pem")).unwrap();
            let clock = Arc::new(TrapClock::new(Arc::new(SimClock::new())));
            let rand = Arc::new(SeededRand::new(1));
            let env = Env { clock: Arc::clone(&clock) as _, rand, tasks: Tasks::new() };
            files.keep_with(poll, tls.clone(), &env, env.tasks.stopping());
            Self { folder, tls, env, clock }
        }

        /// Whether a pair is served some time after it was put there.
        async fn takes(&self, pair: &(String, String)) -> bool {
            put(&self.folder, pair);
            self.env.clock.sleep(POLL_EVERY * 4).await;
            self.tls.expires() == Tls::from_pem(&pair.0, &pair.1).unwrap().expires()
        }
    }

    fn put(folder: &tempfile::TempDir, (cert, key): &(String, String)) {
        for (name, text) in [("c.pem", cert), ("k.pem", key)] {
            let new = folder.path().join("new");
            std::fs::write(&new, text).unwrap();
            std::fs::rename(&new, folder.path().join(name)).unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn files_are_followed_although_the_task_panicked() {
        let kept = Kept::start(CertificateFiles::poll);
        kept.clock.trap(POLL_EVERY);
        assert!(kept.takes(&pair_until(2041)).await);
        let health = kept.env.tasks.health();
        assert_eq!((health.panics("certificate files"), health.stopped()), (1, Vec::new()));
        assert!(kept.takes(&pair_until(2042)).await);
        kept.env.tasks.shutdown().await;
    }

    /// Panics once, when there is a new pair.
    fn stumbles(files: &mut CertificateFiles) -> Found {
        static STUMBLED: AtomicBool = AtomicBool::new(false);
        match files.poll() {
            Found::Pair(_) if !STUMBLED.swap(true, Ordering::SeqCst) => panic!("stumbled"),
            found @ (Found::Nothing | Found::Pair(_) | Found::Useless(_)) => found,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn pair_at_which_a_poll_panicked_is_loaded_by_the_next() {
        let kept = Kept::start(stumbles);
        assert!(kept.takes(&pair_until(2041)).await);
        assert_eq!(kept.env.tasks.health().panics("certificate files"), 1);
        assert!(kept.takes(&pair_until(2042)).await);
        kept.env.tasks.shutdown().await;
    }
}
