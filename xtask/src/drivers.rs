//! Finds out which parts of the software Vulkan and GL drivers, and which libraries, are there, and installs the missing ones where
//! it may.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::shown;

/// One thing that tests load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Loader,
    Lavapipe,
    Layers,
    Egl,
    EglMesa,
    Gles,
    Dri,
    TurboJpeg,
    WebP,
}

const PARTS: [Part; 9] = [
    Part::Loader,
    Part::Lavapipe,
    Part::Layers,
    Part::Egl,
    Part::EglMesa,
    Part::Gles,
    Part::Dri,
    Part::TurboJpeg,
    Part::WebP,
];

/// Where packages come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Platform {
    Debian,
    Fedora,
    Arch,
    OtherLinux,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Loader => "the Vulkan loader (libvulkan.so.1)",
            Self::Lavapipe => "the software Vulkan driver (lavapipe)",
            Self::Layers => "the Vulkan validation layers",
            Self::Egl => "EGL (libEGL.so.1)",
            Self::EglMesa => "Mesa's EGL",
            Self::Gles => "GLES (libGLESv2.so.2)",
            Self::Dri => "the software GL driver (llvmpipe)",
            Self::TurboJpeg => "libjpeg-turbo (libturbojpeg.so.0)",
            Self::WebP => "libwebp (libwebp.so.7)",
        }
    }

    fn package(self, platform: Platform) -> Option<&'static str> {
        let [debian, fedora, arch] = match self {
            Self::Loader => ["libvulkan1", "vulkan-loader", "vulkan-icd-loader"],
            Self::Lavapipe => ["mesa-vulkan-drivers", "mesa-vulkan-drivers", "vulkan-swrast"],
            Self::Layers => ["vulkan-validationlayers", "vulkan-validation-layers", "vulkan-validation-layers"],
            Self::Egl => ["libegl1", "mesa-libEGL", "mesa"],
            Self::EglMesa => ["libegl-mesa0", "mesa-libEGL", "mesa"],
            Self::Gles => ["libgles2", "libglvnd-gles", "mesa"],
            Self::Dri => ["libgl1-mesa-dri", "mesa-dri-drivers", "mesa"],
            Self::TurboJpeg => ["libturbojpeg0", "turbojpeg", "libjpeg-turbo"],
            Self::WebP => ["libwebp7", "libwebp", "libwebp"],
        };
        match platform {
            Platform::Debian => Some(debian),
            Platform::Fedora => Some(fedora),
            Platform::Arch => Some(arch),
            Platform::OtherLinux => None,
        }
    }

    fn is_there(self) -> bool {
        match self {
            Self::Loader => library("libvulkan.so.1"),
            Self::Lavapipe => icds().iter().any(|path| file_name_starts(path, "lvp_icd")),
            Self::Layers => layers_installed(),
            Self::Egl => library("libEGL.so.1"),
            Self::EglMesa => library("libEGL_mesa.so.0"),
            Self::Gles => library("libGLESv2.so.2"),
            Self::Dri => library("libgallium-") || library("dri/swrast_dri.so"),
            Self::TurboJpeg => library("libturbojpeg.so.0"),
            Self::WebP => library("libwebp.so.7"),
        }
    }
}

/// Makes sure of the drivers as far as possible. What stays missing is named; the tests that need it are skipped.
pub fn ensure(install: bool) {
    if !cfg!(target_os = "linux") {
        println!("drivers: {}", system_drivers(env::consts::OS));
        return;
    }
    let missing = missing();
    if missing.is_empty() {
        println!("drivers: software Vulkan and GL, the validation layers and libjpeg-turbo are installed");
        return;
    }
    let platform = platform_of(&fs::read_to_string("/etc/os-release").unwrap_or_default());
    let names = |parts: &[Part]| parts.iter().map(|part| part.name()).collect::<Vec<_>>().join(", ");
    println!("drivers: missing: {}", names(&missing));
    let packages = packages(platform, &missing);
    if install && platform == Platform::Debian {
        install_on_debian(&packages);
    } else {
        println!("drivers: to install: {}", advice(platform, &packages));
    }
    let left = self::missing();
    if !left.is_empty() {
        println!("drivers: going on without {}: tests that need them are skipped", names(&left));
    }
}

/// Whether the Khronos validation layers are installed.
pub fn layers_installed() -> bool {
    let mut dirs = list("VK_LAYER_PATH");
    dirs.extend(vulkan_dirs("explicit_layer.d"));
    dirs.iter().any(|dir| dir.join("VkLayer_khronos_validation.json").is_file())
}

fn missing() -> Vec<Part> {
    PARTS.into_iter().filter(|part| !part.is_there()).collect()
}

/// What runs on systems that bring their own drivers.
fn system_drivers(os: &str) -> &'static str {
    match os {
        "macos" => "Metal is part of the system; nothing to install",
        "windows" => "DirectX 12 and Vulkan come with the GPU's driver; install it if tests are skipped",
        _ => "this platform is not known; tests without a driver are skipped",
    }
}

fn platform_of(os_release: &str) -> Platform {
    let fields = os_release.lines().filter_map(|line| line.split_once('='));
    let ids = fields.filter(|(key, _)| matches!(*key, "ID" | "ID_LIKE"));
    let words = ids.flat_map(|(_, value)| value.trim_matches(['"', '\'']).split_whitespace());
    let known = |id| match id {
        "debian" | "ubuntu" => Some(Platform::Debian),
        "fedora" | "rhel" | "centos" => Some(Platform::Fedora),
        "arch" => Some(Platform::Arch),
        _ => None,
    };
    words.filter_map(known).next().unwrap_or(Platform::OtherLinux)
}

