//! The certificate of `blockyard azurite` in one file with its key.

use std::fmt;
use std::path::PathBuf;

use zeroize::Zeroizing;

/// A PFX (PKCS#12) file, which has the certificate chain and its private key.
#[derive(Clone, PartialEq, Eq)]
pub struct PfxFile {
    /// The file.
    pub path: PathBuf,
    /// Its password, which may be empty.
    pub password: Zeroizing<String>,
}

impl fmt::Debug for PfxFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PfxFile").field("path", &self.path).finish_non_exhaustive()
    }
}
