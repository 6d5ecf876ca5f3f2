//! The `gpufeed` command.

mod args;
mod devices;
mod fallback;
mod interrupt;
mod output;
mod run;
mod units;

use std::process::ExitCode;

use anyhow::{Error, Result};
use clap::Parser;
use gpufeed::OpenError;

use args::{Cli, Command};

const NO_DEVICE: u8 = 3;

fn main() -> ExitCode {
    // Wrong usage ends here, with clap's exit code 2.
    let cli = Cli::parse();
    // wgpu warns about much that is no concern of a user.
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("gpufeed=warn,error")).init();
    dispatch(cli.command).unwrap_or_else(|error| failed(&error))
}

fn dispatch(command: Command) -> Result<ExitCode> {
    match command {
        Command::Devices(args) => devices::devices(&args),
        Command::Run(args) => run::run(&args),
    }
}

fn failed(error: &Error) -> ExitCode {
    if error.is::<output::Closed>() {
        return ExitCode::SUCCESS;
    }
    output::error(error);
    let no_device =
        |cause: &(dyn std::error::Error + 'static)| matches!(cause.downcast_ref(), Some(OpenError::NoDevice { .. }));
    if error.chain().any(no_device) { ExitCode::from(NO_DEVICE) } else { ExitCode::FAILURE }
}
