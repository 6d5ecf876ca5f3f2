//! The `gpufeed` command.

mod args;
mod cli;
mod compare;
mod completions;
mod data;
mod devices;
mod doctor;
mod fallback;
mod feed_args;
mod interrupt;
mod output;
mod output_file;
mod quiet;
mod report;
mod report_file;
mod run;
#[cfg(test)]
mod testing;
mod transform;
mod units;

use std::process::ExitCode;

use anyhow::{Error, Result};
use clap::{CommandFactory, Parser};
use gpufeed::OpenError;

use args::UsageError;
use cli::{Cli, Command};

/// The exit code of wrong usage, as clap's.
const USAGE: u8 = 2;
/// The exit code where there is no such device.
const NO_DEVICE: u8 = 3;
/// What is logged unless `RUST_LOG` says otherwise. wgpu warns about much that is no concern of a user, and EGL calls it an
/// error when it tries one driver after the other.
const LOG: &str = "error,gpufeed=warn,wgpu_hal::gles::egl=off";

fn main() -> ExitCode {
    quiet::set_runtime_dir();
    // Wrong usage ends here, with clap's exit code 2.
    let cli = Cli::parse();
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or(LOG)).init();
    dispatch(cli.command).unwrap_or_else(|error| failed(&error))
}

fn dispatch(command: Command) -> Result<ExitCode> {
    match command {
        Command::Devices(args) => devices::devices(&args),
        Command::Run(args) => run::run(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::CompareDevice => compare::compare_device(),
        Command::ComparePaced => compare::compare_paced(),
        Command::Completions(args) => completions::completions(&args, Cli::command()),
        Command::Report(args) => report::report(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::DoctorProbe => doctor::doctor_probe(),
    }
}

fn failed(error: &Error) -> ExitCode {
    if error.is::<output::Closed>() {
        return ExitCode::SUCCESS;
    }
    if let Some(usage) = error.downcast_ref::<UsageError>() {
        let _ = cli::usage(usage).print();
        return ExitCode::from(USAGE);
    }
    output::error(error);
    let no_device =
        |cause: &(dyn std::error::Error + 'static)| matches!(cause.downcast_ref(), Some(OpenError::NoDevice { .. }));
    if error.chain().any(no_device) { ExitCode::from(NO_DEVICE) } else { ExitCode::FAILURE }
}
