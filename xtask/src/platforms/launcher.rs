//! How test programs are started on a platform.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::root;

/// What stands before a program, and the variables it is started with.
#[derive(Debug, Clone, Default)]
pub struct Launcher {
    prefix: Vec<PathBuf>,
    variables: Vec<(&'static str, String)>,
    one_thread: bool,
}

impl Launcher {
    /// The same with a program, and its arguments, to start the others with.
    pub fn through(mut self, prefix: impl IntoIterator<Item = PathBuf>) -> Self {
        self.prefix.extend(prefix);
        self
    }

    pub fn with(mut self, variable: &'static str, value: &str) -> Self {
        self.variables.push((variable, value.to_owned()));
        self
    }

    /// Tests run one after the other: under Wine the Vulkan loader walks lists without a lock.
    pub fn with_one_thread(mut self) -> Self {
        self.one_thread = true;
        self
    }

    /// Whether [`with_one_thread`](Self::with_one_thread) was asked for.
    pub fn has_one_thread(&self) -> bool {
        self.one_thread
    }

    /// A program, in the workspace's root as cargo would start it.
    pub fn command(&self, program: &Path) -> Command {
        let mut words = self.prefix.iter().map(PathBuf::as_path).chain([program]);
        let mut command = Command::new(words.next().unwrap_or(program));
        command.args(words).current_dir(root()).envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// A program of tests.
    pub fn tests(&self, program: &Path, filter: &[&str]) -> Command {
        let mut command = self.command(program);
        command.args(filter);
        if self.one_thread {
            command.arg("--test-threads=1");
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shown;

    #[test]
    fn a_program_is_started_through_what_stands_before_it() {
        let wine = ["xvfb-run", "wine"].map(PathBuf::from);
        let launcher = Launcher::default().through(wine).with("WGPU_BACKEND", "dx12").with_one_thread();
        let command = launcher.tests(Path::new("a.exe"), &["dx12::"]);
        assert_eq!(shown(&command), "$ WGPU_BACKEND=\"dx12\" xvfb-run wine a.exe dx12:: --test-threads=1");
        assert_eq!(shown(&Launcher::default().command(Path::new("a"))), "$ a");
    }
}
