//! Packages of the system and of Python that platforms need. Each command is printed before it runs.

use std::path::Path;
use std::process::{Command, Stdio};

use super::folder;
use crate::{drivers, shown};

/// Makes sure of packages of a Debian system, or says which are missing.
pub fn ensure(packages: &[&'static str], install: bool) -> Result<(), String> {
    let missing = missing(packages);
    if missing.is_empty() {
        return Ok(());
    }
    if install && drivers::is_debian() {
        drivers::install_on_debian(&missing);
    }
    match self::missing(packages).as_slice() {
        [] => Ok(()),
        left => Err(format!("needs the Debian packages {}", left.join(" "))),
    }
}

fn missing(packages: &[&'static str]) -> Vec<&'static str> {
    let installed = |package: &str| {
        let status = Command::new("dpkg-query").args(["--show", "--showformat=${db:Status-Status}", package]).output();
        status.is_ok_and(|output| output.stdout == b"installed")
    };
    packages.iter().copied().filter(|package| !installed(package)).collect()
}

/// The content of a Debian package, unpacked into the folder and not installed.
pub fn unpacked(package: &str, install: bool) -> Result<std::path::PathBuf, String> {
    folder::once(package, |into| {
        may(install, &format!("the content of the Debian package {package}"))?;
        run(Command::new("apt-get").args(["download", package]).current_dir(into))?;
        let archive = entry(into, ".deb").ok_or_else(|| format!("apt-get brought no {package}"))?;
        run(Command::new("dpkg-deb").arg("--extract").arg(&archive).arg(into))?;
        std::fs::remove_file(archive).map_err(|error| error.to_string())
    })
}

/// The content of a Python package, unpacked into the folder and not installed.
pub fn wheel(package: &str, platform: &str, install: bool) -> Result<std::path::PathBuf, String> {
    folder::once(package, |into| {
        may(install, &format!("the content of the Python package {package}"))?;
        let python = |args: &[&str]| {
            let mut command = Command::new("python3");
            command.args(args).current_dir(into);
            command
        };
        let download = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", "."];
        let what = ["--platform", platform, "--python-version", "3.11", "--implementation", "cp", package];
        run(&mut python(&[&download[..], &what].concat()))?;
        let archive = entry(into, ".whl").ok_or_else(|| format!("pip brought no {package}"))?;
        run(python(&["-m", "zipfile", "--extract"]).arg(&archive).arg("."))?;
        std::fs::remove_file(archive).map_err(|error| error.to_string())
    })
}

fn may(install: bool, what: &str) -> Result<(), String> {
    if install { Ok(()) } else { Err(format!("needs {what}, which --no-install forbids to fetch")) }
}

/// Prints a command and runs it to its end.
pub fn run(command: &mut Command) -> Result<(), String> {
    println!("{}", shown(command));
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{} ended with {status}", name(command))),
        Err(error) => Err(format!("{}: {error}", name(command))),
    }
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

fn entry(folder: &Path, suffix: &str) -> Option<std::path::PathBuf> {
    let mut entries = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    entries.find(|path| path.to_string_lossy().ends_with(suffix))
}
