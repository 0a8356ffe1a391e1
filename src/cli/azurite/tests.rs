use clap::Parser;

use super::super::args::Command;
use super::*;

/// The settings of a command line, as of a program with this name, and its services.
fn read(line: &str) -> (Result<Settings, CliError>, Services) {
    let words = arguments(line.split_whitespace().map(OsString::from));
    let command = Cli::try_parse_from(words).unwrap().command;
    if let Command::Azurite(args) = command {
        (settings(*args, Services::All), Services::All)
    } else if let Command::AzuriteBlob(args) = command {
        (settings(*args, Services::Blob), Services::Blob)
    } else {
        panic!("{command:?}")
    }
}

fn listen(settings: &Settings) -> String {
    settings.blob_listen.unwrap().to_string()
}

#[test]
fn program_may_be_called_by_the_names_of_azurite() {
    for line in ["azurite", "/usr/bin/azurite", "blockyard azurite"] {
        let (settings, services) = read(line);
        let settings = settings.unwrap();
        assert_eq!(listen(&settings), "127.0.0.1:10000", "{line}");
        let ports: Vec<_> = settings.unserved.unwrap().iter().map(|p| p.address.port()).collect();
        assert_eq!((services, ports), (Services::All, vec![10_001, 10_002]));
        assert_eq!(settings.development_account, None);
    }
    for line in ["azurite-blob", "blockyard azurite-blob"] {
        let (settings, services) = read(line);
        assert_eq!((services, settings.unwrap().unserved), (Services::Blob, Some(Vec::new())));
    }
    let serve: Vec<OsString> =
        arguments(["blockyard", "serve", "--x"].map(OsString::from).into_iter());
    assert_eq!(serve, ["blockyard", "serve", "--x"], "other commands are not touched");
}

#[test]
fn flags_of_azurite_are_settings() {
    let line = "azurite --blobHost 0.0.0.0 --blobPort 1 --queueHost ::1 --queuePort 2 --tablePort=3 \
                -l /data -s -d log.txt -L --cert c --key k --skipApiVersionCheck --disableTelemetry \
                --disableProductStyleUrl --extentMemoryLimit 50 --new 1 --last-access-time";
    let settings = read(line).0.unwrap();
    assert_eq!(listen(&settings), "0.0.0.0:1");
    let unserved = settings.unserved.unwrap();
    let addresses: Vec<String> = unserved.iter().map(|port| port.address.to_string()).collect();
    assert_eq!(addresses, ["[::1]:2", "127.0.0.1:3"]);
    assert_eq!(settings.development_account, Some(DevelopmentAccount::Anywhere));
    assert_eq!(settings.data, Some(vec![PathBuf::from("/data/blockyard-data")]));
    assert_eq!(settings.master_key_file, Some(PathBuf::from("/data/blockyard-data.key")));
    assert_eq!((settings.tls_cert, settings.tls_key), (Some("c".into()), Some("k".into())));
    assert_eq!((settings.blob_domain, settings.log), (Some(Vec::new()), Some("debug".to_owned())));
    assert!(settings.last_access_time.is_some(), "settings of serve");

    let loopback = read("azurite --blobHost localhost").0.unwrap();
    assert_eq!(loopback.development_account, None, "host names are checked there as before");
    let refused = read("azurite --blobHost 0.0.0.0 --development-account loopback").0.unwrap();
    assert_eq!(refused.development_account, Some(DevelopmentAccount::Loopback));
    let logged = read("azurite -s --log error").0.unwrap();
    assert_eq!(logged.log, Some("error".to_owned()));
}

#[test]
fn unknown_flags_are_kept_for_their_warning() {
    let words = ["blockyard", "azurite", "--telemetry", "1", "--blobPort", "5"].map(OsString::from);
    let Command::Azurite(args) = Cli::parse_from(arguments(words.into_iter())).command else {
        panic!("another command")
    };
    assert_eq!((args.unknown_flag, args.blob_port), (vec!["--telemetry".to_owned()], Some(5)));
}

#[test]
fn certificate_with_a_password_is_a_pfx_file() {
    let settings = read("azurite --cert c.pfx --pwd secret").0.unwrap();
    let file = settings.pfx.as_ref().unwrap();
    assert_eq!((file.path.to_str(), file.password.as_str()), (Some("c.pfx"), "secret"));
    assert_eq!((&settings.tls_cert, &settings.tls_key), (&None, &None));
    assert!(!format!("{settings:?}").contains("secret"), "{settings:?}");
    let empty = read("azurite --cert c.pfx --pwd=").0.unwrap().pfx.unwrap();
    assert_eq!(empty.password.as_str(), "");
    let with_key = read("azurite --cert c --key k --pwd secret").0.unwrap();
    assert_eq!((with_key.pfx, with_key.tls_cert), (None, Some("c".into())), "as in Azurite");
}

#[test]
fn refusals_say_what_to_do() {
    let refusal = |line: &str| read(line).0.unwrap_err().to_string();
    assert!(
        refusal("azurite --blobHost me.example").contains("--blobHost me.example: write an IP")
    );
    let words =
        arguments(["azurite", "-l", "x", "--inMemoryPersistence"].map(OsString::from).into_iter());
    assert!(Cli::try_parse_from(words).is_err());
}
