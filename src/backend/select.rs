//! Choosing a device by text. Pure: works on any list of [`AdapterInfo`], whichever backends it comes from.
//!
//! | text | chooses |
//! | --- | --- |
//! | `auto` | the best device: a real GPU before a software driver, `host` only where there is nothing else |
//! | `vulkan`, `gl`, `host` | the best device of this API |
//! | `vulkan:0` | the device with this id |
//! | `0` | the device at this place of the list |
//! | anything else | the device whose name contains it, in any case |

use super::{AdapterInfo, Api, DeviceType};
use crate::error::OpenError;

const APIS: [Api; 6] = [Api::Host, Api::Vulkan, Api::Metal, Api::Dx12, Api::Gl, Api::Cuda];

/// The one API that `wanted` asks for, if it asks for one: then no other needs to be looked at.
#[must_use]
pub fn api_of(wanted: &str) -> Option<Api> {
    let key = wanted.trim().split(':').next()?;
    APIS.into_iter().find(|api| api.key().eq_ignore_ascii_case(key))
}

/// Chooses one device; the [module](self) says how.
///
/// # Errors
/// [`OpenError::NoDevice`] where nothing matches, [`OpenError::Option`] where a name matches several cards. Both list
/// what could have been meant.
pub fn select<'a>(adapters: &'a [AdapterInfo], wanted: &str) -> Result<&'a AdapterInfo, OpenError> {
    let text = wanted.trim();
    if text.eq_ignore_ascii_case("auto") {
        return best(adapters).ok_or_else(|| no_device(wanted, adapters));
    }
    if let Some(api) = api_of(text) {
        let chosen = if text.contains(':') {
            adapters.iter().find(|adapter| adapter.id.eq_ignore_ascii_case(text))
        } else {
            best(adapters.iter().filter(|adapter| adapter.api == api))
        };
        return chosen.ok_or_else(|| no_device(wanted, adapters));
    }
    if let Ok(index) = text.parse::<usize>() {
        match adapters.get(index) {
            Some(adapter) => return Ok(adapter),
            // `4090` is a name, but a mistaken `3` must not choose whatever has a 3 in its name.
            None if text.len() < 3 => return Err(no_device(wanted, adapters)),
            None => {}
        }
    }
    by_name(adapters, wanted)
}

/// The error that nothing matches `wanted`, listing what there is.
#[must_use]
pub fn no_device(wanted: &str, adapters: &[AdapterInfo]) -> OpenError {
    let found = if adapters.is_empty() { "none".to_owned() } else { list(adapters) };
    OpenError::NoDevice { wanted: wanted.to_owned(), found }
}

fn by_name<'a>(adapters: &'a [AdapterInfo], wanted: &str) -> Result<&'a AdapterInfo, OpenError> {
    let part = wanted.trim().to_lowercase();
    let named = |whole: bool| -> Vec<&'a AdapterInfo> {
        let matches = |name: &str| if whole { name == part } else { !part.is_empty() && name.contains(&part) };
        adapters.iter().filter(|adapter| matches(&adapter.name.to_lowercase())).collect()
    };
    // A whole name wins, or a card whose name starts another's could never be chosen by name.
    let whole = named(true);
    let matches = if whole.is_empty() { named(false) } else { whole };
    let Some(best) = best(matches.iter().copied()) else {
        return Err(no_device(wanted, adapters));
    };
    if matches.iter().all(|other| same_card(best, other)) {
        return Ok(best);
    }
    let reason = format!("`{wanted}` matches more than one: {}; use an id", list(matches.iter().copied()));
    Err(OpenError::Option { option: "device", reason })
}

/// Whether two entries are one card behind two APIs (or one entry).
#[must_use]
pub fn same_card(a: &AdapterInfo, b: &AdapterInfo) -> bool {
    match (&a.pci, &b.pci) {
        _ if a.id == b.id => true,
        (Some(a), Some(b)) => a == b,
        // An API lists a card once, so two equal names within it are two cards.
        _ => a.api != b.api && card_name(&a.name) == card_name(&b.name),
    }
}

