//! What users install: starts without an account, completions, manual pages, and the files of the
//! Debian package and of the image.

#![expect(clippy::disallowed_methods, reason = "looks at and changes the files of a store")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use blockyard::cli::Cli;
use clap::CommandFactory;

use crate::folder::Data;
use crate::program::Node;
use crate::program::run;
use crate::program::words;
use crate::tree;

const SERVICE: &str = "docker/debian/blockyard.service";
const CONFIGURATION: &str = "docker/debian/blockyard.toml";

/// The package's service has such a file when there is no /etc/blockyard/accounts.
fn empty_account_file(folder: &Path) -> String {
    let path = folder.join("accounts");
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn store_without_an_account_starts_and_a_command_makes_one() {
    let (data, folder) = (Data::new(), tempfile::tempdir().unwrap());
    let accounts = empty_account_file(folder.path());
    let start = || Node::start_with(&[data.path()], &["--account-file", &accounts]);
    let node = start();
    let (admin, place) = (node.admin().to_string(), data.path().to_str().unwrap());
    let command =
        |words: &[&str]| run(&[words, &["--admin-listen", &admin, "--data", place]].concat());
    let list = words(&command(&["account", "list"]));
    assert!(list.contains("no accounts") && list.contains("account create NAME"), "{list}");
    let health = run(&["health", "--admin-listen", &admin]);
    assert_eq!(words(&health), "ready\n");
    let made = words(&command(&["account", "create", "photos"]));
    assert!(made.contains("connection string"), "{made}");
    assert_eq!(node.end("-KILL"), None);
    let node = start();
    let admin = node.admin().to_string();
    let list = run(&["account", "list", "--admin-listen", &admin, "--data", place]);
    assert!(words(&list).contains("\nphotos\tstore\t"), "{}", words(&list));
    assert_eq!(node.end("-TERM"), Some(0));
}

#[test]
fn completions_are_printed_for_shells_that_exist() {
    for shell in ["bash", "zsh", "fish"] {
        let printed = run(&["completions", shell]);
        assert_eq!(printed.status.code(), Some(0), "{shell}");
        assert!(words(&printed).contains("master-key-file"), "{shell}");
    }
    let wrong = run(&["completions", "cmd"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(words(&wrong).contains("fish"), "it names those that exist: {}", words(&wrong));
}

#[test]
fn manual_pages_go_to_a_folder_that_may_be_missing() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("share/man1");
    let written = run(&["man", pages.to_str().unwrap()]);
    assert_eq!(written.status.code(), Some(0), "{}", words(&written));
    assert!(pages.join("blockyard.1").exists() && pages.join("blockyard-serve.1").exists());
    std::fs::write(folder.path().join("file"), "").unwrap();
    let refused = run(&["man", folder.path().join("file").to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(words(&refused).contains("manual pages"), "{}", words(&refused));
}

/// The settings of the service, as `NAME=VALUE`.
fn service() -> Vec<(String, String)> {
    let text = tree::read(SERVICE);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let settings = lines.filter_map(|line| line.split_once('='));
    settings.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn setting(name: &str) -> String {
    let found = service().into_iter().find(|(found, _)| found == name);
    found.unwrap_or_else(|| panic!("{SERVICE} lacks {name}")).1
}

#[test]
fn service_of_the_package_starts_the_program_with_its_configuration() {
    let command = setting("ExecStart");
    let command: Vec<&str> = command.split(' ').collect();
    assert_eq!(command[0], "/usr/bin/blockyard");
    Cli::command().try_get_matches_from(&command).unwrap();
    assert!(command.contains(&"/etc/blockyard/blockyard.toml"));
    let environment = setting("Environment");
    let (variable, _) = environment.split_once('=').unwrap();
    let serve = Cli::command().find_subcommand("serve").unwrap().clone();
    let mut variables = serve.get_arguments().filter_map(|one| one.get_env()?.to_str());
    assert!(variables.any(|known| known == variable), "{variable} is no setting");
    // What the configuration names, the service may write.
    let folders = setting("StateDirectory");
    let folders: Vec<String> = folders.split(' ').map(|one| format!("/var/lib/{one}/")).collect();
    let configuration = tree::read(CONFIGURATION);
    let paths: Vec<&str> =
        configuration.split('"').filter(|value| value.starts_with("/var/")).collect();
    assert_eq!(paths.len(), 2, "data and key: {paths:?}");
    for path in paths {
        assert!(folders.iter().any(|folder| path.starts_with(folder)), "{path} in {folders:?}");
    }
    let drain = setting("TimeoutStopSec").parse::<u32>().unwrap();
    assert!(drain > 30, "the default drain is longer");
}

#[test]
fn configuration_of_the_package_is_valid_and_serves_this_machine_only() {
    let folder = tempfile::tempdir().unwrap();
    let accounts = empty_account_file(folder.path());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(CONFIGURATION);
    let refused = run(&[
        &["serve", "--config", path.to_str().unwrap(), "--account-file", &accounts][..],
        &["--drain-seconds", "9999"],
    ]
    .concat());
    let said = words(&refused);
    assert!(said.contains("drain_seconds must be"), "{said}");
    let text = tree::read(CONFIGURATION);
    for listener in ["blob_listen = \"127.0.0.1:", "admin_listen = \"127.0.0.1:"] {
        assert!(text.contains(listener), "{listener}");
    }
}

#[test]
fn image_and_package_contain_the_profile_for_users() {
    let manifest = tree::read("Cargo.toml");
    let profile = manifest.split("[profile.dist]").nth(1).expect("there is a profile");
    assert!(profile.contains("strip = true") && profile.contains("inherits = \"release\""));
    let image = tree::read("docker/Dockerfile");
    assert_eq!(image.matches("cargo build --locked --profile dist --bin blockyard").count(), 2);
    assert!(image.contains("/etc/ssl/certs/ca-certificates.crt"), "no roots of trust");
}
