//! The key ring as text: the content of the master key file.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::Digest;
use sha2::Sha256;
use thiserror::Error;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::KeyRing;
use super::KeyState;
use super::MasterKey;
use crate::types::Timestamp;

/// The first line without its version.
const TITLE: &str = "blockyard key ring ";
/// The version this program writes and reads.
const VERSION: &str = "1";

/// Why a text is not a key ring. The message never shows a key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeyRingError {
    /// The first line is not that of a key ring.
    #[error("it is not a key ring: its first line is not `{TITLE}{VERSION}`")]
    Title,
    /// A newer program wrote it.
    #[error("it has format {0}, this program reads format 1: use the program that wrote it")]
    Version(String),
    /// Bytes were changed or are missing.
    #[error("its checksum does not match: it is damaged or cut; restore it from your copy")]
    Checksum,
    /// A line is malformed, although the checksum matches.
    #[error("line {0} is malformed: restore the file from your copy")]
    Line(usize),
    /// No key is active, or several are.
    #[error("it has {0} active keys, one is needed: restore the file from your copy")]
    Active(usize),
}

impl KeyRing {
    /// The content of the master key file for this ring.
    #[must_use]
    pub fn to_text(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(format!("{TITLE}{VERSION}\nring {}\n", self.id));
        for key in &self.keys {
            let secret = Zeroizing::new(STANDARD.encode(*key.key));
            let (created, state) = (key.created.to_iso_seconds(), key.state.word());
            text.push_str(&format!("key {} {created} {state} ", key.id));
            text.push_str(&secret);
            text.push('\n');
        }
        let checksum = checksum(&text);
        text.push_str(&checksum);
        text
    }

    /// Reads the content of a master key file.
    ///
    /// # Errors
    /// [`KeyRingError`].
    pub fn from_text(text: &str) -> Result<Self, KeyRingError> {
        let version = text.lines().next().and_then(|line| line.strip_prefix(TITLE));
        match version.ok_or(KeyRingError::Title)? {
            VERSION => {}
            version => return Err(KeyRingError::Version(version.to_owned())),
        }
        let last = text.rfind("sha256 ").ok_or(KeyRingError::Checksum)?;
        let (body, found) = text.split_at(last);
        if found != checksum(body) {
            return Err(KeyRingError::Checksum);
        }
        let mut lines = (1..).zip(body.lines()).skip(1);
        let (_, ring) = lines.next().ok_or(KeyRingError::Line(2))?;
        let id = ring.strip_prefix("ring ").and_then(|id| Uuid::try_parse(id).ok());
        let id = id.ok_or(KeyRingError::Line(2))?;
        let mut keys: Vec<MasterKey> = Vec::new();
        for (number, line) in lines {
            let after = keys.last().map_or(0, MasterKey::id);
            let key = key(line).filter(|key| key.id > after).ok_or(KeyRingError::Line(number))?;
            keys.push(key);
        }
        match keys.iter().filter(|key| key.state == KeyState::Active).count() {
            1 => Ok(Self { id, keys }),
            count => Err(KeyRingError::Active(count)),
        }
    }
}

fn key(line: &str) -> Option<MasterKey> {
    let mut words = line.strip_prefix("key ")?.split(' ');
    let id = words.next()?.parse().ok()?;
    let created = Timestamp::from_iso(words.next()?)?;
    let state = match words.next()? {
        "active" => KeyState::Active,
        "retired" => KeyState::Retired,
        _ => return None,
    };
    let secret = Zeroizing::new(STANDARD.decode(words.next()?).ok()?);
    let key = Zeroizing::new(secret.as_slice().try_into().ok()?);
    words.next().is_none().then_some(MasterKey { id, created, state, key })
}

/// The last line: the checksum of all bytes before it.
fn checksum(body: &str) -> String {
    let hex: String =
        Sha256::digest(body.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256 {hex}\n")
}
