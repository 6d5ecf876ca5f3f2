//! The programs that are run on every platform.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{cargo, shown};

/// What cargo is asked to build.
pub const TARGETS: &[&str] = &["--lib", "--bin", "gpufeed", "--test", "contract", "--test", "shaders", "--test", "cli"];

/// Their paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    pub library: PathBuf,
    pub contract: PathBuf,
    pub shaders: PathBuf,
    pub cli: PathBuf,
    pub gpufeed: PathBuf,
}

impl Programs {
    /// Builds them for this system.
    pub fn native() -> Result<Self, String> {
        Self::build(cargo(&["test"]))
    }

    /// Builds them with a `cargo test` whose arguments are not complete.
    pub fn build(mut command: Command) -> Result<Self, String> {
        command.args(TARGETS).args(["--no-run", "--message-format=json-render-diagnostics"]);
        println!("{}", shown(&command));
        let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| format!("cannot run cargo: {error}"))?;
        if !output.status.success() {
            return Err("it does not build".to_owned());
        }
        Self::among(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| "cargo named no programs".to_owned())
    }

    /// Reads cargo's messages.
    fn among(messages: &str) -> Option<Self> {
        let mut programs = messages.lines().filter_map(program).collect::<Vec<_>>();
        let mut take = |name: &str, test: bool| {
            let at = programs.iter().position(|(own, is_test, _)| own == name && *is_test == test)?;
            Some(programs.swap_remove(at).2)
        };
        Some(Self {
            gpufeed: take("gpufeed", false)?,
            library: take("gpufeed", true)?,
            contract: take("contract", true)?,
            shaders: take("shaders", true)?,
            cli: take("cli", true)?,
        })
    }
}

/// A target's name, whether it is one of tests, and the program's path.
fn program(message: &str) -> Option<(String, bool, PathBuf)> {
    let message: Value = serde_json::from_str(message).ok()?;
    let path = message.get("executable")?.as_str()?;
    let name = message.pointer("/target/name")?.as_str()?;
    let test = message.pointer("/profile/test")?.as_bool()?;
    // The command's own unit tests have the library's name.
    let command = message.pointer("/target/kind/0")?.as_str()? == "bin";
    (!(command && test)).then(|| (name.to_owned(), test, path.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_told_apart_by_target_and_profile() {
        let message = |name: &str, kind: &str, test: bool, path: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","target":{{"name":"{name}","kind":["{kind}"]}},"profile":{{"test":{test}}},"executable":"{path}"}}"#
            )
        };
        let mut lines = vec![r#"{"reason":"build-finished","success":true}"#.to_owned()];
        lines.push(message("gpufeed", "bin", true, "/units"));
        lines.push(message("gpufeed", "bin", false, "/gpufeed"));
        lines.push(message("gpufeed", "lib", true, "/library"));
        assert_eq!(Programs::among(&lines.join("\n")), None);
        lines.extend(["contract", "shaders", "cli"].map(|name| message(name, "test", true, &format!("/{name}"))));
        let programs = Programs::among(&lines.join("\n")).expect("all are there");
        assert_eq!((programs.library, programs.gpufeed), ("/library".into(), "/gpufeed".into()));
        assert_eq!(programs.cli, PathBuf::from("/cli"));
    }
}
