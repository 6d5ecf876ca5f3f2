//! `gpufeed run --save-state` and `--resume`, and samples that cannot be read.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::data::{self, Data};
use crate::support::{devices, run};

const SHUFFLED: [&str; 6] = ["--size", "9x13", "--batch-size", "2", "--seed", "8"];

/// What is in a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries
        .map(|path| {
            (path.file_name().expect("a name").to_string_lossy().into_owned(), fs::read(&path).expect("a file"))
        })
        .collect()
}

fn text(path: &Path) -> String {
    path.to_str().expect("a path in ASCII").to_owned()
}

/// The images as PNG files, one of which cannot be read. It keeps its size: with another it would be other data.
fn damaged(name: &str) -> (Data, impl FnOnce()) {
    let data = data::folder_of("png");
    let path = data.path.join(name);
    let whole = fs::read(&path).expect("an image");
    let half = whole.len() / 2;
    fs::write(&path, [&whole[..half], &vec![0; whole.len() - half]].concat()).expect("half of it is lost");
    (data, move || fs::write(path, whole).expect("mended"))
}

#[test]
fn a_run_that_failed_goes_on_elsewhere_with_the_batch_that_failed() {
    let there = devices("a_run_that_failed_goes_on_elsewhere_with_the_batch_that_failed");
    let out = tempfile::tempdir().expect("a folder");
    let [whole, parts, state] = ["whole", "parts", "state.json"].map(|name| text(&out.path().join(name)));
    let (data, mend) = damaged("dog/5.png");
    let args = [&["run", data.arg(), "--epochs", "2"][..], &SHUFFLED].concat();
    let failing = [&args[..], &["--device", "host", "--save", &parts, "--save-state", &state]].concat();
    let ran = run(&failing).ended_with(1);
    assert!(ran.stderr.contains("sample 5 could not be read"), "{}", ran.stderr);
    mend();
    let before = files(Path::new(&parts)).len();
    let last = there.last().expect("host at least");
    let rest = ["--device", last, "--workers", "1", "--save", &parts, "--resume", &state, "--save-state", &state];
    let ran = run(&[&args[..], &rest].concat()).ended_with(0);
    run(&[&args[..], &["--device", "host", "--save", &whole]].concat()).ended_with(0);
    let (whole, parts) = (files(Path::new(&whole)), files(Path::new(&parts)));
    assert!(before > 0 && before < whole.len(), "{before} of {}", whole.len());
    assert!(whole.keys().eq(parts.keys()), "{}", ran.stdout);
    let indices = |files: &BTreeMap<String, Vec<u8>>| {
        files
            .iter()
            .filter(|(name, _)| name.ends_with(".indices.npy"))
            .map(|(_, bytes)| bytes.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(indices(&parts), indices(&whole));
    // All is delivered, and saying so is better than doing nothing.
    let again = run(&[&args[..], &["--device", "host", "--resume", &state]].concat()).ended_with(1);
    assert!(again.stderr.contains("nothing is left: 2 epochs were delivered"), "{}", again.stderr);
    let more =
        [&["run", data.arg(), "--epochs", "3"][..], &SHUFFLED, &["--device", "host", "--resume", &state]].concat();
    assert!(run(&more).ended_with(0).stdout.starts_with("7 images in 4 batches"));
}

#[test]
fn a_state_that_does_not_fit_is_refused_with_what_differs() {
    let out = tempfile::tempdir().expect("a folder");
    let state = text(&out.path().join("state.json"));
    let data = data::array();
    let saved = ["--seed", "1", "--batch-size", "3", "--save-state", &state];
    run(&[&["run", data.arg(), "--device", "host", "--epochs", "9"][..], &saved].concat()).ended_with(0);
    for (more, what) in [
        (&["--seed", "2", "--batch-size", "3"][..], "seed was 1 and is 2"),
        (&["--seed", "1", "--batch-size", "4"], "batch_size was 3 and is 4"),
        (&["--seed", "1", "--batch-size", "3", "--samples", "0..6"], "subset was the whole source and is 6 samples"),
    ] {
        let line = [&["run", data.arg(), "--device", "host", "--epochs", "10", "--resume", &state][..], more].concat();
        let ran = run(&line).ended_with(1);
        assert!(ran.stderr.contains("cannot resume: ") && ran.stderr.contains(what), "{}", ran.stderr);
    }
    fs::write(&state, "{\"devices\": 7}").expect("written");
    let line = ["run", data.arg(), "--device", "host", "--resume", &state];
    assert!(run(&line).ended_with(1).stderr.contains("no saved state"));
}

#[test]
fn bad_images_are_left_out_or_replaced_within_a_limit() {
    let (data, _) = damaged("cat/2.png");
    let args = [&["run", data.arg(), "--device", "host", "--json"][..], &SHUFFLED].concat();
    let with = |more: &[&str]| run(&[&args[..], more].concat());
    let report = |more: &[&str]| -> serde_json::Value {
        serde_json::from_str(&with(more).ended_with(0).stdout).expect("a report")
    };
    let skipped = report(&["--bad-samples", "skip"]);
    assert_eq!((&skipped["stats"]["samples"], &skipped["bad_samples"]["skipped"]), (&6.into(), &1.into()));
    assert_eq!(skipped["bad_samples"]["listed"][0]["index"], 2);
    let replaced = report(&["--bad-samples", "substitute", "--max-bad", "20%"]);
    assert_eq!((&replaced["stats"]["samples"], &replaced["bad_samples"]["substituted"]), (&7.into(), &1.into()));
    let stopped = with(&["--bad-samples", "skip", "--max-bad", "0"]).ended_with(1);
    assert!(stopped.stderr.contains("and 0 is the limit"), "{}", stopped.stderr);
}
