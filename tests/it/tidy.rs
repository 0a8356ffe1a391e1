//! Rules that no compiler checks: sizes of files, widths of comments, container files and the index
//! of decisions.

use std::collections::BTreeSet;

use blockyard::cli::Cli;
use clap::CommandFactory;

use crate::tree;

/// Lines of a file of code: of the program, of its tests and of benchmarks, in Rust or Python.
const LINES_MAX: usize = 500;

#[test]
fn source_files_are_small() {
    let mut long = Vec::new();
    for file in ["rs", "py"].into_iter().flat_map(tree::code) {
        let count = file.text.lines().count();
        if count > LINES_MAX {
            long.push(format!("{}: {count} lines, at most {LINES_MAX}", file.name));
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// rustfmt leaves comments as they are.
#[test]
fn comments_fit_into_100_columns() {
    let mut wide = Vec::new();
    for file in tree::code("rs") {
        for (number, line) in file.text.lines().enumerate() {
            if line.trim_start().starts_with("//") && line.chars().count() > 100 {
                wide.push(format!("{}:{}", file.name, number + 1));
            }
        }
    }
    assert!(wide.is_empty(), "comments wider than 100 columns: {}", wide.join(", "));
}

/// A seed replays a history only when nothing draws from elsewhere: `select!` does unless it says
/// `biased`.
#[test]
fn selects_are_biased() {
    let mut random = Vec::new();
    for file in tree::files("src", "rs") {
        let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
        for (number, pair) in lines.windows(2).enumerate() {
            let is_select = pair[0].contains("select! {") && !pair[0].starts_with("//");
            if is_select && pair[1] != "biased;" {
                random.push(format!("{}:{}", file.name, number + 1));
            }
        }
    }
    assert!(random.is_empty(), "not biased: {}", random.join(", "));
}

const COMPOSE: [&str; 2] = ["docker/compose.single.yaml", "docker/compose.dev.yaml"];

/// Names of `BLOCKYARD_...` variables in a text.
fn variables(text: &str) -> BTreeSet<&str> {
    text.match_indices("BLOCKYARD_")
        .map(|(at, _)| {
            let rest = &text[at..];
            let is_name = |c: char| c.is_ascii_uppercase() || c == '_';
            &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())]
        })
        .collect()
}

/// Variables the program reads.
fn known_variables() -> BTreeSet<String> {
    let cli = Cli::command();
    let arguments = cli.get_subcommands().flat_map(clap::Command::get_arguments);
    arguments.filter_map(|a| a.get_env()?.to_str().map(str::to_owned)).collect()
}

#[test]
fn container_files_name_variables_that_exist() {
    let known = known_variables();
    assert!(known.len() > 15, "{known:?}");
    for name in ["docker/Dockerfile", COMPOSE[0], COMPOSE[1]] {
        let text = tree::read(name);
        let used = variables(&text);
        assert!(!used.is_empty(), "{name}");
        for variable in used {
            assert!(known.contains(variable), "{name}: {variable} is no setting");
        }
    }
}

/// Arguments of a Dockerfile instruction.
fn instruction<'a>(dockerfile: &'a str, name: &str) -> Vec<&'a str> {
    let lines = dockerfile.lines();
    lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).collect()
}

/// The words of an instruction in exec form.
fn words(text: &str) -> Vec<String> {
    let list = &text[text.find('[').expect("exec form")..];
    serde_json::from_str(list).unwrap_or_else(|error| panic!("{list}: {error}"))
}

/// On the volume of the data it would be in every copy of it; in the image's own layer it would be
/// gone with the container, and all data with it.
#[test]
fn master_key_of_the_image_is_on_a_volume_of_its_own() {
    let text = tree::read("docker/Dockerfile");
    let env = |name: &str| {
        let settings = instruction(&text, "ENV");
        let found =
            settings.iter().find_map(|setting| setting.strip_prefix(name)?.strip_prefix('='));
        found.unwrap_or_else(|| panic!("{name} is not set")).to_owned()
    };
    let (key, data) = (env("BLOCKYARD_MASTER_KEY_FILE"), env("BLOCKYARD_DATA"));
    let (folder, _) = key.rsplit_once('/').expect("a path");
    let volumes = instruction(&text, "VOLUME");
    assert!(volumes.contains(&folder) && volumes.contains(&data.as_str()), "{volumes:?}");
    assert!(!format!("{folder}/").starts_with(&format!("{data}/")), "{folder} in {data}");
}

