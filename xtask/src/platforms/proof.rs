//! What is run on a platform: the contract suite, the kernels and shaders, the command, a short comparison.

use serde_json::Value;

use super::launcher::Launcher;
use super::outcome::Outcome;
use super::programs::Programs;
use super::{folder, modules, step};

/// A comparison that ends soon: what it delivers is verified, and how fast is not the point here.
const COMPARE: &[&str] = &["--time", "4", "--size", "32x32", "--batch-size", "16", "--workers", "2"];

/// Runs it all on the first device of an API, if there is one.
pub fn on(platform: &str, api: &str, launcher: Launcher, programs: &Programs) -> Outcome {
    let launcher = launcher.with("WGPU_BACKEND", api);
    let id = format!("{api}:0");
    let driver = match device(&launcher, programs, &id) {
        Ok(Some(driver)) => driver,
        Ok(None) => return Outcome::NotReachable { reason: format!("`gpufeed devices` lists no {id}") },
        Err(reason) => return Outcome::Failed { reason },
    };
    println!("  {driver}");
    let of_the_api = format!("{api}::");
    let mut tally = if launcher.has_one_thread() {
        modules::tests(&launcher, &programs.contract, &of_the_api, platform, "contract")
    } else {
        step::tests(&mut launcher.tests(&programs.contract, &[&of_the_api]), platform, "contract")
    };
    for (name, program, filter) in [
        ("kernels", &programs.library, &["backend::wgpu"][..]),
        ("shaders", &programs.shaders, &[]),
        ("command", &programs.cli, &[]),
    ] {
        tally.add(step::tests(&mut launcher.tests(program, filter), platform, name));
    }
    let json = folder::at("logs").join(format!("{platform}-compare.json"));
    let mut compare = launcher.command(&programs.gpufeed);
    compare.args(["compare", "--device", &id]).args(COMPARE).arg("--json").arg(json);
    tally.add(step::whole(&mut compare, platform, "compare"));
    Outcome::Ran { driver, tally }
}

/// The driver's name where the device is there.
fn device(launcher: &Launcher, programs: &Programs, id: &str) -> Result<Option<String>, String> {
    let output = launcher.command(&programs.gpufeed).args(["devices", "--json"]).output();
    let output = output.map_err(|error| format!("`gpufeed devices` cannot be run: {error}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`gpufeed devices` ended with {}: {}", output.status, errors.trim()));
    }
    let cards: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("`gpufeed devices`: {error}"))?;
    let driver = driver_of(&cards, id);
    Ok(if launcher.has_one_thread() { driver.map(|own| under_wine(own, id, &cards)) } else { driver })
}

fn driver_of(cards: &Value, id: &str) -> Option<String> {
    let mut entries = cards.as_array()?.iter().filter_map(Value::as_array).flatten();
    let entry = entries.find(|entry| entry.get("id").and_then(Value::as_str) == Some(id))?;
    let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default().trim();
    let words = [text("name"), text("driver"), text("driver_info")];
    Some(words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", "))
}

/// Wine makes up a card for DX12, which it runs on its Vulkan.
fn under_wine(own: String, id: &str, cards: &Value) -> String {
    match driver_of(cards, "vulkan:0") {
        Some(vulkan) if id.starts_with("dx12") => format!("Wine's DX12 over {vulkan}"),
        _ => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_found_on_whichever_card_it_is() {
        let cards =
            r#"[[{"id":"host"}],[{"id":"gl:0"},{"id":"dx12:0","name":"WARP","driver":"","driver_info":"1.2"}]]"#;
        let cards = serde_json::from_str(cards).expect("JSON");
        assert_eq!(driver_of(&cards, "dx12:0").as_deref(), Some("WARP, 1.2"));
        assert_eq!(driver_of(&cards, "metal:0"), None);
    }

    #[test]
    fn the_card_that_wine_makes_up_is_not_named() {
        let cards = r#"[[{"id":"vulkan:0","name":"llvmpipe","driver":"Mesa"},{"id":"gl:0","name":"Mesa"}],[{"id":"dx12:0","name":"GeForce"}]]"#;
        let cards = serde_json::from_str(cards).expect("JSON");
        let named = |id: &str| under_wine(driver_of(&cards, id).expect("listed"), id, &cards);
        assert_eq!(named("dx12:0"), "Wine's DX12 over llvmpipe, Mesa");
        assert_eq!(named("gl:0"), "Mesa");
    }
}
