//! What the command tells of classes, of what it left out, and of data that is not what it was.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::data::{self, Array};
use crate::support::run;

fn labels(saved: &Path) -> Vec<i64> {
    Array::read(&saved.join("batch-000000.labels.npy")).i64s()
}

#[test]
fn classes_are_told_with_their_counts_and_stray_folders_are_none() {
    let data = data::folder_of("png");
    fs::create_dir(data.path.join("annotations")).expect("created");
    fs::write(data.path.join("annotations").join("a.bmp"), "BM").expect("written");
    let saved = data.folder.path().join(".saved");
    let args = ["run", data.arg(), "--device", "host", "--size", "9x13", "--save", saved.to_str().expect("ASCII")];
    let ran = run(&args).ended_with(0);
    assert!(ran.stdout.contains("2: cat (0): 4, dog (1): 3"), "{}", ran.stdout);
    assert!(ran.stderr.contains("left out: `annotations` holds no images and is no class"), "{}", ran.stderr);
    assert!(ran.stderr.contains("left out: 1 .bmp file: annotations/a.bmp"), "{}", ran.stderr);
    assert_eq!(labels(&saved), [0, 0, 0, 0, 1, 1, 1]);
    let classes = json!([{"name": "cat", "samples": 4}, {"name": "dog", "samples": 3}]);
    let beside: Value =
        serde_json::from_slice(&fs::read(saved.join("labels.classes.json")).expect("there")).expect("JSON");
    assert_eq!(beside, classes);
    let files = fs::read_to_string(saved.join("indices.files.txt")).expect("there");
    let files: Vec<&str> = files.lines().collect();
    // As paths: on Windows either separator may stand there.
    assert_eq!((files.len(), Path::new(files[5])), (7, &*data.path.join("dog").join("5.png")));
    let report: Value = serde_json::from_str(
        &run(&["run", data.arg(), "--device", "host", "--size", "9x13", "--json"]).ended_with(0).stdout,
    )
    .expect("JSON");
    assert_eq!(report["classes"], classes);
    assert_eq!(
        (&report["left_out"][0]["reason"], &report["left_out"][0]["kind"]),
        (&json!("no-images"), &json!("annotations"))
    );
}

#[test]
fn a_list_of_classes_fixes_labels_and_can_be_one_that_was_saved() {
    let data = data::folder_of("png");
    let at = |name: &str| data.folder.path().join(name).to_str().expect("ASCII").to_owned();
    let args = ["run", data.arg(), "--device", "host", "--size", "9x13"];
    fs::write(at(".list"), "dog\nbird\ncat\n").expect("written");
    let saved = at(".saved");
    run(&[&args[..], &["--classes", &at(".list"), "--save", &saved]].concat()).ended_with(0);
    assert_eq!(labels(saved.as_ref()), [2, 2, 2, 2, 0, 0, 0]);
    let again = at(".again");
    run(&[&args[..], &["--classes", &format!("{saved}/labels.classes.json"), "--save", &again]].concat()).ended_with(0);
    assert_eq!(labels(again.as_ref()), [2, 2, 2, 2, 0, 0, 0]);
    fs::write(at(".list"), "dog\ndog\n").expect("written");
    let ran = run(&[&args[..], &["--classes", &at(".list")]].concat()).ended_with(1);
    assert!(ran.stderr.contains("the list of classes has `dog` twice"), "{}", ran.stderr);
    let array = data::array();
    let ran = run(&["run", array.arg(), "--device", "host", "--classes", &at(".list")]).ended_with(1);
    assert!(ran.stderr.contains("--classes is only for folders of images"), "{}", ran.stderr);
}

#[test]
fn all_samples_bad_is_a_failure_however_they_are_treated() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["1.png", "2.png", "3.png"] {
        fs::write(folder.path().join(name), "junk").expect("written");
    }
    let data = folder.path().to_str().expect("ASCII");
    for treatment in ["fail", "skip", "substitute"] {
        let ran = run(&["run", data, "--device", "host", "--bad-samples", treatment]).ended_with(1);
        assert!(ran.stderr.contains(".png: neither JPEG, PNG nor WebP"), "{treatment}: {}", ran.stderr);
        let told = ran.stderr.lines().filter(|line| line.starts_with("error: ")).collect::<Vec<_>>();
        assert_eq!(told.len(), 1, "{}", ran.stderr);
        assert_eq!(told[0].matches("neither JPEG").count(), 1, "a cause is told once: {}", told[0]);
        assert!(treatment != "substitute" || told[0].contains("tried in its place"), "{}", told[0]);
    }
    image::RgbImage::new(8, 8).save(folder.path().join("4.png")).expect("saved");
    run(&["run", data, "--device", "host", "--bad-samples", "skip"]).ended_with(0);
}

#[test]
fn resuming_refuses_other_data_and_takes_a_copy() {
    let data = data::array();
    let at = |name: &str| data.folder.path().join(name).to_str().expect("ASCII").to_owned();
    let (state, copy) = (at("state.json"), at("copy.npy"));
    let args = ["--device", "host", "--batch-size", "2"];
    run(&[&["run", data.arg(), "--save-state", &state], &args[..]].concat()).ended_with(0);
    let whole = fs::read(&data.path).expect("read");
    fs::write(&copy, &whole).expect("written");
    fs::copy(data.path.with_extension("labels.npy"), at("copy.labels.npy")).expect("copied");
    let resume = || run(&[&["run", &copy, "--resume", &state, "--epochs", "2"], &args[..]].concat());
    resume().ended_with(0);
    let mut other = whole;
    *other.last_mut().expect("bytes") ^= 1;
    fs::write(&copy, &other).expect("written");
    let ran = resume().ended_with(1);
    assert!(ran.stderr.contains("cannot resume: the data was"), "{}", ran.stderr);
}
