//! `cargo xtask lint`: formatting, clippy for each set of features, documentation.

use crate::{cargo, shown};

const WORKSPACE: &[&str] = &["clippy", "--workspace", "--all-targets"];
/// Each feature alone, and none.
const FEATURES: [&[&str]; 5] =
    [&[], &["--features", "wgpu"], &["--features", "cuda"], &["--features", "images"], &["--features", "cli"]];

/// Runs every step, also after one has failed, and says at the end which did. True where none did.
pub fn lint() -> bool {
    let failed: Vec<String> = steps().iter().filter(|step| !passes(step)).map(|step| step.join(" ")).collect();
    for step in &failed {
        eprintln!("failed: cargo {step}");
    }
    if failed.is_empty() {
        println!("lint: nothing to complain about");
    }
    failed.is_empty()
}

/// The arguments of each call of cargo.
fn steps() -> Vec<Vec<&'static str>> {
    let mut steps = vec![vec!["fmt", "--all", "--check"], denying_warnings(WORKSPACE)];
    for feature in FEATURES {
        steps.push(denying_warnings(&[&["clippy", "--no-default-features"], feature].concat()));
    }
    steps.push(vec!["doc", "--no-deps", "--workspace"]);
    steps
}

/// Clippy's own flag and not RUSTFLAGS, which would build every dependency anew.
fn denying_warnings(args: &[&'static str]) -> Vec<&'static str> {
    [args, &["--", "-D", "warnings"]].concat()
}

fn passes(step: &[&str]) -> bool {
    let mut command = cargo(step);
    if step.first() == Some(&"doc") {
        command.env("RUSTDOCFLAGS", "-D warnings");
    }
    println!("{}", shown(&command));
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cannot run cargo: {error}");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_is_checked_alone_and_warnings_are_errors() {
        let steps = steps();
        let clippy: Vec<_> = steps.iter().filter(|step| step.first() == Some(&"clippy")).collect();
        assert_eq!(clippy.len(), 1 + FEATURES.len());
        assert!(clippy.iter().all(|step| step.ends_with(&["--", "-D", "warnings"])));
        for feature in FEATURES {
            let alone = [&["clippy", "--no-default-features"], feature, &["--", "-D", "warnings"]].concat();
            assert!(clippy.contains(&&alone), "{feature:?}");
        }
    }
}
