//! Accounts for development that are served anywhere.

use std::ffi::OsString;

use super::*;
use crate::node::config::accounts::AccountText;
use crate::node::config::accounts::DEVELOPMENT_KEY;

const PUBLIC: &str = "0.0.0.0:10000";

fn settings(azurite_accounts: Option<&str>) -> Settings {
    Settings {
        blob_listen: Some(PUBLIC.parse().unwrap()),
        azurite_accounts: AccountText::all_of_azurite(azurite_accounts.map(OsString::from)),
        ..Settings::default()
    }
}

fn names(config: &Config) -> Vec<&str> {
    config.accounts.iter().map(|account| account.name().as_str()).collect()
}

#[test]
fn development_account_is_served_anywhere_when_that_is_said() {
    let anywhere = Some(DevelopmentAccount::Anywhere);
    let config =
        Config::from_settings(Settings { development_account: anywhere, ..settings(None) });
    let config = config.unwrap();
    assert_eq!(names(&config), ["devstoreaccount1"]);
    assert!(config.serves_development_anywhere() && config.account_hosts().know("azurite:1"));
    assert!(!config.known_hosts().know("azurite:1"), "the admin listener is protected as before");

    let on_loopback = Settings { blob_listen: None, ..settings(Some("one:a2V5")) };
    let protected = Config::from_settings(on_loopback).unwrap();
    assert!(!protected.account_hosts().know("azurite:1"), "no other machine reaches it");
    let loopback = Some(DevelopmentAccount::Loopback);
    let ruled_out = Settings { development_account: loopback, ..settings(Some("one:a2V5")) };
    assert!(Config::from_settings(ruled_out).is_err());

    let quiet = Config::from_settings(settings(None)).unwrap();
    assert!(!quiet.serves_development_anywhere() && !quiet.account_hosts().know("azurite:1"));
    assert!(quiet.accounts.is_empty());
}

#[test]
fn accounts_of_azurite_are_for_development() {
    let given = format!("devstoreaccount1:{DEVELOPMENT_KEY}; short:a2V5:c2Vjb25k;");
    let config = Config::from_settings(settings(Some(&given))).unwrap();
    assert_eq!(names(&config), ["devstoreaccount1", "short"]);
    assert!(config.accounts.iter().all(|account| account.keys().is_ok()));
    assert!(config.account_hosts().know("azurite:1"));

    for none in [None, Some(""), Some(" ; ")] {
        assert!(Config::from_settings(settings(none)).unwrap().accounts.is_empty(), "{none:?}");
    }
    for (wrong, message) in [
        ("one", "the key is missing"),
        ("One:a2V5", "not an account name"),
        ("one:*", "not base64"),
        ("one:", "AZURITE_ACCOUNTS: account one: the key is empty"),
        ("one:a:b:c", "one or two keys"),
        ("one:a2V5;one:a2V5", "one"),
    ] {
        let error = Config::from_settings(settings(Some(wrong))).unwrap_err().to_string();
        assert!(error.contains(message), "{wrong}: {error}");
    }
}
