//! Files that the command writes: never one that it reads, and never half of one.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::data::{self, Data};
use crate::shards;
use crate::support::run;

/// Every option that names a file to be written, with what else it needs.
const RUN: [(&str, &[&str]); 4] =
    [("--trace", &[]), ("--metrics", &[]), ("--save-state", &[]), ("--auto-cache", &["--strategy", "auto"])];
const COMPARE: [&str; 4] = ["--json", "--markdown", "--csv", "--html"];
/// What `--save` writes beside batches.
const SAVED: [&str; 2] = ["indices.files.txt", "labels.classes.json"];

/// All bytes of all files below a folder, but of none that was made for the test.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("listed") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(&path).expect("read");
                all.push((path, bytes));
            }
        }
    }
    all.sort_unstable();
    all
}

/// Names of one file: its own, a symbolic link, a hard link, a link to a link, a path through a linked folder.
fn names(file: &Path, elsewhere: &Path) -> [PathBuf; 5] {
    let at = |name: &str| elsewhere.join(name);
    let _ = fs::remove_dir_all(elsewhere);
    fs::create_dir(elsewhere).expect("created");
    symlink(file, at("soft")).expect("linked");
    fs::hard_link(file, at("hard")).expect("linked");
    symlink("soft", at("soft-soft")).expect("linked");
    symlink(file.parent().expect("a folder"), at("folder")).expect("linked");
    let through = at("folder").join(file.file_name().expect("a name"));
    [file.to_owned(), at("soft"), at("hard"), at("soft-soft"), through]
}

/// Data, the files of it that are read, and what else names one of them.
struct Input {
    data: Data,
    files: Vec<PathBuf>,
    more: Vec<String>,
}

fn inputs() -> [Input; 4] {
    let (array, images) = (data::array(), data::folder_of("png"));
    let mut shards = shards::shards_of(&images, "png");
    // A shard without samples is read too.
    shards::write(&shards.folder.path().join("002.tar"), []);
    shards.path = shards.folder.path().join("{000..002}.tar");
    let listed = data::folder_of("png");
    let classes = listed.folder.path().join(".classes");
    fs::write(&classes, "cat\ndog\n").expect("written");
    let option = ["--classes".to_owned(), classes.to_str().expect("ASCII").to_owned()];
    [
        Input { files: vec![array.path.clone(), array.path.with_extension("labels.npy")], data: array, more: vec![] },
        Input { files: vec![images.path.join("dog").join("5.png")], data: images, more: vec![] },
        Input {
            files: ["001.tar", "002.tar"].map(|name| shards.folder.path().join(name)).into(),
            data: shards,
            more: vec![],
        },
        Input { files: vec![classes], data: listed, more: option.into() },
    ]
}

impl Input {
    /// Tries every option with this name of one of the files, and tells how often.
    fn try_name(&self, name: &Path, linked: &Path) -> usize {
        let mut runs = 0;
        let mut refused = |command: &str, option: &str, path: &Path, more: &[&str]| {
            let args = [command, self.data.arg(), "--device", "host", option, path.to_str().expect("ASCII")];
            let own: Vec<&str> = self.more.iter().map(String::as_str).collect();
            let ran = run(&[&args, more, &own].concat()).ended_with(1);
            assert!(ran.stdout.is_empty(), "{args:?}: {}", ran.stdout);
            assert!(ran.stderr.contains("which is read: choose another file"), "{args:?}: {}", ran.stderr);
            runs += 1;
        };
        // The files of a saved run have names of their own, which lead to the input here; one file of samples has none.
        let one_file = self.data.path.extension().is_some_and(|extension| extension == "npy");
        for file in SAVED.iter().filter(|_| !one_file) {
            let saved = linked.join("saved");
            let _ = fs::remove_dir_all(&saved);
            fs::create_dir(&saved).expect("created");
            let to = saved.join(file);
            if name.ends_with("hard") { fs::hard_link(name, to) } else { symlink(name, to) }.expect("linked");
            refused("run", "--save", &saved, &[]);
        }
        RUN.iter().for_each(|(option, more)| refused("run", option, name, more));
        COMPARE.iter().for_each(|option| refused("compare", option, name, &[]));
        runs
    }
}

