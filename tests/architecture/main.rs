//! What the documentation says of the crate's structure is held against its source files.

mod source_tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use source_tree::{ModulePath, SourceTree};

/// Circles between files that have a reason.
const ALLOWED_CIRCLES: &[(&str, &str)] = &[
    (
        "src/any/loader.rs",
        "a backend makes loaders, a loader shows its backend, and an owned epoch gives its loader back",
    ),
    (
        "src/backend/cuda/driver/context.rs",
        "an event is of a context, and a context asks an event of its own whether the device answers",
    ),
    ("src/backend/host/queue.rs", "the queue writes tensors, and a tensor is waited for by running the queue"),
    ("src/backend/wgpu/device.rs", "a device has a health, and looking after it takes the device"),
    ("src/backend/wgpu/direct/mod.rs", "the errors and limits of the folder stand in its head"),
    ("src/backend/wgpu/vulkan/raw/query.rs", "what an adapter has and what is asked of it when a device is opened"),
    ("src/loader/epoch/hold.rs", "an epoch holds its loader, and a loader makes its epochs"),
    ("src/loader/outputs.rs", "an output that comes back is a message to the pump, and messages carry outputs"),
    ("src/loader/schedule/epoch.rs", "one machine: how its epochs begin, follow and end stands in a file of its own"),
    ("src/source/decode/scratch.rs", "formats decode into the scratch, and the scratch chooses the format"),
];

/// The modules in the order of the table in the crate's documentation, and the row each is in: lower ones first.
fn floors() -> BTreeMap<String, usize> {
    let lib = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs")).expect("the crate's root");
    let table = lib.lines().skip_while(|line| *line != "//! | module | holds | knows |").skip(2);
    let rows = table.take_while(|line| line.starts_with("//! |"));
    let modules = rows.enumerate().flat_map(|(row, line)| {
        let cell = line.split('|').nth(1).unwrap_or_default();
        cell.split(',').map(move |name| (name.trim().trim_matches(['[', ']', '`']).to_owned(), row)).collect::<Vec<_>>()
    });
    modules.collect()
}

fn library() -> SourceTree {
    SourceTree::read("src", &["bin"])
}

#[test]
fn every_module_stands_in_the_table_of_the_documentation() {
    let tree = library();
    let modules: BTreeSet<&String> = tree.files.keys().filter_map(|module| module.first()).collect();
    let floors = floors();
    let documented: BTreeSet<&String> = floors.keys().collect();
    assert_eq!(modules, documented);
}

#[test]
fn no_module_imports_from_a_floor_above_it_or_beside_it() {
    let (tree, floors) = (library(), floors());
    let mut wrong = Vec::new();
    for file in tree.files.values() {
        let Some(own) = file.module.first() else { continue };
        for import in tree.imports(file) {
            // The root only passes names on.
            let Some(other) = import.first() else {
                wrong.push(format!("{} imports from the crate's root", file.path.display()));
                continue;
            };
            if own != other && floors.get(other) >= floors.get(own) {
                wrong.push(format!("{} ({own}) imports {}", file.path.display(), import.join("::")));
            }
        }
    }
    assert!(wrong.is_empty(), "imports upwards:\n{}", wrong.join("\n"));
}

#[test]
fn backends_do_not_import_each_other() {
    let tree = library();
    let backend = |module: &ModulePath| match module.as_slice() {
        [first, kind, ..] if first == "backend" && ["host", "wgpu", "cuda"].contains(&kind.as_str()) => {
            Some(kind.clone())
        }
        _ => None,
    };
    for file in tree.files.values() {
        let Some(own) = backend(&file.module) else { continue };
        for import in tree.imports(file) {
            assert!(backend(&import).is_none_or(|other| other == own), "{} imports {import:?}", file.path.display());
        }
    }
}

#[test]
fn no_circle_of_files_is_without_a_reason() {
    let circles: Vec<String> = [library(), SourceTree::read("src/bin/gpufeed", &[])].iter().flat_map(circles).collect();
    assert!(circles.is_empty(), "circles of files:\n{}", circles.join("\n"));
}

/// The imports that close a circle, those of each in one text.
fn circles(tree: &SourceTree) -> BTreeSet<String> {
    let edges: BTreeMap<&ModulePath, BTreeSet<ModulePath>> =
        tree.files.values().map(|file| (&file.module, tree.imports(file))).collect();
    let reached: BTreeMap<&ModulePath, BTreeSet<ModulePath>> =
        edges.keys().map(|module| (*module, reachable(&edges, module))).collect();
    let shown = |module: &ModulePath| tree.files[module].path.display().to_string();
    let rings = reached.iter().filter(|(module, to)| to.contains(**module)).map(|(module, to)| {
        let ring: BTreeSet<&ModulePath> = to.iter().filter(|other| reached[other].contains(*module)).collect();
        let within = ring.iter().flat_map(|from| {
            let to = edges[from].iter().filter(|to| ring.contains(to) && *to != *from);
            to.map(|to| format!("  {} -> {}", shown(from), shown(to))).collect::<Vec<_>>()
        });
        within.collect::<Vec<_>>().join("\n")
    });
    rings.filter(|ring| !ALLOWED_CIRCLES.iter().any(|(file, _)| ring.contains(file))).map(|ring| ring + "\n").collect()
}

/// The modules that a module imports, directly or through others.
fn reachable(edges: &BTreeMap<&ModulePath, BTreeSet<ModulePath>>, from: &ModulePath) -> BTreeSet<ModulePath> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from.clone()]);
    while let Some(module) = next.pop() {
        let further = edges.get(&module).into_iter().flatten().filter(|to| **to != module);
        next.extend(further.filter(|to| seen.insert((*to).clone())).cloned());
    }
    seen
}

#[test]
fn every_backend_names_the_same_ideas_alike() {
    let tree = library();
    for backend in ["host", "wgpu", "cuda"] {
        for file in ["backend", "lane", "tensor"] {
            let module = ["backend", backend, file].map(str::to_owned).to_vec();
            assert!(tree.files.contains_key(&module), "src/backend/{backend}/{file}.rs");
        }
    }
}

/// Files that are longer than a reader likes, and why.
const LONG_FILES: &[(&str, &str)] = &[
    ("src/backend/mod.rs", "the contract: prose and traits that are read together"),
    ("src/loader/mod.rs", "the loader's public face: documentation and short functions"),
    ("src/loader/epoch/mod.rs", "an epoch's public face, as above"),
    ("src/loader/pump/mod.rs", "the whole way of a batch through the pump"),
];
const MAX_LINES: usize = 300;

#[test]
fn no_file_is_long_without_a_reason() {
    let trees = [library(), SourceTree::read("src/bin/gpufeed", &[])];
    let long = trees.iter().flat_map(|tree| tree.files.values()).filter_map(|file| {
        let lines = file.code.lines().count();
        let path = file.path.display().to_string();
        (lines > MAX_LINES && LONG_FILES.iter().all(|(known, _)| *known != path)).then(|| format!("{path}: {lines}"))
    });
    let long: Vec<String> = long.collect();
    assert!(long.is_empty(), "longer than {MAX_LINES} lines, tests apart:\n{}", long.join("\n"));
}
