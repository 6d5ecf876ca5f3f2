//! Reads the crate's own source files: which file is which module, and what each one imports.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module's path within its crate, outermost first.
pub type ModulePath = Vec<String>;

/// One file of the crate.
pub struct SourceFile {
    /// Relative to the crate's root.
    pub path: PathBuf,
    pub module: ModulePath,
    /// The code without comments and without its tests.
    pub code: String,
}

/// All files of one crate (the library or the command), by module path.
pub struct SourceTree {
    pub files: BTreeMap<ModulePath, SourceFile>,
    /// By module: the names that it re-exports, and where each really comes from.
    exports: BTreeMap<ModulePath, BTreeMap<String, ModulePath>>,
}

impl SourceTree {
    /// Reads every file under `folder` but those that belong to tests and to `skipped` folders.
    pub fn read(folder: &str, skipped: &[&str]) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = BTreeMap::new();
        collect(&root.join(folder), &mut |path| {
            let below = path.strip_prefix(root.join(folder)).expect("it was found there");
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            if is_test(below) || skipped.iter().any(|skip| below.starts_with(skip)) {
                return;
            }
            let mut module: ModulePath =
                below.parent().into_iter().flatten().map(|part| part.to_string_lossy().into_owned()).collect();
            if !matches!(stem, "mod" | "lib" | "main") {
                module.push(stem.to_owned());
            }
            let text = fs::read_to_string(path).expect("a source file is text");
            let path = path.strip_prefix(root).expect("it is below the root").to_path_buf();
            files.insert(module.clone(), SourceFile { path, module, code: code_of(&text) });
        });
        let mut tree = Self { files, exports: BTreeMap::new() };
        tree.exports = tree.files.values().map(|file| (file.module.clone(), tree.exports_of(file))).collect();
        tree
    }

    /// The modules whose code a file imports: re-exports are followed to where the name is defined.
    pub fn imports(&self, file: &SourceFile) -> BTreeSet<ModulePath> {
        let declared = uses(&file.code).into_iter().filter(|used| !used.exported).map(|used| used.path);
        let inline = inline_paths(&file.code);
        declared.chain(inline).filter_map(|path| self.resolve(&file.module, &path)).collect()
    }

    fn exports_of(&self, file: &SourceFile) -> BTreeMap<String, ModulePath> {
        let exported = uses(&file.code).into_iter().filter(|used| used.exported);
        exported.filter_map(|used| Some((used.name, self.absolute(&file.module, &used.path)?))).collect()
    }

    /// The module that defines what a path names.
    fn resolve(&self, from: &[String], path: &[String]) -> Option<ModulePath> {
        let mut path = self.absolute(from, path)?;
        // Every step follows one re-export; a ring of them would be an error of the compiler's.
        for _ in 0..8 {
            let known = (0..=path.len()).rev().find(|&len| self.files.contains_key(&path[..len]))?;
            let Some(name) = path.get(known) else { return Some(path) };
            match self.exports.get(&path[..known]).and_then(|exports| exports.get(name)) {
                Some(target) if target[..] != path[..=known] => path = target.clone(),
                _ => return Some(path[..known].to_vec()),
            }
        }
        None
    }

    /// A path from the crate's root; `None` for other crates.
    fn absolute(&self, from: &[String], path: &[String]) -> Option<ModulePath> {
        let (first, rest) = path.split_first()?;
        let mut base = match first.as_str() {
            "crate" => Vec::new(),
            "self" => from.to_vec(),
            "super" => from.split_last()?.1.to_vec(),
            child => {
                let own: Vec<String> = from.iter().cloned().chain([child.to_owned()]).collect();
                if !self.files.contains_key(&own) {
                    return None;
                }
                own
            }
        };
        for part in rest {
            match part.as_str() {
                "super" => drop(base.pop()),
                "self" | "*" => {}
                part => base.push(part.to_owned()),
            }
        }
        Some(base)
    }
}

/// One name that a `use` brings in.
struct Use {
    path: Vec<String>,
    name: String,
    exported: bool,
}

fn collect(folder: &Path, found: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(folder).expect("a folder of sources").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found(&path);
        }
    }
}

fn is_test(path: &Path) -> bool {
    path.with_extension("").components().any(|part| {
        let part = part.as_os_str().to_string_lossy();
        matches!(&*part, "tests" | "testing") || part.ends_with("_tests")
    })
}

/// Without comments, and without the tests at the end.
fn code_of(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let next_is_module =
            lines.peek().is_some_and(|next| next.starts_with("mod ") && next.ends_with('{') || next.starts_with("#["));
        if line.starts_with("#[cfg(") && line.contains("test") && next_is_module {
            break;
        }
        code.push_str(line.split_once("//").map_or(line, |(before, _)| before));
        code.push('\n');
    }
    code
}

/// Every name of every `use`, its braces taken apart.
fn uses(code: &str) -> Vec<Use> {
    let mut found = Vec::new();
    let mut test_only = false;
    for statement in code.split_inclusive([';', '{', '}']).scan(String::new(), join_use) {
        let Some(statement) = statement else { continue };
        let (head, tree) = statement.split_once("use ").unwrap_or(("", &statement));
        test_only |= head.contains("cfg(test)");
        if !test_only {
            expand(
                &[],
                tree.trim_end_matches(';'),
                head.trim_end().ends_with("pub") || head.contains("pub("),
                &mut found,
            );
        }
        test_only = false;
    }
    found
}

/// Puts the pieces of one `use` with braces together again; every other statement is passed over.
fn join_use(open: &mut String, piece: &str) -> Option<Option<String>> {
    let starts = |text: &str| {
        let text = text.trim_start();
        ["use ", "pub use ", "pub(", "#["].iter().any(|start| text.starts_with(start)) && text.contains("use ")
    };
    open.push_str(piece);
    if !starts(open) {
        open.clear();
        return Some(None);
    }
    Some(piece.ends_with(';').then(|| std::mem::take(open).split_whitespace().collect::<Vec<_>>().join(" ")))
}

fn expand(prefix: &[String], tree: &str, exported: bool, found: &mut Vec<Use>) {
    let tree = tree.trim();
    if let Some((head, group)) = tree.split_once('{') {
        let prefix: Vec<String> = prefix.iter().cloned().chain(segments(head)).collect();
        let group = group.trim_end().strip_suffix('}').unwrap_or(group);
        top_level_parts(group).for_each(|part| expand(&prefix, part, exported, found));
        return;
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias)));
    let path: Vec<String> = prefix.iter().cloned().chain(segments(path)).collect();
    if let Some(name) = alias.map(str::to_owned).or_else(|| path.last().cloned()) {
        found.push(Use { path, name, exported });
    }
}

fn segments(path: &str) -> impl Iterator<Item = String> + '_ {
    path.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned)
}

/// The parts between the commas that no brace encloses.
fn top_level_parts(group: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let parts = group.split(move |c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    parts.filter(|part| !part.trim().is_empty())
}

/// Paths from the crate's root that stand in the code itself.
fn inline_paths(code: &str) -> Vec<Vec<String>> {
    let code: String = code.lines().filter(|line| !line.contains("use ")).map(|line| format!("{line}\n")).collect();
    let code = code.replace("(in crate::", "(in ");
    let after = code.split("crate::").skip(1);
    after
        .map(|rest| {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(rest.len());
            ["crate".to_owned()].into_iter().chain(segments(&rest[..end])).collect()
        })
        .collect()
}