#[test]
fn dockerfile_parses_and_its_commands_do_too() {
    let text = tree::read("docker/Dockerfile");
    let known = [
        "FROM",
        "RUN",
        "WORKDIR",
        "COPY",
        "USER",
        "VOLUME",
        "ENV",
        "EXPOSE",
        "STOPSIGNAL",
        "HEALTHCHECK",
        "ENTRYPOINT",
        "CMD",
    ];
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let word = line.split(' ').next().unwrap();
        assert!(known.contains(&word), "{line}");
    }
    let stages =
        ["rust:1.95-alpine AS build", "busybox:musl AS server", "server AS azurite", "server"];
    assert_eq!(instruction(&text, "FROM"), stages, "the last one is the image; it has a shell");
    for name in ["azurite", "azurite-blob"] {
        let link = format!("ln -s /blockyard /empty/bin/{name}");
        assert!(instruction(&text, "RUN").iter().any(|run| run.contains(&link)), "{name}");
    }
    assert_ne!(instruction(&text, "USER"), ["0"], "not the superuser");
    assert_eq!(words(instruction(&text, "ENTRYPOINT")[0]), ["/blockyard"]);
    let health = words(instruction(&text, "HEALTHCHECK")[0]);
    let starts: Vec<Vec<String>> = instruction(&text, "CMD").into_iter().map(words).collect();
    assert_eq!(starts.len(), 2, "{starts:?}");
    for command in starts.into_iter().chain([health[1..].to_vec()]) {
        let full = std::iter::once("blockyard".to_owned()).chain(command);
        Cli::command().try_get_matches_from(full).unwrap();
    }
    let exposed: Vec<&str> = instruction(&text, "EXPOSE")[0].split(' ').collect();
    let listeners = [
        ("BLOCKYARD_BLOB_LISTEN", exposed.first().unwrap()),
        ("BLOCKYARD_ADMIN_LISTEN", exposed.last().unwrap()),
    ];
    for (variable, port) in listeners {
        let set = instruction(&text, "ENV").into_iter().find_map(|e| e.strip_prefix(variable));
        assert!(set.unwrap().ends_with(&format!(":{port}")), "{variable} {port}");
    }
    for copied in instruction(&text, "COPY").iter().filter(|args| !args.starts_with("--")) {
        let (sources, _) = copied.rsplit_once(' ').unwrap();
        for source in sources.split(' ') {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
            assert!(path.exists(), "{source}");
        }
    }
}

#[test]
fn compose_files_are_plain_and_need_nothing_set() {
    for name in COMPOSE {
        let text = tree::read(name);
        check_compose(&text);
        // Compose refuses to start without such a variable.
        assert!(!text.contains(":?"), "{name} needs a variable");
    }
}

fn check_compose(text: &str) {
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let indent = line.len() - line.trim_start().len();
        assert!(!line.contains('\t') && indent % 2 == 0, "{line}");
        let entry = line.trim_start();
        assert!(entry.starts_with("- ") || entry.contains(':'), "{line}");
    }
    let command = text.lines().find_map(|line| line.trim_start().strip_prefix("command: "));
    let full = std::iter::once("blockyard".to_owned()).chain(words(command.unwrap()));
    Cli::command().try_get_matches_from(full).unwrap();
    assert!(text.contains("dockerfile: docker/Dockerfile"));
}

#[test]
fn licences_are_those_the_manifest_names() {
    assert!(tree::read("Cargo.toml").contains("license = \"MIT OR Apache-2.0\""));
    assert!(tree::read("LICENSE-MIT").contains("Permission is hereby granted, free of charge"));
    assert!(tree::read("LICENSE-APACHE").contains("Version 2.0, January 2004"));
}

/// An index that lacks a decision, or has another title, misleads its reader.
#[test]
fn index_of_decisions_has_all_of_them() {
    let index = tree::read("docs/adr/README.md");
    let records: Vec<_> = tree::files("docs/adr", "md")
        .into_iter()
        .filter(|file| file.name != "docs/adr/README.md")
        .collect();
    for file in &records {
        let name = file.name.trim_start_matches("docs/adr/");
        let number = &name[..4];
        let title = file.text.lines().next().unwrap().trim_start_matches("# ");
        let title = title.trim_start_matches(number).trim_start();
        let row = format!("| [{number}]({name}) | {title} | ");
        assert!(index.contains(&row), "docs/adr/README.md lacks '{row}...'");
    }
    let rows = index.lines().filter(|line| line.starts_with("| [")).count();
    assert_eq!(rows, records.len(), "a row of docs/adr/README.md has no record");
}
