//! The platforms that there are.

use super::cross::{self, Target};
use super::drivers::Driver;

/// A platform to run or to check.
#[derive(Debug, Clone, Copy)]
pub struct Platform {
    pub key: &'static str,
    pub what: &'static str,
    pub kind: Kind,
}

/// How a platform is reached.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// The first adapter of an API, as this system has it.
    Own { api: &'static str },
    /// A software driver on Linux.
    Software { api: &'static str, driver: Driver },
    /// Windows programs under Wine.
    Wine { api: &'static str },
    /// Type-checked only.
    Check(&'static Target),
    /// Code is generated too, and not run.
    Generate(&'static Target),
}

const fn platform(key: &'static str, what: &'static str, kind: Kind) -> Platform {
    Platform { key, what, kind }
}

pub const PLATFORMS: &[Platform] = &[
    platform("vulkan", "Vulkan on this system's own driver", Kind::Own { api: "vulkan" }),
    platform("metal", "Metal on this system's own driver", Kind::Own { api: "metal" }),
    platform("dx12", "DX12 on this system's own driver", Kind::Own { api: "dx12" }),
    platform("gl", "GL on this system's own driver", Kind::Own { api: "gl" }),
    platform("lavapipe", "Vulkan on this system's lavapipe", software("vulkan", Driver::Lavapipe)),
    platform("lavapipe-25", "Vulkan on the lavapipe of Debian 13", software("vulkan", Driver::NewerLavapipe)),
    platform("swiftshader", "Vulkan on SwiftShader", software("vulkan", Driver::SwiftShader)),
    platform("llvmpipe", "GL on this system's llvmpipe", software("gl", Driver::Llvmpipe)),
    platform("angle", "GLES on ANGLE", software("gl", Driver::Angle)),
    platform("windows-vulkan", "Windows under Wine, Vulkan", Kind::Wine { api: "vulkan" }),
    platform("windows-gl", "Windows under Wine, GL", Kind::Wine { api: "gl" }),
    platform("windows-dx12", "Windows under Wine, DX12", Kind::Wine { api: "dx12" }),
    platform("check-macos", "aarch64-apple-darwin, type-checked", Kind::Check(&cross::MACOS)),
    platform("check-msvc", "x86_64-pc-windows-msvc, type-checked", Kind::Check(&cross::MSVC)),
    platform("check-arm", "aarch64-unknown-linux-gnu, type-checked", Kind::Check(&cross::ARM)),
    platform("check-wasm", "wasm32-unknown-unknown, type-checked", Kind::Check(&cross::WASM)),
    platform("build-macos", "aarch64-apple-darwin, code generated", Kind::Generate(&cross::MACOS)),
    platform("build-msvc", "x86_64-pc-windows-msvc, code generated", Kind::Generate(&cross::MSVC)),
    platform("build-arm", "aarch64-unknown-linux-gnu, code generated", Kind::Generate(&cross::ARM)),
];

const fn software(api: &'static str, driver: Driver) -> Kind {
    Kind::Software { api, driver }
}

impl Platform {
    /// Whether it is run where nothing is asked for: on Linux the software drivers, which are the same everywhere, elsewhere what the system
    /// has.
    fn is_default(&self) -> bool {
        matches!(self.kind, Kind::Own { .. }) != cfg!(target_os = "linux")
    }
}

/// The platforms with these keys, or the default ones, in the catalogue's order.
pub fn choose(only: &[String]) -> Result<Vec<Platform>, String> {
    if let Some(unknown) = only.iter().find(|key| PLATFORMS.iter().all(|platform| platform.key != **key)) {
        return Err(format!("there is no platform `{unknown}`: see --list"));
    }
    let chosen = |platform: &&Platform| match only {
        [] => platform.is_default(),
        keys => keys.iter().any(|key| key == platform.key),
    };
    Ok(PLATFORMS.iter().filter(chosen).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(only: &[&str]) -> Result<Vec<&'static str>, String> {
        let only: Vec<String> = only.iter().map(|&key| key.to_owned()).collect();
        choose(&only).map(|chosen| chosen.iter().map(|platform| platform.key).collect())
    }

    #[test]
    fn every_platform_has_a_name_of_its_own() {
        let mut names: Vec<_> = PLATFORMS.iter().map(|platform| platform.key).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PLATFORMS.len());
    }

    #[test]
    fn platforms_come_in_the_order_of_the_list_and_unknown_ones_are_named() {
        assert_eq!(keys(&["windows-dx12", "lavapipe"]), Ok(vec!["lavapipe", "windows-dx12"]));
        assert!(keys(&["dx13"]).is_err_and(|problem| problem.contains("dx13")));
        assert!(!keys(&[]).expect("valid").is_empty());
    }
}
