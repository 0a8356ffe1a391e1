//! The token of the admin listener. The first start creates it in a file that only its owner can
//! read.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::TryRng;
use rand::rngs::SysRng;

use crate::env::make_folder;

use super::error::NodeError;
use super::files;

/// Random bytes in a token.
const TOKEN_BYTES: usize = 32;

/// The token in the file; a new one if the file does not exist.
///
/// # Errors
/// [`NodeError::AdminToken`].
pub(super) fn read_or_make(path: &Path) -> Result<String, NodeError> {
    let failed = |error| NodeError::AdminToken { path: path.to_owned(), error };
    if let Some(text) = files::read(path).map_err(failed)? {
        let token = text.trim();
        if token.len() < TOKEN_BYTES {
            return Err(failed(std::io::Error::other(
                "it holds no token of at least 32 characters: remove it for a new one",
            )));
        }
        return Ok(token.to_owned());
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        make_folder(folder).map_err(failed)?;
    }
    let mut bytes = [0; TOKEN_BYTES];
    SysRng.try_fill_bytes(&mut bytes).map_err(|error| failed(std::io::Error::other(error)))?;
    let token = URL_SAFE_NO_PAD.encode(bytes);
    files::write(path, &format!("{token}\n")).map_err(failed)?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_made_once_and_a_poor_one_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").join("admin-token");
        let token = read_or_make(&path).unwrap();
        assert_eq!(token.len(), 43);
        assert_eq!(read_or_make(&path).unwrap(), token);
        files::write(&path, "short\n").unwrap();
        assert!(read_or_make(&path).unwrap_err().to_string().contains("remove it"));
    }
}
