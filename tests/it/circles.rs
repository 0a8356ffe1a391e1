//! Circles of imports: sets of files that reach each other by `crate::` and `super::` paths. A file
//! in a circle cannot be read, moved or tested without all others of it, so there is none.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::tree;

/// A module by its path from the crate's root, such as `["capacity", "node"]`.
type Module = Vec<String>;

/// Which modules each module imports.
#[derive(Debug, Default)]
struct Graph {
    imports: BTreeMap<Module, BTreeSet<Module>>,
}

impl Graph {
    /// The graph of files by their paths below `src/`; tests of the code are left out.
    fn of(files: &[(String, String)]) -> Self {
        let modules: BTreeMap<Module, &str> = files
            .iter()
            .filter(|(name, _)| !is_test(name))
            .map(|(name, text)| (module_of(name), text.as_str()))
            .collect();
        let mut graph = Self::default();
        for (module, text) in &modules {
            let named = paths(text, module).into_iter().filter_map(|path| file_of(&path, &modules));
            let imported = named.filter(|other| other != module).collect();
            graph.imports.insert(module.clone(), imported);
        }
        graph
    }

    /// Everything that a module reaches, itself only if it is in a circle.
    fn reach<'a>(&'a self, from: &Module) -> BTreeSet<&'a Module> {
        let mut reached = BTreeSet::new();
        let mut next: Vec<&Module> = self.imports[from].iter().collect();
        while let Some(module) = next.pop() {
            if reached.insert(module) {
                next.extend(&self.imports[module]);
            }
        }
        reached
    }

    /// Each circle once, its modules in order; the largest first.
    fn circles(&self) -> Vec<Vec<&Module>> {
        let reach: BTreeMap<&Module, BTreeSet<&Module>> =
            self.imports.keys().map(|module| (module, self.reach(module))).collect();
        let mut circles = BTreeSet::new();
        for (module, reached) in &reach {
            let back = |other: &&&Module| reach[**other].contains(*module);
            let circle: Vec<&Module> = reached.iter().filter(back).copied().collect();
            if !circle.is_empty() {
                circles.insert(circle);
            }
        }
        let mut circles: Vec<_> = circles.into_iter().collect();
        circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
        circles
    }
}

fn is_test(name: &str) -> bool {
    ["/tests/", "/tests.rs", "/testing/", "/testing.rs"].iter().any(|part| name.contains(part))
}

/// The module that a file is: `src/index/mod.rs` is `index`.
fn module_of(name: &str) -> Module {
    let path = name.trim_start_matches("src/").trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    path.split('/').map(str::to_owned).collect()
}

/// The file that a path leads into.
fn file_of(path: &[String], modules: &BTreeMap<Module, &str>) -> Option<Module> {
    (1..=path.len()).rev().map(|len| path[..len].to_vec()).find(|path| modules.contains_key(path))
}

/// Every path behind `crate::` or `super::` in the code of a module, from the crate's root; groups
/// are taken apart.
fn paths(text: &str, module: &Module) -> Vec<Vec<String>> {
    let tests = text.find("\n#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let code: Vec<&str> =
        text[..tests].lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    let parent = &module[..module.len().saturating_sub(1)];
    let mut found = Vec::new();
    for (word, before) in [("crate::", &[][..]), ("super::", parent)] {
        for (at, _) in code.match_indices(word) {
            let inside = |c: char| c.is_alphanumeric() || c == '_' || c == '$' || c == ':';
            if !code[..at].ends_with(inside) {
                path(&code[at + word.len()..], &mut before.to_vec(), &mut found);
            }
        }
    }
    found
}

/// Takes in the paths that `code` begins with, each behind `before`; what follows them.
fn path<'a>(code: &'a str, before: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> &'a str {
    let code = code.trim_start();
    if let Some(mut rest) = code.strip_prefix('{') {
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
            if let Some(rest) = rest.strip_prefix('}') {
                return rest;
            }
            let left = path(rest, &mut before.clone(), found);
            // A renamed import: `a as b`.
            rest = left.find([',', '}', '{']).map_or("", |end| &left[end..]);
        }
    }
    let end = code.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(code.len());
    match &code[..end] {
        "super" => drop(before.pop()),
        name => before.push(name.to_owned()),
    }
    match code[end..].strip_prefix("::") {
        Some(rest) if end > 0 && !rest.starts_with('<') => path(rest, before, found),
        Some(_) | None => {
            found.push(before.clone());
            &code[end..]
        }
    }
}

#[test]
fn there_is_no_circle_of_imports() {
    let files: Vec<_> =
        tree::files("src", "rs").into_iter().map(|file| (file.name, file.text)).collect();
    let graph = Graph::of(&files);
    let circles = graph.circles();
    let arrows: usize = graph.imports.values().map(BTreeSet::len).sum();
    let shown: Vec<String> = circles
        .iter()
        .map(|circle| circle.iter().map(|module| module.join("::")).collect::<Vec<_>>().join(" "))
        .collect();
    println!("{} files, {arrows} imports, {} circles", graph.imports.len(), circles.len());
    assert!(circles.is_empty(), "files that reach each other:\n{}", shown.join("\n"));
}

#[test]
fn circle_is_found_through_groups_facades_and_functions() {
    let file = |name: &str, text: &str| (format!("src/{name}"), text.to_owned());
    let files = [
        file("a/mod.rs", "pub use crate::a::one::One;"),
        file("a/one.rs", "use crate::{\n    a::two::{self, Two as Other},\n    b,\n};\n"),
        file("a/two.rs", "fn f() -> Vec<crate::a::three::Three> {}"),
        file("a/three.rs", "// crate::b\nuse super::super::a::One;\n"),
        file("b.rs", "fn f() {}\n#[cfg(test)]\nmod tests {\n    use crate::a::One;\n}\n"),
        file("a/tests.rs", "use crate::b;\n"),
    ];
    let graph = Graph::of(&files);
    let circles: Vec<Vec<String>> = graph
        .circles()
        .iter()
        .map(|circle| circle.iter().map(|module| module.join("::")).collect())
        .collect();
    assert_eq!(circles, [["a", "a::one", "a::three", "a::two"]]);
    let alone = Graph::of(&files[1..2]);
    assert!(alone.circles().is_empty());
}
