use std::io::Write;

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    sas: SasArgs,
}

fn now() -> Timestamp {
    Timestamp::from_iso("2026-11-21T05:00:00Z").unwrap()
}

fn line(words: &[&str]) -> Result<Minted, SasError> {
    let account = words.contains(&"-k").then_some(&[][..]);
    let account = account.unwrap_or(&["-k", "devstoreaccount1"]);
    let words = std::iter::once("sas").chain(words.iter().chain(account).copied());
    mint(&Line::parse_from(words).sas, now())
}

#[test]
fn account_container_blob_and_snapshot_have_their_urls() {
    let account = line(&[]).unwrap();
    assert!(
        account.url.starts_with("http://127.0.0.1:10000/devstoreaccount1/?sv="),
        "{}",
        account.url
    );
    assert!(account.query.contains("&ss=b&srt=sco&sp=r&se=2026-11-21T13%3A00%3A00Z&"));
    let container = line(&["c-1"]).unwrap();
    assert!(container.url.starts_with("http://127.0.0.1:10000/devstoreaccount1/c-1?sv="));
    assert!(container.query.contains("&sr=c&sp=r&"));
    let blob = line(&["c-1/dir/ä +%.txt", "--endpoint", "https://a.example/"]).unwrap();
    assert!(
        blob.url.starts_with("https://a.example/c-1/dir/%C3%A4%20%2B%25.txt?sv="),
        "{}",
        blob.url
    );
    let snapshot = line(&["c-1/b", "--snapshot", "2026-11-21T04:00:00.0000000Z"]).unwrap();
    assert!(snapshot.query.starts_with("snapshot=2026%2D11%2D21T04%3A00%3A00%2E0000000Z&"));
    assert!(snapshot.query.contains("&sr=bs&sp=r&"), "{}", snapshot.query);
}

#[test]
fn delegation_key_of_a_file_signs() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let xml = "<UserDelegationKey><SignedOid>o-1</SignedOid><SignedTid>t-1</SignedTid>\
        <SignedStart>2026-11-21T05:00:00Z</SignedStart><SignedExpiry>2026-11-22T05:00:00Z</SignedExpiry>\
        <SignedService>b</SignedService><SignedVersion>2022-11-02</SignedVersion>\
        <Value>AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=</Value></UserDelegationKey>";
    file.as_file_mut().write_all(xml.as_bytes()).unwrap();
    let path = file.path().to_str().unwrap();
    let minted = line(&["c-1/b", "--delegation-key", path]).unwrap();
    assert!(
        minted.query.contains("&skoid=o-1&sktid=t-1&skt=2026-11-21T05%3A00%3A00Z&"),
        "{}",
        minted.query
    );
    assert!(line(&["--delegation-key", path]).is_err(), "not for an account");
    assert!(line(&["c-1", "--delegation-key", "/nonexistent"]).is_err());
}

#[test]
fn policy_says_the_rest() {
    let minted = line(&["c-1", "--policy", "p 1"]).unwrap();
    assert!(
        minted.query.contains("&si=p%201&") && !minted.query.contains("&sp="),
        "{}",
        minted.query
    );
    assert_eq!((minted.expiry, minted.permissions), (None, None));
}

#[test]
fn times_are_absolute_or_from_now_on() {
    let of = |text: &str| line(&["c-1", "--expiry", text]).map(|m| m.expiry.unwrap());
    assert_eq!(of("90s").unwrap(), "2026-11-21T05:01:30Z");
    assert_eq!(of("7d").unwrap(), "2026-11-28T05:00:00Z");
    assert_eq!(of("2030-01-31").unwrap(), "2030-01-31T00:00:00Z");
    for text in ["", "soon", "5", "h", "-5m", "99999999999999999999d", "2030-02-31"] {
        assert!(line(&["c-1", &format!("--expiry={text}")]).is_err() || text.is_empty(), "{text}");
    }
}

#[test]
fn all_letters_are_for_who_asks() {
    let minted = line(&["c-1", "-p", "ldwcar"]).unwrap();
    assert!(minted.query.contains("&sr=c&sp=racwdl&"), "{}", minted.query);
    assert_eq!(minted.permissions.as_deref(), Some("racwdl"));
}

#[test]
fn signatures_that_permit_nothing_are_warned_of() {
    let of = |words: &[&str]| line(words).unwrap().warning;
    assert_eq!(of(&["c-1"]), None);
    assert_eq!(of(&["c-1", "--policy", "p"]), None);
    assert_eq!(of(&["c-1", "--start", "2026-11-21", "--expiry", "1h"]), None);
    let past = of(&["c-1", "--expiry", "2026-11-21T05:00:00Z"]).unwrap();
    assert!(past.contains("expired at 2026-11-21T05:00:00Z"), "{past}");
    let never = of(&["c-1", "--start", "2026-11-22", "--expiry", "1h"]).unwrap();
    assert!(never.contains("before it begins at 2026-11-22"), "{never}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for words in [
        &["Upper"][..],
        &["c-1", "-p", "rz"],
        &["--types", "x"],
        &["--policy", "p"],
        &["c-1", "--snapshot", "2026-11-21T04:00:00.0000000Z"],
        &["c-1", "--endpoint", "ftp://x"],
        &["c-1", "--start", "8h"],
        &["c-1", "--ip", "nowhere"],
        &["c-1", "--ip", "10.0.0.1-"],
        &["c-1", "-k", "name"],
        &["c-1", "-k", "name:notbase64!"],
    ] {
        assert!(line(words).is_err(), "{words:?}");
    }
}
