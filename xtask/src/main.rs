//! The project's own commands: `cargo xtask test`, `validate`, `lint`, `platforms`, `ocr`, `api`, `ptx`, `help`.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod api;
mod drivers;
mod lint;
mod ocr;
mod platforms;
mod ptx;
mod suite;

use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [--no-install] [-- ARGS]  installs software Vulkan and GL drivers where they are missing (Debian and Ubuntu, as
                                 root or with sudo that asks for no password), runs all unit, integration and doc
                                 tests, then `validate`; ARGS go to `cargo test`
  validate                       runs the GPU tests under the Vulkan validation layers; any message is a failure
  lint                           rustfmt, clippy for each set of features, the documentation, the package and the list of the
                                 public API; warnings are failures
  platforms [--only A,B] [--no-install] [--list]
                                 runs the contract suite, the kernels, the command and a short comparison on every platform
                                 that this machine can reach, software drivers and Wine among them, type-checks for others,
                                 and ends with a table; what it fetches and builds is kept in target/platforms
  ocr [--no-install]             fetches the weights of examples/ocr from PyPI where they are missing, and builds, lints, tests and
                                 runs it: a network in burn on the device of gpufeed; takes minutes
  api                            writes docs/public-api.txt, the list of the public API, anew
  ptx                            translates shaders/*.cu to the PTX beside them, with the NVRTC 12.0 to 12.4 that the variable
                                 NVRTC names
  help                           prints this
";

/// What was asked for.
#[derive(Debug, PartialEq)]
enum Task {
    Test { install: bool, args: Vec<String> },
    Validate,
    Lint,
    Platforms(platforms::Options),
    Ocr { install: bool },
    Api,
    Ptx,
    Help,
}

/// Reads the command line, or says what is wrong with it.
fn parse(args: &[String]) -> Result<Task, String> {
    let Some((command, rest)) = args.split_first() else { return Err("no command".to_owned()) };
    let task = match command.as_str() {
        "test" => return parse_test(rest),
        "platforms" => return platforms::parse(rest).map(Task::Platforms),
        "ocr" => return parse_ocr(rest),
        "validate" => Task::Validate,
        "lint" => Task::Lint,
        "api" => Task::Api,
        "ptx" => Task::Ptx,
        "help" | "--help" | "-h" => Task::Help,
        other => return Err(format!("unknown command `{other}`")),
    };
    match rest.first() {
        Some(extra) => Err(format!("unknown argument `{extra}`")),
        None => Ok(task),
    }
}

fn parse_test(args: &[String]) -> Result<Task, String> {
    let mut install = true;
    for (at, arg) in args.iter().enumerate() {
        match arg.as_str() {
            "--no-install" => install = false,
            "--" => return Ok(Task::Test { install, args: args.iter().skip(at + 1).cloned().collect() }),
            other => return Err(format!("unknown argument `{other}`")),
        }
    }
    Ok(Task::Test { install, args: Vec::new() })
}

fn parse_ocr(args: &[String]) -> Result<Task, String> {
    match args {
        [] => Ok(Task::Ocr { install: true }),
        [only] if only == "--no-install" => Ok(Task::Ocr { install: false }),
        [extra, ..] => Err(format!("unknown argument `{extra}`")),
    }
}

/// The workspace's root.
fn root() -> PathBuf {
    let own = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = || env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    own.and_then(|dir| dir.parent().map(PathBuf::from)).unwrap_or_else(here)
}

/// Where cargo builds.
fn target_dir() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The cargo that started us, to be run in the workspace's root.
fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    command
}

/// The command line and the variables set for it, to be shown before it runs.
fn shown(command: &Command) -> String {
    let variables = command
        .get_envs()
        .filter_map(|(key, value)| Some(format!("{}={:?} ", key.to_string_lossy(), value?.to_string_lossy())));
    let program = command.get_program().to_string_lossy();
    let program = program.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
    let args = command.get_args().map(|arg| format!(" {}", arg.to_string_lossy()));
    format!("$ {}{program}{}", variables.collect::<String>(), args.collect::<String>())
}

fn main() -> ExitCode {
    if let Some(code) = api::stands_in_for_rustdoc() {
        return code;
    }
    let args: Vec<String> = env::args().skip(1).collect();
    let passed = match parse(&args) {
        Ok(Task::Test { install, args }) => suite::test(install, &args),
        Ok(Task::Validate) => suite::validate(),
        Ok(Task::Lint) => lint::lint(),
        Ok(Task::Platforms(options)) => platforms::platforms(&options),
        Ok(Task::Ocr { install }) => ocr::ocr(install),
        Ok(Task::Api) => api::update(),
        Ok(Task::Ptx) => ptx::ptx(&root()),
        Ok(Task::Help) => {
            print!("{USAGE}");
            true
        }
        Err(problem) => {
            eprint!("{problem}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Task, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_follows_two_dashes_goes_to_cargo_test() {
        let args = vec!["--lib".to_owned(), "--".to_owned(), "layout".to_owned()];
        assert_eq!(parsed("test --no-install -- --lib -- layout"), Ok(Task::Test { install: false, args }));
        assert_eq!(parsed("test"), Ok(Task::Test { install: true, args: vec![] }));
    }

    #[test]
    fn unknown_commands_and_arguments_are_refused_by_name() {
        assert_eq!(parsed("lint"), Ok(Task::Lint));
        assert_eq!(parsed("api"), Ok(Task::Api));
        assert_eq!(parsed("ptx"), Ok(Task::Ptx));
        assert_eq!(parsed("validate"), Ok(Task::Validate));
        assert_eq!(parsed("ocr --no-install"), Ok(Task::Ocr { install: false }));
        for (line, name) in [
            ("tset", "tset"),
            ("test --lib", "--lib"),
            ("lint --fix", "--fix"),
            ("ocr --fast", "--fast"),
            ("", "no command"),
        ] {
            assert!(parsed(line).is_err_and(|problem| problem.contains(name)), "{line}");
        }
    }

    #[test]
    fn a_command_is_shown_with_its_variables_and_without_its_folder() {
        let mut command = Command::new("/some/where/cargo");
        command.args(["test", "--lib"]).env("RUST_LOG", "error");
        assert_eq!(shown(&command), "$ RUST_LOG=\"error\" cargo test --lib");
    }
}
