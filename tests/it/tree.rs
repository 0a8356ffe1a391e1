//! The repository's files, for tests about the code itself.

use std::path::Path;
use std::path::PathBuf;

/// A text file of the repository.
pub(crate) struct File {
    /// Path from the root, with `/`.
    pub(crate) name: String,
    pub(crate) text: String,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The text of one file.
pub(crate) fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Writes one file anew.
#[expect(clippy::disallowed_methods, reason = "a document made by a test, on request only")]
pub(crate) fn write(name: &str, text: &str) {
    std::fs::write(root().join(name), text).unwrap_or_else(|error| panic!("{name}: {error}"));
}

/// All files below a folder with that extension, by name. There is one at least.
pub(crate) fn files(folder: &str, extension: &str) -> Vec<File> {
    let found = files_if_any(folder, extension);
    assert!(!found.is_empty(), "no .{extension} below {folder}");
    found
}

/// All files below a folder with that extension, by name.
fn files_if_any(folder: &str, extension: &str) -> Vec<File> {
    let mut found = Vec::new();
    collect(&root().join(folder), extension, &mut found);
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// Where builds of programs of their own put what they make.
const BUILT: [&str; 2] = ["tests/fuzz/target/", "tests/power/target/"];

/// All files of code with that extension, those of tests included; what a build made is left out.
pub(crate) fn code(extension: &str) -> Vec<File> {
    let folders = ["src", "tests", "benches"].into_iter();
    let mut found: Vec<File> = folders.flat_map(|folder| files_if_any(folder, extension)).collect();
    found.retain(|file| !BUILT.iter().any(|folder| file.name.starts_with(folder)));
    assert!(!found.is_empty(), "no .{extension} in the tree");
    found
}

fn collect(folder: &Path, extension: &str, found: &mut Vec<File>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, extension, found);
        } else if path.extension().is_some_and(|e| e == extension) {
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/");
            found.push(File { text: std::fs::read_to_string(&path).unwrap(), name });
        }
    }
}