/// The same adapters, those of one card together; cards and entries keep their order.
///
/// An entry that could be either of two cards (their names are equal, and its driver tells no address) stands alone.
#[must_use]
pub fn cards(adapters: &[AdapterInfo]) -> Vec<Vec<&AdapterInfo>> {
    let mut cards: Vec<Vec<&AdapterInfo>> = Vec::new();
    for adapter in adapters {
        let fits = |card: &Vec<&AdapterInfo>| card.iter().all(|entry| same_card(entry, adapter));
        let mut fitting = cards.iter_mut().filter(|card| fits(card));
        match (fitting.next(), fitting.next()) {
            (Some(card), None) => card.push(adapter),
            _ => cards.push(vec![adapter]),
        }
    }
    cards
}

/// The part of a name that drivers of different APIs agree on: `NVIDIA H200` of `NVIDIA H200/PCIe/SSE2`.
fn card_name(name: &str) -> &str {
    let name = name.strip_prefix("Mesa ").unwrap_or(name);
    let end = [name.find('/'), name.find(" (")].into_iter().flatten().min();
    end.and_then(|end| name.get(..end)).unwrap_or(name)
}

/// The best device; the earlier one of equals.
fn best<'a>(adapters: impl IntoIterator<Item = &'a AdapterInfo>) -> Option<&'a AdapterInfo> {
    adapters.into_iter().min_by_key(|adapter| rank(adapter))
}

fn rank(adapter: &AdapterInfo) -> (u8, u8) {
    let device = match adapter.device_type {
        _ if adapter.api == Api::Host => 5,
        DeviceType::Discrete => 0,
        DeviceType::Integrated => 1,
        DeviceType::Virtual => 2,
        DeviceType::Other => 3,
        DeviceType::Software => 4,
    };
    // GL emulates what the others have: mapping, waiting for a submission.
    (device, u8::from(adapter.api == Api::Gl))
}

