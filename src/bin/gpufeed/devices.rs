//! `gpufeed devices`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use comfy_table::CellAlignment;
use gpufeed::backend::select;
use gpufeed::{AdapterInfo, Api, DeviceType, Strategy};

use crate::{output, units};

/// The fields are those of [`AdapterInfo`].
const JSON_HELP: &str = "\
JSON: an array of cards, each an array of the APIs it is reached through. The fields of each entry:
  id           what --device takes, as in `vulkan:0`
  api          host, vulkan, metal, dx12, gl or cuda
  name         the device's name
  driver       the driver's name
  driver_info  the driver's version, as it reports it
  device_type  discrete, integrated, virtual, software or other
  vendor       PCI vendor, 0 if there is none
  device       PCI device, 0 if there is none
  pci          PCI address, or null if the driver does not report it
  memory       bytes of the device's memory (software: the host's), or null if not known
  limits       array of [name, bytes or count]
  strategies   array of {strategy, missing, memory}: why it cannot run, or null if it can;
               and the memory it is predicted to use, or null if not known";

#[derive(Debug, Args)]
#[command(after_long_help = JSON_HELP)]
pub struct DevicesArgs {
    /// Print JSON (fields: see --help)
    #[arg(long)]
    json: bool,
}

/// Lists what there is. No device is opened.
pub fn devices(args: &DevicesArgs) -> Result<ExitCode> {
    let found = gpufeed::devices();
    let cards = select::cards(&found);
    if args.json {
        output::print_json(&cards)?;
    } else {
        for card in &cards {
            output::print(format_args!("{}\n{}\n", title(card), table(card)))?;
        }
        output::print(format_args!("Strategies\n{}", legend()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What kind of device it is, in a word.
pub fn kind(info: &AdapterInfo) -> &'static str {
    match info.device_type {
        _ if info.api == Api::Host => "no GPU",
        DeviceType::Discrete => "discrete GPU",
        DeviceType::Integrated => "integrated GPU",
        DeviceType::Virtual => "virtual GPU",
        DeviceType::Software => "software, computes on the CPU",
        _ => "type not known",
    }
}

/// The card itself. Its APIs need not agree on its type and memory, so the first that knows is asked.
fn title(card: &[&AdapterInfo]) -> String {
    let Some(first) = card.first() else { return String::new() };
    let memory =
        card.iter().find_map(|entry| entry.memory).map(|memory| format!(", {} of memory", units::bytes(memory)));
    let pci = card.iter().find_map(|entry| entry.pci.as_ref()).map(|pci| format!(", PCI {pci}"));
    format!("{}: {}{}{}", first.name, kind(first), memory.unwrap_or_default(), pci.unwrap_or_default())
}

/// One column for each API of the card.
fn table(card: &[&AdapterInfo]) -> String {
    let header: Vec<&str> = std::iter::once("").chain(card.iter().map(|entry| entry.id.as_str())).collect();
    let row = |name: &str, cell: &dyn Fn(&AdapterInfo) -> String| -> Vec<String> {
        std::iter::once(name.to_owned()).chain(card.iter().map(|entry| cell(entry))).collect()
    };
    let mut rows = vec![row("driver", &driver)];
    for name in limit_names(card) {
        rows.push(row(name, &|entry| limit(entry, name)));
    }
    for strategy in
        Strategy::ALL.iter().copied().filter(|&strategy| card.iter().any(|e| support(e, strategy).is_some()))
    {
        rows.push(row(strategy.key(), &|entry| support(entry, strategy).unwrap_or_default()));
    }
    output::table(&header, CellAlignment::Left, rows)
}

fn driver(entry: &AdapterInfo) -> String {
    let parts = [entry.driver.as_str(), entry.driver_info.as_str()];
    let known: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    if known.is_empty() { "not known".to_owned() } else { known.join(", ") }
}

fn limit_names<'a>(card: &[&'a AdapterInfo]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in card.iter().flat_map(|entry| &entry.limits) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

fn limit(entry: &AdapterInfo, name: &str) -> String {
    match entry.limits.iter().find(|(limit, _)| limit == name) {
        Some(&(_, value)) if name.ends_with("_size") || name.ends_with("_alignment") => units::bytes(value),
        Some(&(_, value)) => value.to_string(),
        None => String::new(),
    }
}

/// Whether the strategy runs here; `None` where the backend does not know it.
fn support(entry: &AdapterInfo, strategy: Strategy) -> Option<String> {
    let known = entry.strategies.iter().find(|known| known.strategy == strategy)?;
    if let Some(reason) = &known.missing {
        return Some(format!("no: {reason}"));
    }
    let told = known
        .memory
        .iter()
        .map(|memory| format!(", {memory}"))
        .chain(known.queues.iter().map(|queues| format!("; {queues}")));
    Some(std::iter::once("available".to_owned()).chain(told).collect())
}

fn legend() -> String {
    let rows = Strategy::ALL.iter().map(|strategy| vec![strategy.key().to_owned(), strategy.describe().to_owned()]);
    output::table(&[], CellAlignment::Left, rows)
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::testing::{adapter, support};

    #[test]
    fn a_card_shows_each_api_and_why_a_strategy_cannot_run() {
        let strategies = vec![
            support(Strategy::MappedRing, None, Some("type 4")),
            support(Strategy::DirectMap, Some("it lacks a feature"), None),
        ];
        let vulkan = adapter(|adapter| {
            (adapter.id, adapter.api, adapter.name) = ("vulkan:0".to_owned(), Api::Vulkan, "llvmpipe".to_owned());
            (adapter.memory, adapter.strategies) = (Some(3 << 30), strategies);
            adapter.limits = vec![("max_buffer_size".to_owned(), 1 << 31), ("max_things".to_owned(), 7)];
        });
        let mut gl = vulkan.clone();
        (gl.id, gl.api, gl.limits) = ("gl:0".to_owned(), Api::Gl, Vec::new());
        let card = [&vulkan, &gl];
        assert_eq!(title(&card), "llvmpipe: software, computes on the CPU, 3.00 GiB of memory");
        let text = table(&card);
        for part in
            ["vulkan:0", "gl:0", "2.00 GiB", "max_things", "mapped-ring", "available, type 4", "no: it lacks a feature"]
        {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        assert!(!text.contains("memcpy"), "{text}");
    }
}
