//! Reports hold nothing personal: paths, and the names of users and machines, are taken out before they are written. Pure, but for what
//! is personal here.

use std::path::{MAIN_SEPARATOR, Path};
use std::{env, fs};

use gpufeed::measure::report::{DeviceReport, DeviceStatus, Report, Status};

/// A name that is shorter is left: it would be found within words.
const SHORTEST: usize = 3;

/// What is personal, and what stands in its place.
pub struct Personal(Vec<(String, &'static str)>);

impl Personal {
    /// Of whoever runs this here, with the folder of the data.
    pub fn here(data: Option<&Path>) -> Self {
        let text = |path: &Path| path.to_string_lossy().trim_end_matches(MAIN_SEPARATOR).to_owned();
        let folder = data.and_then(|path| fs::canonicalize(path).ok()).and_then(|path| Some(text(path.parent()?)));
        let given = data.and_then(Path::parent).map(text);
        let home = env::var_os("HOME").or_else(|| env::var_os("USERPROFILE")).map(|path| text(Path::new(&path)));
        let current = env::current_dir().ok().map(|path| text(&path));
        let user = ["USER", "USERNAME", "LOGNAME"].iter().find_map(|name| env::var(name).ok());
        let host = fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| env::var("COMPUTERNAME").ok());
        let host = host.map(|name| name.trim().to_owned());
        let all =
            [(folder, "(data)"), (given, "(data)"), (current, "."), (home, "~"), (user, "(user)"), (host, "(host)")];
        let mut all: Vec<_> = all.into_iter().filter_map(|(text, instead)| Some((text?, instead))).collect();
        all.retain(|(text, _)| text.chars().count() >= SHORTEST);
        // Folders before those they are in.
        all.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        Self(all)
    }

    /// A report without it. What has a fixed set of values, and what drivers call themselves, is left as it is.
    pub fn scrub(&self, report: &Report) -> Report {
        let mut clean = report.clone();
        clean.command.iter_mut().for_each(|argument| *argument = without_folders(argument));
        let DeviceTexts(texts) = DeviceTexts::of(&mut clean.devices);
        clean.command.iter_mut().chain([&mut clean.data.name]).chain(texts).for_each(|text| self.scrub_text(text));
        clean
    }

    fn scrub_text(&self, text: &mut String) {
        for (personal, instead) in &self.0 {
            *text = replace_words(text, personal, instead);
        }
    }
}

/// Every text of devices that an error may have written.
struct DeviceTexts<'a>(Vec<&'a mut String>);

impl<'a> DeviceTexts<'a> {
    fn of(devices: &'a mut [DeviceReport]) -> Self {
        let mut texts = Vec::new();
        for device in devices {
            match &mut device.status {
                DeviceStatus::Crashed { message } | DeviceStatus::Error { message } => texts.push(message),
                _ => {}
            }
            texts.extend(device.kernel_ceiling_error.as_mut());
            texts.extend(device.ceilings.iter_mut().filter_map(|ceilings| ceilings.device_copy_error.as_mut()));
            for row in &mut device.configurations {
                match &mut row.status {
                    Status::Failed { message, .. } | Status::Unsupported { reason: message } => texts.push(message),
                    _ => {}
                }
                texts.extend(row.doubts.iter_mut());
            }
        }
        Self(texts)
    }
}

/// Replaces a text where it is no part of a longer word.
fn replace_words(text: &str, from: &str, to: &str) -> String {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '-');
    let (mut out, mut rest, mut before) = (String::new(), text, None);
    while let Some(start) = rest.find(from) {
        let (head, found) = rest.split_at(start);
        let (found, tail) = found.split_at(from.len());
        let whole = !is_word(head.chars().last().or(before)) && !is_word(tail.chars().next());
        out.push_str(head);
        out.push_str(if whole { to } else { found });
        (rest, before) = (tail, from.chars().last());
    }
    out.push_str(rest);
    out
}

/// An argument with the last part of each path in it: `--json=/home/a/b.json` as `--json=b.json`.
fn without_folders(argument: &str) -> String {
    let (option, value) = match argument.split_once('=') {
        Some((option, value)) if option.starts_with('-') => (format!("{option}="), value),
        _ => (String::new(), argument),
    };
    let is_path = value.contains(['/', '\\']);
    let name =
        Path::new(value).file_name().map_or_else(|| value.to_owned(), |name| name.to_string_lossy().into_owned());
    if is_path { format!("{option}{name}") } else { argument.to_owned() }
}

#[cfg(test)]
mod tests {
    use gpufeed::Strategy;

    use super::*;
    use crate::compare::testing::{device, report};

    #[test]
    fn folders_users_and_machines_are_taken_out_of_every_text() {
        let mut found = report(vec![device("vulkan:0", &[(Strategy::MappedRing, 8, 100.0)])]);
        found.command = ["/home/anna/bin/gpufeed", "compare", "/data/anna/x.npy", "--json=/tmp/a.json", "vulkan:0"]
            .map(str::to_owned)
            .to_vec();
        let message = "/data/anna/x.npy on box7: anna may not read it, Joanna may".to_owned();
        found.devices[0].configurations[0].status = Status::Failed { message, wrong_data: false };
        let names = [("/data/anna", "(data)"), ("/home/anna", "~"), ("anna", "(user)"), ("box7", "(host)")];
        let clean = Personal(names.map(|(text, instead)| (text.to_owned(), instead)).to_vec()).scrub(&found);
        assert_eq!(clean.command, ["gpufeed", "compare", "x.npy", "--json=a.json", "vulkan:0"]);
        let Status::Failed { message, .. } = &clean.devices[0].configurations[0].status else { panic!("{clean:?}") };
        assert_eq!(message, "(data)/x.npy on (host): (user) may not read it, Joanna may");
        assert_eq!(clean.devices[0].configurations[0].rounds, found.devices[0].configurations[0].rounds);
    }
}