#[test]
fn a_hundred_runs_whose_output_names_an_input_change_no_byte_of_it() {
    let inputs = inputs();
    let elsewhere = tempfile::tempdir().expect("a folder");
    let linked = elsewhere.path().join("names");
    let now = || inputs.iter().map(|input| contents(input.data.folder.path())).collect::<Vec<_>>();
    let before = now();
    let mut runs = 0;
    for input in &inputs {
        for file in &input.files {
            // The links are made anew for each file.
            let names = names(file, &linked);
            runs += names.iter().map(|name| input.try_name(name, &linked)).sum::<usize>();
        }
    }
    assert!(runs >= 200, "{runs} runs");
    assert!(now() == before, "an input has changed");
}

#[test]
fn a_saved_batch_that_is_loaded_again_is_not_overwritten_by_its_successor() {
    let data = data::array();
    let at = |name: &str| data.folder.path().join(name).to_str().expect("ASCII").to_owned();
    let (saved, state) = (at("saved"), at("state.json"));
    let args = ["--device", "host", "--batch-size", "4", "--dtype", "u8"];
    run(&[&["run", data.arg(), "--save", &saved], &args[..]].concat()).ended_with(0);
    // The first batch of the second epoch, when it is loaded a sample at a time, would have this name.
    let input = format!("{saved}/batch-000004.npy");
    fs::rename(format!("{saved}/batch-000000.npy"), &input).expect("renamed");
    let before = fs::read(&input).expect("saved");
    let args = ["--device", "host", "--batch-size", "1", "--dtype", "u8"];
    run(&[&["run", &input, "--save-state", &state], &args[..]].concat()).ended_with(0);
    let ran = run(&[&["run", &input, "--resume", &state, "--epochs", "2", "--save", &saved], &args[..]].concat());
    let ran = ran.ended_with(1);
    assert!(ran.stderr.contains("batch-000004.npy, which is read"), "{}", ran.stderr);
    assert_eq!(fs::read(&input).expect("there"), before);
}

#[test]
fn a_file_that_is_there_survives_a_run_that_fails() {
    let data = data::array();
    let damaged = data::folder_of("png");
    fs::write(damaged.path.join("cat").join("0.png"), "junk").expect("written");
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let name = out.to_str().expect("ASCII");
    fs::write(&out, "of value").expect("written");
    for option in ["--trace", "--metrics"] {
        for (data, more) in [
            (data.arg(), &["--device", "vulkan:99"][..]),
            (data.arg(), &["--device", "host", "--budget", "1KiB"]),
            ("/no/such/data.npy", &["--device", "host"]),
            (damaged.arg(), &["--device", "host", "--size", "9x13"]),
        ] {
            let ran = run(&[&["run", data, option, name], more].concat());
            assert!(ran.code == Some(1) || ran.code == Some(3), "{}", ran.stderr);
            assert_eq!(fs::read_to_string(&out).expect("there"), "of value", "{option} {more:?}");
        }
    }
    for option in COMPARE {
        run(&["compare", data.arg(), "--device", "vulkan:99", option, name]).ended_with(3);
        assert_eq!(fs::read_to_string(&out).expect("there"), "of value", "{option}");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 1, "nothing is left beside it");
    run(&["run", data.arg(), "--device", "host", "--trace", name]).ended_with(0);
    assert!(fs::read_to_string(&out).expect("there").starts_with('{'), "a run that succeeds replaces it");
}

#[test]
fn a_full_disk_leaves_no_half_batch() {
    let data = data::array();
    // The limit of a file's size stands in for the disk's: 512 bytes a block.
    let folder = tempfile::tempdir().expect("a folder");
    let saved = folder.path().join("saved");
    let command = format!(
        "trap '' XFSZ; ulimit -f 4; exec {} run {} --device host --batch-size 4 --save {}",
        env!("CARGO_BIN_EXE_gpufeed"),
        data.arg(),
        saved.display()
    );
    let output = std::process::Command::new("sh").args(["-c", &command]).output().expect("sh runs");
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let names: Vec<_> =
        fs::read_dir(&saved).expect("listed").map(|entry| entry.expect("an entry").file_name()).collect();
    assert!(names.is_empty(), "{names:?}");
}
