//! Software drivers on Linux, and how programs are made to use one of them.

use std::env::consts;
use std::path::Path;

use super::debian::Debian;
use super::launcher::Launcher;
use super::{folder, packages};

#[derive(Debug, Clone, Copy)]
pub enum Driver {
    Lavapipe,
    NewerLavapipe,
    SwiftShader,
    Llvmpipe,
    Angle,
}

const LAVAPIPE: &[&str] = &["libvulkan1", "mesa-vulkan-drivers"];
const LLVMPIPE: &[&str] = &["libegl1", "libegl-mesa0", "libgles2", "libgl1-mesa-dri"];

impl Driver {
    /// How to run a program on this driver, or why not.
    pub fn launcher(self, install: bool) -> Result<Launcher, String> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err(format!("needs x86-64 Linux; this is {} {}", consts::ARCH, consts::OS));
        }
        match self {
            Self::Lavapipe => {
                packages::ensure(LAVAPIPE, install)?;
                vulkan(Path::new("/usr/share/vulkan/icd.d"), "lvp_icd.x86_64.json")
            }
            Self::NewerLavapipe => {
                let manifest = "/usr/share/vulkan/icd.d/lvp_icd.json";
                Ok(Debian::ensure(install)?.launcher().with("VK_DRIVER_FILES", manifest))
            }
            Self::SwiftShader => {
                packages::ensure(&["libvulkan1"], install)?;
                vulkan(&packages::unpacked("chromium-common", install)?, "vk_swiftshader_icd.json")
            }
            Self::Llvmpipe => {
                packages::ensure(LLVMPIPE, install)?;
                Ok(Launcher::default().with("LIBGL_ALWAYS_SOFTWARE", "1"))
            }
            Self::Angle => angle(install),
        }
    }
}

/// `VK_ICD_FILENAMES` is the variable's older name, and loaders before 1.3.207 know no other.
fn vulkan(folder: &Path, manifest: &str) -> Result<Launcher, String> {
    let path = folder::find(folder, manifest).ok_or_else(|| format!("there is no {manifest}"))?;
    let path = path.to_string_lossy();
    Ok(Launcher::default().with("VK_DRIVER_FILES", &path).with("VK_ICD_FILENAMES", &path))
}

/// ANGLE runs on the Vulkan driver that the loader finds, which is to be the software one.
fn angle(install: bool) -> Result<Launcher, String> {
    packages::ensure(LAVAPIPE, install)?;
    let wheel = packages::wheel("comfy-angle", "manylinux_2_28_x86_64", install)?;
    let egl = folder::find(&wheel, "libEGL.so").ok_or("the package holds no libEGL.so")?;
    let libraries = egl.parent().unwrap_or(&wheel);
    for (link, library) in [("libEGL.so.1", "libEGL.so"), ("libGLESv2.so.2", "libGLESv2.so")] {
        link_to(library, &libraries.join(link))?;
    }
    let lavapipe = vulkan(Path::new("/usr/share/vulkan/icd.d"), "lvp_icd.x86_64.json")?;
    Ok(lavapipe.with("LD_LIBRARY_PATH", &libraries.to_string_lossy()))
}

#[cfg(unix)]
fn link_to(target: &str, link: &Path) -> Result<(), String> {
    if link.exists() {
        return Ok(());
    }
    std::os::unix::fs::symlink(target, link).map_err(|error| format!("{}: {error}", link.display()))
}

#[cfg(not(unix))]
fn link_to(_: &str, link: &Path) -> Result<(), String> {
    Err(format!("{}: links need Unix", link.display()))
}
