//! Targets that are compiled here and run elsewhere.

use std::process::{Command, Stdio};

use super::outcome::Outcome;
use super::toolchain::Toolchain;
use crate::shown;

/// A target, and what of the crate is compiled for it.
#[derive(Debug)]
pub struct Target {
    triple: &'static str,
    /// What of the package is checked.
    parts: &'static [&'static str],
}

/// The library and the command.
const ALL: &[&str] = &["--lib", "--bins"];
pub const MACOS: Target = Target { triple: "aarch64-apple-darwin", parts: ALL };
pub const MSVC: Target = Target { triple: "x86_64-pc-windows-msvc", parts: ALL };
pub const ARM: Target = Target { triple: "aarch64-unknown-linux-gnu", parts: ALL };
pub const WASM: Target =
    Target { triple: "wasm32-unknown-unknown", parts: &["--lib", "--no-default-features", "--features", "wgpu"] };

/// Type-checks the library and the command.
pub fn check(target: &Target, install: bool) -> Outcome {
    compile(target, install, "check", target.parts)
}

/// Generates the library's code. A program would need the target's linker and libraries.
pub fn generate(target: &Target, install: bool) -> Outcome {
    compile(target, install, "build", &["--lib"])
}

fn compile(target: &Target, install: bool, subcommand: &str, parts: &[&str]) -> Outcome {
    let toolchain = match Toolchain::of(target.triple, install) {
        Ok(toolchain) => toolchain,
        Err(reason) => return Outcome::NotReachable { reason },
    };
    let mut command = toolchain.cargo(subcommand, "");
    command.args(parts).stdin(Stdio::null());
    match warnings(&mut command) {
        Err(reason) => Outcome::Failed { reason },
        Ok(true) => Outcome::Failed { reason: "there are warnings".to_owned() },
        Ok(false) => Outcome::Compiled { compiler: toolchain.name },
    }
}

/// Whether this crate has any. As errors they would be flags, and flags build every dependency anew.
fn warnings(command: &mut Command) -> Result<bool, String> {
    println!("{}", shown(command));
    let output = command.output().map_err(|error| format!("cannot run cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let told = text.lines().filter(|line| !is_progress(line));
    told.for_each(|line| println!("  {line}"));
    if output.status.success() { Ok(warns(&text)) } else { Err("it does not compile".to_owned()) }
}

/// cargo's lines of what it does.
fn is_progress(line: &str) -> bool {
    let words = ["Compiling", "Checking", "Downloaded", "Downloading", "Fresh", "Locking", "Updating", "Blocking"];
    line.strip_prefix("  ").is_some_and(|line| words.iter().any(|word| line.trim_start().starts_with(word)))
}

fn warns(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("warning: `gpufeed`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_of_this_crate_count_and_others_do_not() {
        assert!(warns("warning: unused\nwarning: `gpufeed` (lib) generated 1 warning\n"));
        assert!(!warns("warning: `other` (lib) generated 1 warning\n    Finished `dev` profile\n"));
        assert!(
            is_progress("   Compiling syn v2.0.0") && !is_progress("  --> src/lib.rs:1:1") && !is_progress("error")
        );
    }
}
