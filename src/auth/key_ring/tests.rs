//! The key ring: golden bytes, and what is refused.

use bytes::Bytes;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::*;
use crate::types::AccessKeyId;
use crate::types::AccountId;
use crate::types::AccountName;
use crate::types::RoutingKey;
use crate::types::Secret;

const NONCE: [u8; 12] = *b"nonce nonce!";
/// 2026-11-22T17:00:00Z.
const NOW: Timestamp = Timestamp::from_ticks(639_309_636_000_000_000);
/// The ring of [`rotated`], as `api-spec/secrets.md` shows it.
const FILE: &str = "blockyard key ring 1\n\
    ring 30313233-3435-3637-3839-616263646566\n\
    key 1 2026-11-22T17:00:00Z retired AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\n\
    key 2 2026-11-22T17:00:00Z active AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=\n\
    sha256 1f138eaa76aaa90413ba1f8dab1b6f6e6292b292824b04e70f447cd845e9c401\n";
/// The secret `secret` as the second key of account `abc`, number 7, under key 2 of that ring.
const SEALED: &str =
    "01000000026e6f6e6365206e6f6e636521705543a8b7c57d2b47f56df83e0d77e704e2378a1a9b";

/// The same as the access key `KEY` of a user.
const SEALED_USER_KEY: &str =
    "01000000026e6f6e6365206e6f6e636521b47dab6f0d37ca3c5631cfa8f6aad9f5de274620b915";

fn key(byte: u8) -> Zeroizing<[u8; 32]> {
    Zeroizing::new([byte; 32])
}

fn ring() -> KeyRing {
    KeyRing::new(Uuid::from_bytes(*b"0123456789abcdef"), key(1), NOW)
}

fn rotated() -> KeyRing {
    ring().rotated(key(2), NOW)
}

fn account() -> (AccountName, AccountId) {
    (AccountName::new("abc").unwrap(), AccountId::new(7))
}

fn context() -> SecretContext {
    SecretContext::account_key(&account().0, account().1)
}

fn hex(secret: &Secret) -> String {
    secret.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn key_ring_and_sealed_secret_are_written_as_specified() {
    assert_eq!(*rotated().to_text(), FILE);
    let spec = include_str!("../../../api-spec/secrets.md");
    for line in FILE.lines() {
        assert!(spec.contains(line), "api-spec/secrets.md lacks {line}");
    }
    let sealed = rotated().seal(&context(), b"secret", NONCE);
    assert_eq!(hex(&sealed), SEALED);
    assert!(spec.contains(SEALED), "api-spec/secrets.md lacks {SEALED}");
}

#[test]
fn every_key_of_a_ring_opens_and_the_active_one_seals() {
    let old = ring().seal(&context(), b"secret", NONCE);
    let new = rotated().seal(&context(), b"secret", NONCE);
    for secret in [&old, &new] {
        assert_eq!(*rotated().open(&context(), secret).unwrap(), b"secret");
    }
    assert_eq!([&old, &new].map(|secret| rotated().is_current(secret)), [false, true]);
    assert_eq!(ring().open(&context(), &new), Err(UnsealError::NoKey(2)));
    let other = KeyRing::new(Uuid::nil(), key(9), NOW);
    assert_eq!(other.open(&context(), &old), Err(UnsealError::Damaged));
    let plain = Secret::Plain(Bytes::from_static(b"old"));
    assert_eq!(*ring().open(&context(), &plain).unwrap(), b"old");
    assert!(!ring().is_current(&plain));
}

#[test]
fn secret_opens_in_its_own_place_only() {
    let (name, id) = account();
    let sealed = ring().seal(&context(), b"secret", NONCE);
    let blob = RoutingKey::account(&name);
    for elsewhere in [
        SecretContext::account_key(&AccountName::new("abd").unwrap(), id),
        SecretContext::account_key(&name, AccountId::new(8)),
        SecretContext::delegation(&name, id),
        SecretContext::user_key(&name, id, &AccessKeyId::new("KEY").unwrap()),
        SecretContext::copy_source(&blob, Uuid::nil()),
    ] {
        assert_eq!(ring().open(&elsewhere, &sealed), Err(UnsealError::Damaged));
    }
}

#[test]
fn secret_of_an_access_key_opens_under_its_id_only() {
    let (name, id) = account();
    let context = |key: &str| SecretContext::user_key(&name, id, &AccessKeyId::new(key).unwrap());
    let sealed = rotated().seal(&context("KEY"), b"secret", NONCE);
    assert_eq!(hex(&sealed), SEALED_USER_KEY);
    let spec = include_str!("../../../api-spec/secrets.md");
    assert!(spec.contains(SEALED_USER_KEY), "api-spec/secrets.md lacks {SEALED_USER_KEY}");
    assert_eq!(*rotated().open(&context("KEY"), &sealed).unwrap(), b"secret");
    for other in ["KEX", "KEY2"] {
        assert_eq!(rotated().open(&context(other), &sealed), Err(UnsealError::Damaged));
    }
}

#[test]
fn changed_and_cut_secrets_are_refused() {
    let Secret::Sealed(sealed) = ring().seal(&context(), b"secret", NONCE) else { panic!() };
    for bit in 0..sealed.len() * 8 {
        let mut changed = sealed.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(ring().open(&context(), &Secret::Sealed(changed.into())).is_err(), "bit {bit}");
    }
    for len in 0..sealed.len() {
        let cut = Secret::Sealed(sealed.slice(..len));
        assert!(ring().open(&context(), &cut).is_err(), "cut to {len}");
    }
}

#[test]
fn file_is_read_back_and_every_change_of_it_is_refused() {
    let text = rotated().to_text();
    let read = KeyRing::from_text(&text).unwrap();
    assert_eq!((read.id(), read.to_text()), (rotated().id(), text.clone()));
    for at in 0..text.len() {
        let mut changed = text.as_bytes().to_vec();
        changed[at] ^= 1;
        let changed = String::from_utf8(changed).unwrap();
        assert!(KeyRing::from_text(&changed).is_err(), "byte {at}");
        assert!(KeyRing::from_text(&text[..at]).is_err(), "cut to {at}");
    }
    assert_eq!(
        KeyRing::from_text("blockyard key ring 2\n").unwrap_err(),
        KeyRingError::Version("2".to_owned())
    );
    assert_eq!(KeyRing::from_text("").unwrap_err(), KeyRingError::Title);
    let shown = format!("{read:?}");
    assert!(!shown.contains("AQEB") && !shown.contains("[1, 1"), "{shown}");
}
