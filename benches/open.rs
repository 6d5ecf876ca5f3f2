//! What opening a source of very many files takes: time, and memory for each file.
//!
//! `cargo bench --bench open` makes a folder of a thousand classes with a thousand images each, as links to one file, and the same
//! as a hundred tar shards (4 GB). `GPUFEED_FILES=n` makes another number of each; `GPUFEED_FOLDER=folder` and
//! `GPUFEED_SHARDS='train-{000..099}.tar'` take what is there instead. Everything is in the page cache by the second round.

#![allow(clippy::print_stdout)]

#[path = "../tests/support/counting.rs"]
mod counting;

use std::env;
use std::fs;
use std::io::{BufWriter, Cursor, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use gpufeed::source::{FolderOptions, TarOptions};
use gpufeed::{FolderSource, Source, TarSource};

const ROUNDS: usize = 3;
const IN_A_CLASS: usize = 1000;
const IN_A_SHARD: usize = 10_000;

fn main() {
    let files = env::var("GPUFEED_FILES").map_or(1_000_000, |files| files.parse().expect("a number"));
    let made = tempfile::tempdir().expect("a folder");
    let folder =
        env::var_os("GPUFEED_FOLDER").map_or_else(|| make_folder(&made.path().join("folder"), files), PathBuf::from);
    let shards =
        env::var_os("GPUFEED_SHARDS").map_or_else(|| make_shards(&made.path().join("shards"), files), PathBuf::from);
    println!(
        "{:8} {:>9} {:>8} {:>8} {:>12} {:>12}",
        "source", "files", "open s", "digest s", "bytes a file", "peak a file"
    );
    for _ in 0..ROUNDS {
        bench("folder", || FolderSource::open(&folder, FolderOptions::default()).expect("a folder of images"));
        bench("tar", || TarSource::open(&shards, TarOptions::default()).expect("shards"));
    }
}

fn bench<S: Source>(name: &str, open: impl FnOnce() -> S) {
    let before = counting::live();
    let start = Instant::now();
    let (source, peak, _) = counting::peak(open);
    let opened = start.elapsed().as_secs_f64();
    let a_file = |bytes: i64| bytes as f64 / source.len() as f64;
    let (kept, peak) = (a_file(counting::live() - before), a_file(peak));
    let start = Instant::now();
    source.digest();
    let digest = start.elapsed().as_secs_f64();
    println!("{name:8} {:9} {opened:8.2} {digest:8.2} {kept:12.1} {peak:12.1}", source.len());
}

fn image() -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    image::GrayImage::new(1, 1).write_to(&mut file, image::ImageFormat::Png).expect("encoded");
    file.into_inner()
}

/// The name of a file as ImageNet has it, without its extension.
fn name(file: usize) -> String {
    let class = file / IN_A_CLASS;
    format!("n{class:08}/n{class:08}_{file:08}")
}

fn make_folder(folder: &Path, files: usize) -> PathBuf {
    let mut first = PathBuf::new();
    for file in 0..files {
        let path = folder.join(name(file) + ".JPEG");
        if file % IN_A_CLASS == 0 {
            fs::create_dir_all(path.parent().expect("a folder")).expect("created");
            fs::write(&path, image()).expect("written");
            first = path;
        } else {
            fs::hard_link(&first, path).expect("linked");
        }
    }
    folder.to_owned()
}

/// Images of 2 kB, each after its label.
fn make_shards(folder: &Path, files: usize) -> PathBuf {
    fs::create_dir_all(folder).expect("created");
    let mut image = image();
    image.resize(2000, 0);
    let count = files.div_ceil(IN_A_SHARD);
    for shard in 0..count {
        let path = folder.join(format!("{shard:04}.tar"));
        let mut builder = tar::Builder::new(BufWriter::new(fs::File::create(path).expect("created")));
        for file in shard * IN_A_SHARD..files.min((shard + 1) * IN_A_SHARD) {
            let label = (file / IN_A_CLASS).to_string();
            for (suffix, content) in [(".cls", label.as_bytes()), (".jpg", &image)] {
                let mut header = tar::Header::new_ustar();
                header.set_size(content.len() as u64);
                builder.append_data(&mut header, name(file) + suffix, content).expect("added");
            }
        }
        builder.into_inner().expect("ended").flush().expect("written");
    }
    folder.join(format!("{{0000..{:04}}}.tar", count - 1))
}
