//! Accounts and users in a file, so that keys do not appear on a command line.

use std::path::Path;

use zeroize::Zeroizing;

use crate::env::mode;
use crate::node::files;

use super::accounts::AccountConfig;
use super::error::ConfigError;
use super::users::UserConfig;

/// Forbidden modes of the file. Its group may read it: containers pass secrets to users that do not
/// own them in this way.
const FORBIDDEN: u32 = 0o037;

/// The content of a file.
#[derive(Debug, Default)]
pub(super) struct AccountFile {
    pub(super) accounts: Vec<AccountConfig>,
    pub(super) users: Vec<UserConfig>,
}

/// Reads accounts and users, one per line. An account is NAME:BASE64KEY or
/// NAME:BASE64KEY:BASE64KEY2, a user ACCOUNT/NAME:KEYID:SECRET. Empty lines and lines that begin
/// with # are ignored.
///
/// # Errors
/// [`ConfigError::AccountFile`], [`ConfigError::AccountFileOpen`], [`ConfigError::AccountLine`],
/// [`ConfigError::UserLine`].
pub(super) fn read(path: &Path) -> Result<AccountFile, ConfigError> {
    let failed = |error| ConfigError::AccountFile { path: path.to_owned(), error };
    let mode = mode(&path.metadata().map_err(failed)?) & 0o777;
    if mode & FORBIDDEN != 0 {
        return Err(ConfigError::AccountFileOpen { path: path.to_owned(), mode });
    }
    let text = Zeroizing::new(files::read(path).map_err(failed)?.unwrap_or_default());
    let lines = (1..).zip(text.lines()).map(|(line, text)| (line, text.trim()));
    let lines = lines.filter(|(_, text)| !text.is_empty() && !text.starts_with('#'));
    let mut found = AccountFile::default();
    for (line, text) in lines {
        // The part before the colon is a name, never a key.
        if text.split(':').next().is_some_and(|name| name.contains('/')) {
            let wrong = |error| ConfigError::UserLine { path: path.to_owned(), line, error };
            found.users.push(text.parse().map_err(wrong)?);
        } else {
            let wrong = |error| ConfigError::AccountLine { path: path.to_owned(), line, error };
            found.accounts.push(text.parse().map_err(wrong)?);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAA=";

    #[test]
    fn file_has_an_account_a_line_and_is_for_its_user() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("accounts");
        let user = "one/alice:KEY:a secret/".replace(' ', "-") + KEY;
        let text = format!("# ours\n\n one:{KEY}\ntwo:{KEY}:{KEY}\n{user}\n");
        files::write(&path, &text).unwrap();
        let found = read(&path).unwrap();
        assert_eq!(found.users.len(), 1);
        let names: Vec<&str> =
            found.accounts.iter().map(|account| account.name().as_str()).collect();
        assert_eq!(names, ["one", "two"]);
        for (mode, taken) in [(0o640, true), (0o400, true), (0o604, false), (0o660, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read(&path).is_ok(), taken, "{mode:o}");
        }
        let text = read(&path).unwrap_err().to_string();
        assert!(text.contains("mode 660") && text.contains("chmod 600"), "{text}");
    }

    #[test]
    fn wrong_line_is_named_without_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("accounts");
        files::write(&path, &format!("one:{KEY}\ntwo:{KEY}x\n")).unwrap();
        let text = read(&path).unwrap_err().to_string();
        assert!(text.contains("line 2") && !text.contains("AAAA"), "{text}");
        let text = read(&folder.path().join("none")).unwrap_err().to_string();
        assert!(text.contains("cannot read the account file"), "{text}");
    }
}
