//! `cargo xtask lint`: formatting, clippy for each set of features, documentation, package, list of the public API.

use crate::{api, cargo, shown, target_dir};

const WORKSPACE: &[&str] = &["clippy", "--workspace", "--all-targets"];
/// Each feature alone, and none.
const FEATURES: [&[&str]; 5] =
    [&[], &["--features", "wgpu"], &["--features", "cuda"], &["--features", "images"], &["--features", "cli"]];

/// What would be published builds by itself.
const PACKAGE: &[&str] = &["package", "--package", "gpufeed", "--allow-dirty", "--quiet"];

/// Runs every step, also after one has failed, and says at the end which did. True where none did.
pub fn lint() -> bool {
    let failed: Vec<String> = steps().iter().filter(|step| !passes(step)).map(|step| step.join(" ")).collect();
    for step in &failed {
        eprintln!("failed: cargo {step}");
    }
    let passed = api::check() && failed.is_empty();
    if passed {
        println!("lint: nothing to complain about");
    }
    passed
}

/// The arguments of each call of cargo.
fn steps() -> Vec<Vec<&'static str>> {
    let mut steps = vec![vec!["fmt", "--all", "--check"], denying_warnings(WORKSPACE)];
    for feature in FEATURES {
        steps.push(denying_warnings(&[&["clippy", "--no-default-features"], feature].concat()));
    }
    steps.push(vec!["doc", "--no-deps", "--workspace"]);
    steps.push(PACKAGE.to_vec());
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
    if step.first() == Some(&"package") {
        // Beside the workspace's own build, whose dependencies are used again.
        command.env("CARGO_TARGET_DIR", target_dir());
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
