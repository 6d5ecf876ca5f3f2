//! `gpufeed completions`: what shells complete.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Command};
use clap_complete::Shell;

use crate::output;

const HELP: &str = "\
bash: gpufeed completions bash > ~/.local/share/bash-completion/completions/gpufeed
zsh:  gpufeed completions zsh > a file _gpufeed in a folder of $fpath
fish: gpufeed completions fish > ~/.config/fish/completions/gpufeed.fish";

#[derive(Debug, Args)]
#[command(after_long_help = HELP)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Prints a script for a shell, of the whole command.
pub fn completions(args: &CompletionsArgs, mut command: Command) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "gpufeed", &mut script);
    output::print(String::from_utf8_lossy(&script).trim_end())?;
    Ok(ExitCode::SUCCESS)
}
