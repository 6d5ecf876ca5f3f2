//! `cargo xtask ocr`: the weights of `examples/ocr`, and its checks. It builds burn, which takes minutes, so nothing else runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::platforms::packages::run;
use crate::{drivers, root};

/// The Python package that has the network's weights, and where they are in it. `model.sha256` names the file too.
const PACKAGE: &str = "rapidocr_onnxruntime==1.4.4";
const MODEL: &str = "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx";

/// Gets the weights where they are missing, and runs the example with the device opened by either side, its tests and its lints.
pub fn ocr(install: bool) -> bool {
    drivers::ensure(install);
    let checked = weights(install).and_then(|()| check());
    if let Err(problem) = &checked {
        eprintln!("ocr: {problem}");
    }
    checked.is_ok()
}

fn folder() -> PathBuf {
    root().join("examples/ocr")
}

/// Makes sure of the weights, and of each of their bits.
fn weights(install: bool) -> Result<(), String> {
    let into = folder().join("model");
    let file = into.join(MODEL.rsplit('/').next().unwrap_or(MODEL));
    if !file.exists() {
        if !install {
            return Err(format!("{} is missing, and --no-install forbids to fetch it", file.display()));
        }
        fetch(&into, &file)?;
    }
    run(Command::new("sha256sum").args(["--check", "model.sha256"]).current_dir(folder()))
}

/// Downloads the package and takes the file out of it.
fn fetch(into: &Path, file: &Path) -> Result<(), String> {
    let told = |error: std::io::Error| format!("{}: {error}", into.display());
    fs::create_dir_all(into).map_err(told)?;
    let python = |args: &[&str]| {
        let mut command = Command::new("python3");
        command.args(args).current_dir(into);
        command
    };
    let download = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", ".", PACKAGE];
    run(&mut python(&download))?;
    let wheel = format!("{}-py3-none-any.whl", PACKAGE.replace("==", "-"));
    run(&mut python(&["-m", "zipfile", "--extract", &wheel, "unpacked"]))?;
    fs::rename(into.join("unpacked").join(MODEL), file).map_err(told)?;
    fs::remove_dir_all(into.join("unpacked")).map_err(told)?;
    fs::remove_file(into.join(wheel)).map_err(told)
}

fn check() -> Result<(), String> {
    let run = |args: &[&str]| run(crate::cargo(args).current_dir(folder()));
    run(&["fmt", "--check"])?;
    run(&["clippy", "--all-targets", "--", "-D", "warnings"])?;
    run(&["test"])?;
    // `direct-map` runs on every device with one memory, software ones among them, if it was opened with its feature.
    run(&["run", "--", "--strategy", "direct-map"])?;
    run(&["run", "--", "--open", "burn"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_of_the_file_that_is_taken_out_of_the_package() {
        let line = fs::read_to_string(folder().join("model.sha256")).expect("it is there");
        let (sum, file) = line.trim_end().split_once("  ").expect("a sum and a file");
        assert!(sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit()), "{sum}");
        assert_eq!(file.strip_prefix("model/"), MODEL.rsplit('/').next());
        let readme = fs::read_to_string(folder().join("README.md")).expect("it is there");
        assert!(readme.contains(PACKAGE) && readme.contains(MODEL));
    }
}
