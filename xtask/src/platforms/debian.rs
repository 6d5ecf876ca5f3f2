//! A newer Debian in a folder, for a newer Mesa and for Wine. Nothing of it is installed into this system.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::launcher::Launcher;
use super::{folder, packages};
use crate::root;

const SUITE: &str = "trixie";
const PACKAGES: &str = "wine,wine64,libwine,mesa-vulkan-drivers,libvulkan1,libgl1-mesa-dri,libegl1,xvfb,xauth";
const ENTER: &str = include_str!("enter.sh");

/// The folder.
#[derive(Debug)]
pub struct Debian {
    folder: PathBuf,
    enter: PathBuf,
}

impl Debian {
    /// Makes it unless it is there, or says why it cannot be.
    pub fn ensure(install: bool) -> Result<Self, String> {
        if !is_root() {
            return Err("needs root, to enter another Debian's folder".to_owned());
        }
        let folder = folder::once(SUITE, |into| {
            if !install {
                return Err(format!("needs Debian's {SUITE} in a folder, which --no-install forbids to fetch"));
            }
            packages::ensure(&["debootstrap"], install)?;
            let mut command = Command::new("debootstrap");
            command.args(["--variant=minbase", &format!("--include={PACKAGES}"), SUITE]).arg(into).arg(mirror()?);
            packages::run(command.env_remove("TMPDIR"))
        })?;
        let enter = folder::at("enter.sh");
        fs::write(&enter, ENTER).map_err(|error| format!("{}: {error}", enter.display()))?;
        Ok(Self { folder, enter })
    }

    /// Starts programs inside.
    pub fn launcher(&self) -> Launcher {
        let unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh"].map(PathBuf::from);
        let enter = [self.enter.clone(), self.folder.clone(), root()];
        Launcher::default().through(unshare.into_iter().chain(enter))
    }

    /// Whether a path exists inside.
    pub fn has(&self, path: &str) -> bool {
        self.folder.join(Path::new(path).strip_prefix("/").unwrap_or(Path::new(path))).exists()
    }
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// The mirror that this Debian takes its own packages from.
fn mirror() -> Result<String, String> {
    let targets = Command::new("apt-get").args(["indextargets", "--format", "$(LABEL) $(REPO_URI)"]).output();
    let text = targets.map_err(|error| format!("apt-get: {error}"))?.stdout;
    first_mirror(&String::from_utf8_lossy(&text))
        .ok_or_else(|| "apt is not configured for Debian's packages".to_owned())
}

fn first_mirror(targets: &str) -> Option<String> {
    targets.lines().find_map(|line| line.strip_prefix("Debian ")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_the_systems_own_and_not_that_of_its_security_updates() {
        let targets = "Debian-Security http://a/debian-security/\nDebian http://a/debian/\nDebian http://b/debian/\n";
        assert_eq!(first_mirror(targets).as_deref(), Some("http://a/debian/"));
        assert_eq!(first_mirror("Ubuntu http://a/ubuntu/\n"), None);
    }
}
