//! Login codes and sessions of the console. They are in memory only: none outlives the server.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use rand::rngs::SysError;
use sha2::Digest;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::admin::keygen::new_console_secret;

/// How long a code works.
pub(super) const CODE_LIFE: Duration = Duration::from_secs(60);
/// How long a session lasts, however much it is used.
pub(super) const SESSION_LIFE: Duration = Duration::from_secs(8 * 60 * 60);
/// Codes that wait for their use. The oldest gives way.
const CODES_MAX: usize = 16;
/// Sessions. The oldest gives way.
const SESSIONS_MAX: usize = 64;

/// Codes and sessions; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(in crate::admin) struct Sessions(Arc<Mutex<Secrets>>);

#[derive(Debug, Default)]
struct Secrets {
    codes: VecDeque<Secret>,
    sessions: VecDeque<Secret>,
}

/// The digest of a secret, and when it ends by the monotonic clock. The time that comparing digests
/// takes reveals nothing about the secret.
#[derive(Debug, PartialEq, Eq)]
struct Secret {
    digest: [u8; 32],
    ends: Duration,
}

impl Secret {
    fn of(text: &str, ends: Duration) -> Self {
        Self { digest: Sha256::digest(text).into(), ends }
    }
}

impl Sessions {
    /// A new code, which opens one session within a minute.
    ///
    /// # Errors
    /// The operating system returns no random bytes.
    pub(in crate::admin) fn new_code(&self, now: Duration) -> Result<Zeroizing<String>, SysError> {
        let code = new_console_secret()?;
        add(&mut self.secrets(now).codes, &code, now + CODE_LIFE, CODES_MAX);
        Ok(code)
    }

    /// Uses a code up and opens a session. `None` if there is no such code: it was used, or has
    /// ended.
    ///
    /// # Errors
    /// As [`Self::new_code`]; then the code is not used up.
    pub(super) fn open(
        &self,
        code: &str,
        now: Duration,
    ) -> Result<Option<Zeroizing<String>>, SysError> {
        let session = new_console_secret()?;
        let mut secrets = self.secrets(now);
        if !take(&mut secrets.codes, code) {
            return Ok(None);
        }
        add(&mut secrets.sessions, &session, now + SESSION_LIFE, SESSIONS_MAX);
        Ok(Some(session))
    }

    /// Whether this is a session.
    pub(super) fn is_open(&self, session: &str, now: Duration) -> bool {
        let shown = Secret::of(session, Duration::ZERO).digest;
        self.secrets(now).sessions.iter().any(|one| one.digest == shown)
    }

    /// Ends a session. Returns whether there was one.
    pub(super) fn close(&self, session: &str, now: Duration) -> bool {
        take(&mut self.secrets(now).sessions, session)
    }

    /// Those that have not ended.
    fn secrets(&self, now: Duration) -> MutexGuard<'_, Secrets> {
        let mut secrets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        secrets.codes.retain(|code| now < code.ends);
        secrets.sessions.retain(|session| now < session.ends);
        secrets
    }
}

fn add(to: &mut VecDeque<Secret>, text: &str, ends: Duration, max: usize) {
    if to.len() == max {
        to.pop_front();
    }
    to.push_back(Secret::of(text, ends));
}

fn take(from: &mut VecDeque<Secret>, text: &str) -> bool {
    let shown = Secret::of(text, Duration::ZERO).digest;
    let before = from.len();
    from.retain(|one| one.digest != shown);
    from.len() < before
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const ZERO: Duration = Duration::ZERO;

    #[test]
    fn a_code_opens_one_session() {
        let sessions = Sessions::default();
        let code = sessions.new_code(ZERO).unwrap();
        let other = sessions.new_code(ZERO).unwrap();
        assert!(code.len() == 43 && *code != *other);
        assert_eq!(sessions.open("", ZERO).unwrap(), None);
        assert_eq!(sessions.open(&code[1..], ZERO).unwrap(), None);
        let session = sessions.open(&code, ZERO).unwrap().unwrap();
        assert!(sessions.is_open(&session, ZERO));
        assert_eq!(sessions.open(&code, ZERO).unwrap(), None, "it was used");
        assert!(!sessions.is_open(&code, ZERO) && !sessions.is_open("", ZERO));
        assert!(!sessions.is_open(&other, ZERO), "a code is no session");
        assert!(sessions.close(&session, ZERO) && !sessions.close(&session, ZERO));
        assert!(!sessions.is_open(&session, ZERO));
        assert!(sessions.open(&other, ZERO).unwrap().is_some());
    }

    #[test]
    fn codes_end_after_a_minute_and_sessions_after_eight_hours() {
        let sessions = Sessions::default();
        let codes = [(); 2].map(|()| sessions.new_code(ZERO).unwrap());
        let last = CODE_LIFE - SECOND;
        let session = sessions.open(&codes[0], last).unwrap().unwrap();
        assert_eq!(sessions.open(&codes[1], CODE_LIFE).unwrap(), None);
        let ends = last + SESSION_LIFE;
        assert!(sessions.is_open(&session, ends - SECOND), "use does not lengthen it");
        assert!(!sessions.is_open(&session, ends));
    }

    #[test]
    fn the_oldest_gives_way() {
        let sessions = Sessions::default();
        let codes: Vec<_> = (0..=CODES_MAX).map(|_| sessions.new_code(ZERO).unwrap()).collect();
        assert_eq!(sessions.open(&codes[0], ZERO).unwrap(), None);
        let first = sessions.open(&codes[1], ZERO).unwrap().unwrap();
        let rest: Vec<_> = (0..SESSIONS_MAX)
            .map(|_| {
                let code = sessions.new_code(ZERO).unwrap();
                sessions.open(&code, ZERO).unwrap().unwrap()
            })
            .collect();
        assert!(!sessions.is_open(&first, ZERO));
        assert!(rest.iter().all(|session| sessions.is_open(session, ZERO)));
    }

    #[test]
    fn no_secret_is_kept_or_shown() {
        let sessions = Sessions::default();
        let code = sessions.new_code(ZERO).unwrap();
        assert!(!format!("{sessions:?}").contains(code.as_str()));
    }
}
