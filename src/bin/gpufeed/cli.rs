//! The command line.

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use crate::args::UsageError;
use crate::compare::CompareArgs;
use crate::completions::CompletionsArgs;
use crate::devices::DevicesArgs;
use crate::doctor::DoctorArgs;
use crate::report::ReportArgs;
use crate::run::RunArgs;

/// Feeds batches of samples to GPUs, and measures how fast
#[derive(Debug, Parser)]
#[command(name = "gpufeed", bin_name = "gpufeed", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List devices, their drivers and limits, and the strategies each can run
    Devices(DevicesArgs),
    /// Load samples onto a device, and report how fast it went and where the time went
    Run(Box<RunArgs>),
    /// Compare staging strategies: which feeds each device fastest, by how much, and why, from verified bytes
    Compare(Box<CompareArgs>),
    /// Merge the JSON of comparisons, from many machines, into one page
    Report(ReportArgs),
    /// Say what stands between this machine and the speed of its link, what it costs, and how to mend it
    Doctor(Box<DoctorArgs>),
    /// Print what a shell needs to complete this command's arguments
    Completions(CompletionsArgs),
    /// Something the doctor tries in a process of its own: what comes on standard input
    #[command(hide = true)]
    DoctorProbe,
    /// One device's part of a comparison: what to do comes on standard input
    #[command(hide = true)]
    CompareDevice,
    /// One configuration's rounds, one at a time: what to do comes on standard input
    #[command(hide = true)]
    ComparePaced,
}

/// An error of usage as the parser would have put it.
pub fn usage(error: &UsageError) -> clap::Error {
    let mut cli = Cli::command();
    // Names the subcommand in full.
    cli.build();
    let named = cli.find_subcommand_mut(error.command);
    named.unwrap_or(&mut Cli::command()).error(ErrorKind::ValueValidation, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
