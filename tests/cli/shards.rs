//! Tar shards through the command.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::data::{self, Array, Data};
use crate::support::run;

/// The files of a folder of classes as two shards, each image with its label in `.cls`.
pub fn shards_of(images: &Data, suffix: &str) -> Data {
    let mut files: Vec<(i64, PathBuf)> = Vec::new();
    for (label, class) in ["cat", "dog"].into_iter().enumerate() {
        let entries = fs::read_dir(images.path.join(class)).expect("listed");
        files.extend(entries.map(|entry| (label as i64, entry.expect("an entry").path())));
    }
    files.sort_unstable();
    let folder = tempfile::tempdir().expect("a folder");
    for (shard, files) in files.chunks(4).enumerate() {
        let members = files.iter().flat_map(|(label, path)| {
            let key = path.file_stem().expect("a name").to_str().expect("ASCII").to_owned();
            let image = (format!("{key}.{suffix}"), fs::read(path).expect("read"));
            [image, (format!("{key}.cls"), label.to_string().into_bytes())]
        });
        write(&folder.path().join(format!("{shard:03}.tar")), members);
    }
    let path = folder.path().join("{000..001}.tar");
    Data { folder, path }
}

pub fn write(path: &Path, members: impl IntoIterator<Item = (String, Vec<u8>)>) {
    let mut builder = tar::Builder::new(fs::File::create(path).expect("created"));
    for (name, content) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        builder.append_data(&mut header, name, &content[..]).expect("added");
    }
    builder.into_inner().expect("ended");
}

/// All files of a folder but those that name files, by name.
fn saved(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("listed").map(|entry| entry.expect("an entry").path());
    let named = |path: PathBuf| (path.file_name().expect("a name").to_string_lossy().into_owned(), path);
    let batches = entries.map(named).filter(|(name, _)| name.starts_with("batch-"));
    let mut files: Vec<_> = batches.map(|(name, path)| (name, fs::read(path).expect("read"))).collect();
    files.sort_unstable();
    files
}

#[test]
fn shuffled_epochs_of_shards_and_of_their_files_are_the_same_bytes() {
    for format in ["png", "jpg", "webp"] {
        let images = data::folder_of(format);
        let shards = shards_of(&images, format);
        let out = tempfile::tempdir().expect("a folder");
        for rank in ["0", "1"] {
            let save = |data: &Data, name: &str| {
                let folder = out.path().join(format!("{name}{rank}"));
                let arg = folder.to_str().expect("ASCII");
                let args = ["--device", "host", "--size", "9x13", "--seed", "3", "--epochs", "2", "--batch-size", "2"];
                let share = ["--rank", rank, "--world", "2", "--workers", "3", "--save", arg];
                run(&[&["run", data.arg()], &args[..], &share].concat()).ended_with(0);
                saved(&folder)
            };
            let files = save(&images, "files");
            assert!(files.len() >= 12, "{}", files.len());
            assert!(files == save(&shards, "shards"), "{format}, rank {rank}");
            let names = fs::read_to_string(out.path().join(format!("shards{rank}/indices.files.txt"))).expect("there");
            let fifth = format!("001.tar: 5.{format}");
            assert!(names.lines().nth(5).is_some_and(|line| line.ends_with(&fifth)), "{names}");
        }
    }
}

