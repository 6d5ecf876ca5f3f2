//! A compiler with a standard library for another target.

use std::env;
use std::path::Path;
use std::process::Command;

use super::{folder, packages};
use crate::{cargo, root};

/// Debian's compiler, which comes with the standard library's source.
const DEBIAN: &[&str] = &["rustc-web", "cargo-web", "rust-web-src", "rust-web-llvm"];
/// Variables that tell programs which compiler started this one.
const OURS: &[&str] = &["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN", "RUSTUP_HOME", "CARGO_ENCODED_RUSTFLAGS"];
/// Dependencies of tests are optimised a little, since those run under Wine. What never runs here is not: it would cost only time, most of it in
/// the macros that run while others are compiled.
const OF_TESTS: &str = "profile.dev.package.\"*\".opt-level=1";
const OF_OTHERS: &str = "profile.dev.package.\"*\".opt-level=0";

#[derive(Debug, Clone)]
pub struct Toolchain {
    triple: &'static str,
    pub name: String,
    /// Builds the standard library too.
    from_source: bool,
}

impl Toolchain {
    /// rustup's where it has this target, or else Debian's.
    pub fn of(triple: &'static str, install: bool) -> Result<Self, String> {
        if has_target(triple) {
            let name = version(&mut Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())))?;
            return Ok(Self { triple, name, from_source: false });
        }
        packages::ensure(DEBIAN, install).map_err(|why| format!("{why}, or `rustup target add {triple}`"))?;
        let name = version(&mut Command::new("/usr/bin/rustc"))? + ", std from source";
        Ok(Self { triple, name, from_source: true })
    }

    /// A call of cargo for the target, with a build folder of its own: `parts` of the standard library beside `std`.
    pub fn cargo(&self, subcommand: &str, parts: &str) -> Command {
        let mut command = if self.from_source { from_source(subcommand, parts) } else { cargo(&[subcommand]) };
        let profile = if subcommand == "test" { OF_TESTS } else { OF_OTHERS };
        command.args(["--target", self.triple, "--config", profile]);
        command.env("CARGO_TARGET_DIR", folder::at("build"));
        command.envs([("CARGO_PROFILE_DEV_DEBUG", "0"), ("CARGO_INCREMENTAL", "0")]);
        command
    }
}

fn from_source(subcommand: &str, parts: &str) -> Command {
    let mut command = Command::new("/usr/bin/cargo");
    for variable in OURS {
        command.env_remove(variable);
    }
    command.current_dir(root()).env("PATH", "/usr/bin:/bin").env("RUSTC_BOOTSTRAP", "1");
    command.arg(subcommand).arg(format!("-Zbuild-std=std,panic_unwind{parts}"));
    command
}

/// Whether the compiler that this program was built with has the target's standard library.
fn has_target(triple: &str) -> bool {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let sysroot = Command::new(rustc).args(["--print", "sysroot"]).output();
    sysroot.is_ok_and(|output| {
        let root = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Path::new(&root).join("lib/rustlib").join(triple).join("lib").is_dir()
    })
}

fn version(rustc: &mut Command) -> Result<String, String> {
    let output = rustc.arg("--version").output().map_err(|error| format!("rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
}
