//! Windows programs, built here with mingw and run under Wine on software drivers.

use std::fs;
use std::path::{Path, PathBuf};

use super::debian::Debian;
use super::launcher::Launcher;
use super::programs::Programs;
use super::toolchain::Toolchain;
use super::{folder, packages};

const TRIPLE: &str = "x86_64-pc-windows-gnu";
const MINGW: &[&str] = &["gcc-mingw-w64-x86-64"];
/// Wine's own compiler of HLSL lacks much; Microsoft's comes with this package.
const COMPILER: (&str, &str) = ("kivy_deps.angle", "d3dcompiler_47.dll");
/// Where Wine keeps its Windows.
const PREFIX: &str = "/var/wine";

/// Windows as it is reached here.
#[derive(Debug, Clone)]
pub struct Windows {
    pub launcher: Launcher,
    pub programs: Programs,
}

/// Why there is none.
#[derive(Debug, Clone)]
pub enum NoWindows {
    NotReachable(String),
    DoesNotBuild(String),
}

/// Builds the programs, and prepares Wine.
pub fn ensure(install: bool) -> Result<Windows, NoWindows> {
    let toolchain = toolchain(install).map_err(NoWindows::NotReachable)?;
    let debian = Debian::ensure(install).map_err(NoWindows::NotReachable)?;
    let compiler = packages::wheel(COMPILER.0, "win_amd64", install).map_err(NoWindows::NotReachable)?;
    let mut command = toolchain.cargo("test", ",test");
    command.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER", "x86_64-w64-mingw32-gcc");
    let programs = Programs::build(command).map_err(NoWindows::DoesNotBuild)?;
    put_beside(&programs, &compiler).map_err(NoWindows::NotReachable)?;
    let launcher = launcher(&debian).map_err(NoWindows::NotReachable)?;
    Ok(Windows { launcher, programs })
}

fn toolchain(install: bool) -> Result<Toolchain, String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err("needs x86-64 Linux".to_owned());
    }
    packages::ensure(MINGW, install)?;
    Toolchain::of(TRIPLE, install)
}

/// Windows looks for libraries beside the program.
fn put_beside(programs: &Programs, wheel: &Path) -> Result<(), String> {
    let library =
        folder::find(wheel, COMPILER.1).ok_or_else(|| format!("there is no {} in the package", COMPILER.1))?;
    for program in [&programs.gpufeed, &programs.contract] {
        let beside = program.with_file_name(COMPILER.1);
        fs::copy(&library, &beside).map_err(|error| format!("{}: {error}", beside.display()))?;
    }
    Ok(())
}

/// Vulkan, GL and DX12 find adapters only with an X server. Tests run one at a time.
fn launcher(debian: &Debian) -> Result<Launcher, String> {
    let wine = debian.launcher().with("WINEPREFIX", PREFIX).with("WINEDEBUG", "-all").with("HOME", "/root");
    if !debian.has(&format!("{PREFIX}/system.reg")) {
        let quiet = wine.clone().with("WINEDLLOVERRIDES", "mscoree,mshtml=");
        // The server writes the registry when it ends, and would end with its namespace before that.
        let make = ["-c", "wineboot --init && wineserver --wait"];
        packages::run(quiet.command(Path::new("sh")).args(make))?;
    }
    let wine = wine.with("WINEDLLOVERRIDES", "d3dcompiler_47=n").with("WGPU_DX12_COMPILER", "fxc");
    Ok(wine.through(["xvfb-run", "-a", "wine"].map(PathBuf::from)).with_one_thread())
}
