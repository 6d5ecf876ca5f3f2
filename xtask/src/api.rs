//! `cargo xtask api`: the crate's public API as a list, so that a review sees what a change does to it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::{cargo, root, shown, target_dir};

/// Set while this program stands in for rustdoc: the program that does the work.
const RUSTDOC: &str = "GPUFEED_XTASK_RUSTDOC";
/// The list, relative to the workspace's root.
const LIST: &str = "docs/public-api.txt";
/// rustdoc's JSON is not stable yet; the list is of the version that the compiler here writes.
const JSON: &[&str] =
    &["rustdoc", "--package", "gpufeed", "--lib", "--quiet", "--", "-Zunstable-options", "--output-format", "json"];

/// Runs rustdoc with its unstable options allowed, if that is what this process was started for.
///
/// The variable that allows them is set for rustdoc alone: set for cargo, it would have the dependencies' build scripts run anew.
pub fn stands_in_for_rustdoc() -> Option<ExitCode> {
    let rustdoc = env::var_os(RUSTDOC)?;
    let status = Command::new(rustdoc).args(env::args_os().skip(1)).env("RUSTC_BOOTSTRAP", "1").status();
    Some(if status.is_ok_and(|status| status.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Writes the list anew.
pub fn update() -> bool {
    match list() {
        Ok(text) => report(fs::write(root().join(LIST), text).map_err(|error| format!("{LIST}: {error}"))),
        Err(problem) => report(Err(problem)),
    }
}

/// Whether the list is that of the code. What the compiler here writes in another format is skipped in sight.
pub fn check() -> bool {
    let (now, kept) = match (list(), fs::read_to_string(root().join(LIST))) {
        (Ok(now), Ok(kept)) => (now, kept),
        (Err(problem), _) if problem.contains("format") => {
            println!("skipped: public API: {problem}");
            return true;
        }
        (Err(problem), _) => return report(Err(problem)),
        (_, Err(error)) => return report(Err(format!("{LIST}: {error}"))),
    };
    let changes = changes(&kept, &now);
    if changes.is_empty() {
        return true;
    }
    changes.iter().for_each(|change| eprintln!("{change}"));
    report(Err(format!("the public API is not what {LIST} lists: look the changes over, then `cargo xtask api`")))
}

fn report(result: Result<(), String>) -> bool {
    result.inspect_err(|problem| eprintln!("api: {problem}")).is_ok()
}

/// One line for each public item.
fn list() -> Result<String, String> {
    let json = json()?;
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build();
    api.map(|api| api.to_string()).map_err(|error| error.to_string())
}

/// Has rustdoc describe the crate.
fn json() -> Result<PathBuf, String> {
    let own = env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let rustdoc = env::var_os("RUSTDOC").unwrap_or_else(|| OsString::from("rustdoc"));
    let mut command = cargo(JSON);
    command.env(RUSTDOC, rustdoc).env("RUSTDOC", own);
    println!("$ {}", JSON.join(" "));
    match command.status() {
        Ok(status) if status.success() => Ok(target_dir().join("doc").join("gpufeed.json")),
        Ok(status) => Err(format!("{} ended with {status}", shown(&command))),
        Err(error) => Err(format!("cannot run cargo: {error}")),
    }
}

/// The lines that only one of two lists has, marked as a diff marks them.
fn changes(before: &str, after: &str) -> Vec<String> {
    let missing = |from: &str, other: &str, mark: char| {
        let other: std::collections::HashSet<&str> = other.lines().collect();
        let lines = from.lines().filter(|line| !other.contains(line)).map(|line| format!("{mark}{line}"));
        lines.collect::<Vec<_>>()
    };
    [missing(before, after, '-'), missing(after, before, '+')].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_what_only_one_list_has() {
        assert_eq!(changes("a\nb\n", "b\nc\n"), ["-a", "+c"]);
        assert!(changes("a\n", "a\n").is_empty());
    }
}