/// The packages that bring the missing parts, each once.
fn packages(platform: Platform, missing: &[Part]) -> Vec<&'static str> {
    let mut packages: Vec<_> = missing.iter().filter_map(|part| part.package(platform)).collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

fn advice(platform: Platform, packages: &[&str]) -> String {
    let packages = packages.join(" ");
    match platform {
        Platform::Debian => format!("apt-get install --no-install-recommends {packages}"),
        Platform::Fedora => format!("dnf install {packages}"),
        Platform::Arch => format!("pacman -S {packages}"),
        Platform::OtherLinux => "Mesa with lavapipe, llvmpipe and EGL, and the Vulkan loader and layers".to_owned(),
    }
}

/// Whether this is Debian or one of its derivatives.
pub fn is_debian() -> bool {
    platform_of(&fs::read_to_string("/etc/os-release").unwrap_or_default()) == Platform::Debian
}

/// Installs, or says why not. A failure is a warning: the suite runs without the drivers too.
pub fn install_on_debian(packages: &[&str]) {
    let Some(prefix) = privileges() else {
        println!("drivers: neither root nor sudo without a password: cannot install");
        println!("drivers: to install: {}", advice(Platform::Debian, packages));
        return;
    };
    println!("installing {} with apt-get", packages.join(" "));
    let install = ["install", "-y", "--no-install-recommends"];
    for args in [&["update"][..], &[&install[..], packages].concat()] {
        let line = [prefix, &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"], args].concat();
        let Some((program, args)) = line.split_first() else { return };
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null());
        println!("{}", shown(&command));
        if !command.status().is_ok_and(|status| status.success()) {
            eprintln!("warning: this failed: {}", shown(&command));
        }
    }
}

/// What to put before a command that needs root; `None` where nothing helps.
fn privileges() -> Option<&'static [&'static str]> {
    let id = Command::new("id").arg("-u").output().ok()?;
    if id.stdout.trim_ascii() == b"0" {
        return Some(&[]);
    }
    let sudo = Command::new("sudo").args(["-n", "true"]).output();
    sudo.is_ok_and(|output| output.status.success()).then_some(&["sudo", "-n"])
}

/// The Vulkan drivers' manifests: those named in the environment, otherwise those in the loader's folders.
fn icds() -> Vec<PathBuf> {
    let named = [list("VK_DRIVER_FILES"), list("VK_ICD_FILENAMES")].concat();
    if named.is_empty() {
        return vulkan_dirs("icd.d").iter().flat_map(|dir| entries(dir)).collect();
    }
    named.into_iter().filter(|path| path.is_file()).collect()
}

fn vulkan_dirs(leaf: &str) -> Vec<PathBuf> {
    let mut dirs = list("XDG_DATA_DIRS");
    dirs.extend(["/usr/local/share", "/usr/share", "/etc"].map(PathBuf::from));
    dirs.into_iter().map(|dir| dir.join("vulkan").join(leaf)).collect()
}

/// Whether a library whose name starts with `name` lies where the dynamic linker looks.
fn library(name: &str) -> bool {
    let mut dirs = list("LD_LIBRARY_PATH");
    dirs.extend(["/usr/local/lib", "/usr/lib64", "/usr/lib", "/lib64", "/lib"].map(PathBuf::from));
    dirs.extend(entries(Path::new("/usr/lib")).into_iter().filter(|dir| dir.to_string_lossy().contains("-linux-gnu")));
    let (folder, name) = name.rsplit_once('/').unwrap_or(("", name));
    dirs.iter().flat_map(|dir| entries(&dir.join(folder))).any(|entry| file_name_starts(&entry, name))
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).map(|all| all.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
}

fn file_name_starts(path: &Path, prefix: &str) -> bool {
    path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with(prefix))
}

/// The paths in a variable such as `PATH`.
fn list(variable: &str) -> Vec<PathBuf> {
    let value = env::var_os(variable).unwrap_or_default();
    env::split_paths(&value).filter(|path| !path.as_os_str().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_are_known_by_what_they_are_like() {
        assert_eq!(platform_of("NAME=\"x\"\nID=debian\n"), Platform::Debian);
        assert_eq!(platform_of("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n"), Platform::Debian);
        assert_eq!(platform_of("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n"), Platform::Fedora);
        assert_eq!(platform_of("ID=manjaro\nID_LIKE=arch\n"), Platform::Arch);
        assert!(["ID=nixos\n", ""].iter().all(|other| platform_of(other) == Platform::OtherLinux));
    }

    #[test]
    fn each_platform_names_its_own_packages_once() {
        assert_eq!(packages(Platform::Debian, &[Part::Lavapipe, Part::Egl]), ["libegl1", "mesa-vulkan-drivers"]);
        assert_eq!(packages(Platform::Fedora, &[Part::Egl, Part::EglMesa]), ["mesa-libEGL"]);
        assert_eq!(packages(Platform::Arch, &[Part::Egl, Part::Dri, Part::Gles]), ["mesa"]);
        assert!(packages(Platform::OtherLinux, &PARTS).is_empty());
    }

    #[test]
    fn advice_is_a_command_where_the_distribution_is_known() {
        assert_eq!(advice(Platform::Fedora, &["a", "b"]), "dnf install a b");
        assert!(advice(Platform::OtherLinux, &[]).contains("lavapipe") && system_drivers("macos").contains("Metal"));
    }
}
