//! Control groups for tests: what a container limits, limited here. Linux, and the right to make groups, or there are none.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A new group in a hierarchy, removed at its end.
pub struct ControlGroup(PathBuf);

impl ControlGroup {
    /// A group with each of `limits` written: files of version 1 of `controller`, or else of version 2.
    pub fn new(name: &str, controller: &str, version_1: (&str, &str), version_2: (&str, &str)) -> Result<Self, String> {
        let root = Path::new("/sys/fs/cgroup");
        let first = root.join(controller);
        let (folder, (file, value)) =
            if first.join("cgroup.procs").exists() { (first, version_1) } else { (root.to_owned(), version_2) };
        let folder = folder.join(format!("gpufeed-{name}-{}", std::process::id()));
        fs::create_dir(&folder).map_err(|error| format!("no control group can be made: {error}"))?;
        let group = Self(folder);
        fs::write(group.0.join(file), value).map_err(|error| format!("{file} cannot be set: {error}"))?;
        Ok(group)
    }

    /// The command as a member of the group.
    pub fn member(&self, command: &Command) -> Command {
        let mut inside = Command::new("sh");
        inside.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.0.join("cgroup.procs"));
        inside.arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // Its members have ended; what is left is an empty folder.
        let _ = fs::remove_dir(&self.0);
    }
}