fn list<'a>(adapters: impl IntoIterator<Item = &'a AdapterInfo>) -> String {
    let names: Vec<String> = adapters.into_iter().map(|a| format!("{} {}", a.id, a.name)).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapter(id: &str, name: &str, device_type: DeviceType, pci: Option<&str>) -> AdapterInfo {
        AdapterInfo {
            id: id.to_owned(),
            api: api_of(id).expect("an id starts with its API"),
            name: name.to_owned(),
            driver: String::new(),
            driver_info: String::new(),
            device_type,
            vendor: 0,
            device: 0,
            pci: pci.map(str::to_owned),
            memory: None,
            limits: Vec::new(),
            strategies: Vec::new(),
        }
    }

    fn workstation() -> Vec<AdapterInfo> {
        vec![
            adapter("vulkan:0", "llvmpipe (LLVM 15)", DeviceType::Software, None),
            adapter("vulkan:1", "Intel(R) Arc(TM) A770 (DG2)", DeviceType::Integrated, Some("0000:00:02.0")),
            adapter("vulkan:2", "NVIDIA RTX 4090", DeviceType::Discrete, Some("0000:01:00.0")),
            adapter("gl:0", "NVIDIA RTX 4090/PCIe/SSE2", DeviceType::Discrete, None),
            adapter("host", "host memory", DeviceType::Other, None),
        ]
    }

    fn choose(adapters: &[AdapterInfo], wanted: &str) -> Result<String, String> {
        select(adapters, wanted).map(|a| a.id.clone()).map_err(|e| e.to_string())
    }

    #[test]
    fn auto_takes_the_best_real_device_and_host_last() {
        let mut all = workstation();
        all.reverse();
        assert_eq!(choose(&all, "auto").as_deref(), Ok("vulkan:2"));
        all.retain(|a| a.device_type != DeviceType::Discrete);
        assert_eq!(choose(&all, " Auto ").as_deref(), Ok("vulkan:1"));
        all.retain(|a| a.pci.is_none());
        assert_eq!(choose(&all, "auto").as_deref(), Ok("vulkan:0"));
        all.retain(|a| a.api == Api::Host);
        assert_eq!(choose(&all, "auto").as_deref(), Ok("host"));
        assert_eq!(choose(&[], "auto"), Err("no device matches `auto`; found: none".to_owned()));
    }

    #[test]
    fn apis_ids_and_places_choose() {
        let all = workstation();
        let chosen =
            [("vulkan", "vulkan:2"), ("VULKAN:0", "vulkan:0"), ("gl", "gl:0"), ("host", "host"), ("1", "vulkan:1")];
        for (wanted, id) in chosen {
            assert_eq!(choose(&all, wanted).as_deref(), Ok(id), "{wanted}");
        }
    }

    #[test]
    fn what_is_not_there_is_answered_with_what_is() {
        for wanted in ["metal", "vulkan:7", "cuda:0", "9", "voodoo", ""] {
            let error = select(&workstation(), wanted).expect_err("nothing matches");
            assert!(matches!(error, OpenError::NoDevice { .. }), "{error}");
            let error = error.to_string();
            assert!(error.contains("vulkan:2 NVIDIA RTX 4090, gl:0 NVIDIA"), "{error}");
        }
    }

    #[test]
    fn a_part_of_a_name_chooses_one_card_through_its_best_api() {
        let mut all = workstation();
        all.reverse();
        for (wanted, id) in
            [("rtx", "vulkan:2"), ("4090", "vulkan:2"), ("arc(tm)", "vulkan:1"), ("LLVMpipe", "vulkan:0")]
        {
            assert_eq!(choose(&all, wanted).as_deref(), Ok(id), "{wanted}");
        }
        all.push(adapter("vulkan:3", "NVIDIA RTX 4090 D", DeviceType::Discrete, Some("0000:02:00.0")));
        assert_eq!(choose(&all, "nvidia rtx 4090 d").as_deref(), Ok("vulkan:3"));
        assert_eq!(choose(&all, "NVIDIA RTX 4090").as_deref(), Ok("vulkan:2"));
    }

    #[test]
    fn the_apis_of_one_card_are_together() {
        let ids = |all: &[AdapterInfo]| -> Vec<Vec<String>> {
            cards(all).into_iter().map(|card| card.into_iter().map(|a| a.id.clone()).collect()).collect()
        };
        let mut all = workstation();
        assert_eq!(ids(&all), [vec!["vulkan:0"], vec!["vulkan:1"], vec!["vulkan:2", "gl:0"], vec!["host"]]);
        all.insert(3, adapter("vulkan:3", "NVIDIA RTX 4090", DeviceType::Discrete, Some("0000:02:00.0")));
        let apart =
            [vec!["vulkan:0"], vec!["vulkan:1"], vec!["vulkan:2"], vec!["vulkan:3"], vec!["gl:0"], vec!["host"]];
        assert_eq!(ids(&all), apart, "gl:0 could be either card");
    }

    #[test]
    fn two_cards_of_one_name_are_ambiguous_and_one_address_is_one_card() {
        let mut all = vec![
            adapter("vulkan:0", "NVIDIA H200", DeviceType::Discrete, Some("0000:01:00.0")),
            adapter("vulkan:1", "NVIDIA H200", DeviceType::Discrete, Some("0000:02:00.0")),
        ];
        let error = choose(&all, "h200").expect_err("two cards");
        assert!(error.contains("vulkan:0 NVIDIA H200, vulkan:1 NVIDIA H200"), "{error}");
        all.pop();
        all.push(adapter("cuda:0", "H200 SXM", DeviceType::Discrete, Some("0000:01:00.0")));
        assert_eq!(choose(&all, "h200").as_deref(), Ok("vulkan:0"));
    }
}