#[test]
fn the_report_tells_labels_and_what_was_left_out() {
    let shards = shards_of(&data::folder_of("png"), "png");
    let more = [
        ("notes.txt".to_owned(), b"x".to_vec()),
        ("8.png".to_owned(), b"junk".to_vec()),
        ("8.cls".to_owned(), b"1".to_vec()),
    ];
    write(&shards.folder.path().join("002.tar"), more);
    let pattern = shards.folder.path().join("{000..002}.tar");
    let pattern = pattern.to_str().expect("ASCII");
    let args = ["run", pattern, "--device", "host", "--size", "9x13", "--bad-samples", "skip"];
    let ran = run(&args).ended_with(0);
    assert!(ran.stdout.contains("2: 0 (0): 4, 1 (1): 4"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("left out: 1 .txt file: ") && ran.stderr.contains("002.tar: notes.txt"),
        "{}",
        ran.stderr
    );
    let report: Value =
        serde_json::from_str(&run(&[&args[..], &["--json"]].concat()).ended_with(0).stdout).expect("JSON");
    assert_eq!(report["classes"], json!([{"name": "0", "samples": 4}, {"name": "1", "samples": 4}]));
    assert_eq!(report["bad_samples"]["skipped"], 1);
    let cause = report["bad_samples"]["listed"][0]["cause"].as_str().expect("a text").to_owned();
    assert!(cause.contains("002.tar: 8.png: neither JPEG, PNG nor WebP"), "{cause}");
    let ran = run(&args[..6]).ended_with(1);
    assert!(ran.stderr.contains("002.tar: 8.png: neither JPEG, PNG nor WebP"), "{}", ran.stderr);
}

#[test]
fn options_of_shards_choose_the_image_and_the_label() {
    let folder = tempfile::tempdir().expect("a folder");
    let png = |grey: u8| {
        let mut file = std::io::Cursor::new(Vec::new());
        let image = image::GrayImage::from_pixel(2, 2, image::Luma([grey]));
        image.write_to(&mut file, image::ImageFormat::Png).expect("encoded");
        file.into_inner()
    };
    let path = folder.path().join("a.tar");
    let members = [("1.left.png", png(1)), ("1.right.png", png(2)), ("1.json", br#"{"id": 7}"#.to_vec())];
    write(&path, members.map(|(name, content)| (name.to_owned(), content)));
    let path = path.to_str().expect("ASCII");
    let out = folder.path().join("out");
    let args = ["run", path, "--device", "host", "--size", "2x2", "--channels", "1", "--dtype", "u8"];
    let ran = run(&args).ended_with(1);
    assert!(ran.stderr.contains("there is 1 .json file") && ran.stderr.contains("1 .left.png file"), "{}", ran.stderr);
    let chosen = ["--image", "right.png", "--labels", "json:id", "--save", out.to_str().expect("ASCII")];
    run(&[&args[..], &chosen].concat()).ended_with(0);
    let read = |suffix: &str| Array::read(&out.join(format!("batch-000000{suffix}.npy")));
    assert_eq!((read("").bytes, read(".labels").i64s()), (vec![2; 4], vec![7]));
    let images = data::folder_of("png");
    let ran = run(&["run", images.arg(), "--device", "host", "--labels", "cls"]).ended_with(1);
    assert!(ran.stderr.contains("--labels is only for tar shards"), "{}", ran.stderr);
}

#[test]
fn shards_that_are_missing_damaged_or_compressed_are_named() {
    let shards = shards_of(&data::folder_of("png"), "png");
    let at = |name: &str| shards.folder.path().join(name);
    let fails = |name: &str, text: &str| {
        let ran = run(&["run", at(name).to_str().expect("ASCII"), "--device", "host"]).ended_with(1);
        assert!(ran.stderr.contains(text), "{name}: {}", ran.stderr);
        assert_eq!(ran.stderr.matches("error: ").count(), 1, "{}", ran.stderr);
    };
    fails("{000..002}.tar", "002.tar: cannot be opened: ");
    fails("{000..001.tar", "a brace is not closed");
    let whole = fs::read(at("000.tar")).expect("read");
    fs::write(at("cut.tar"), &whole[..700]).expect("written");
    fails("cut.tar", "cut.tar: damaged at byte 0: the archive ends within this member");
    fs::write(at("a.tar.gz"), b"\x1f\x8b\x08\0\0\0").expect("written");
    fails("a.tar.gz", "a.tar.gz: not a tar archive but compressed by gzip");
    write(&at("odd.tar"), [("a\n\x1b[31m.png".to_owned(), b"junk".to_vec())]);
    fails("odd.tar", "odd.tar: a\\n\\u{1b}[31m.png: neither JPEG");
}

#[test]
fn what_is_left_of_an_epoch_is_resumed_and_other_shards_are_refused() {
    let shards = shards_of(&data::folder_of("png"), "png");
    let at = |name: &str| shards.folder.path().join(name).to_str().expect("ASCII").to_owned();
    let state = at("state.json");
    let args = ["--device", "host", "--size", "9x13", "--seed", "1"];
    run(&[&["run", shards.arg(), "--save-state", &state], &args[..]].concat()).ended_with(0);
    let resume = |pattern: &str| run(&[&["run", pattern, "--resume", &state, "--epochs", "2"], &args[..]].concat());
    fs::create_dir(at("copy")).expect("created");
    for name in ["000.tar", "001.tar"] {
        fs::copy(at(name), at("copy") + "/" + name).expect("copied");
    }
    resume(&at("copy/{000..001}.tar")).ended_with(0);
    let ran = resume(&at("{001,000}.tar")).ended_with(1);
    assert!(ran.stderr.contains("cannot resume: the data was"), "{}", ran.stderr);
    // Other pixels of the same files: another fit, mended images that were refused or the other way round, another decoder.
    for option in [&["--fit", "stretch"][..], &["--refuse-damaged"], &["--full-decode"]] {
        let line = [&["run", shards.arg(), "--resume", &state, "--epochs", "2"], &args[..], option].concat();
        let ran = run(&line).ended_with(1);
        assert!(ran.stderr.contains("cannot resume: the decoder was"), "{option:?}: {}", ran.stderr);
    }
}

#[test]
#[cfg(unix)]
fn no_output_names_a_shard() {
    let shards = shards_of(&data::folder_of("png"), "png");
    let at = |name: &str| shards.folder.path().join(name);
    fs::hard_link(at("001.tar"), at("hard")).expect("linked");
    std::os::unix::fs::symlink("hard", at("soft")).expect("linked");
    let before = ["000.tar", "001.tar"].map(|name| fs::read(at(name)).expect("read"));
    for name in ["000.tar", "001.tar", "hard", "soft"] {
        let name = at(name);
        for option in ["--trace", "--save-state"] {
            let args = ["run", shards.arg(), "--device", "host", option, name.to_str().expect("ASCII")];
            let ran = run(&args).ended_with(1);
            assert!(ran.stderr.contains("which is read: choose another file"), "{}", ran.stderr);
        }
    }
    assert_eq!(["000.tar", "001.tar"].map(|name| fs::read(at(name)).expect("read")), before);
}

#[test]
fn shards_are_compared() {
    let shards = shards_of(&data::folder_of("png"), "png");
    let args = ["compare", shards.arg(), "--device", "host", "--size", "9x13", "--batch-size", "2", "--time", "1"];
    let ran = run(&args).ended_with(0);
    assert!(ran.stdout.contains("memcpy"), "{}", ran.stdout);
}
