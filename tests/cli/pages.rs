//! `gpufeed report` and `compare --html`: pages, their figures, and what they must not hold.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpufeed::measure::report::Report;
use gpufeed::source::{NpyType, write_npy};
use serde_json::{Value, json};

use crate::support::{Ran, run, skip};

/// Two batch sizes on the host, as JSON and as a page, from data in a folder with a telling name.
fn compared(folder: &Path) -> (String, String) {
    let data = folder.join("secret-project").join("points.npy");
    fs::create_dir(data.parent().expect("a folder")).expect("made");
    write_npy(&data, NpyType::U8, &[40, 6, 6, 3], &[7; 40 * 6 * 6 * 3]).expect("written");
    let path = |name: &str| folder.join(name).to_str().expect("UTF-8").to_owned();
    let (json, html) = (path("a.json"), path("a.html"));
    let data = data.to_str().expect("UTF-8");
    let args =
        ["compare", data, "--device", "host", "--time", "1", "--sweep", "batch=2,8", "--json", &json, "--html", &html];
    run(&args).ended_with(0);
    (json, html)
}

/// The figures in a page, row by row.
fn figures_of(page: &str) -> Vec<BTreeMap<String, Option<f64>>> {
    let attribute = |cell: &str, name: &str| -> Option<String> {
        Some(cell.split(&format!("{name}=\"")).nth(1)?.split('"').next()?.to_owned())
    };
    let rows = page.split("<tr>").filter(|row| row.contains("data-keys"));
    let cells = |row: &str| -> BTreeMap<String, Option<f64>> {
        let cells =
            row.split("<td ").filter_map(|cell| Some((attribute(cell, "data-keys")?, attribute(cell, "data-values")?)));
        let pairs = cells.flat_map(|(keys, values)| {
            let values: Vec<Option<f64>> =
                values.split(' ').map(|value| serde_json::from_str(value).expect("a number")).collect();
            keys.split(' ').map(str::to_owned).zip(values).collect::<Vec<_>>()
        });
        pairs.collect()
    };
    rows.map(cells).collect()
}

fn figures_in(json: &str) -> Vec<BTreeMap<String, Option<f64>>> {
    let report: Value = serde_json::from_str(&fs::read_to_string(json).expect("written")).expect("JSON");
    let rows = report["devices"].as_array().expect("devices").iter().flat_map(|device| {
        device["configurations"]
            .as_array()
            .expect("rows")
            .iter()
            .filter(|row| row["status"]["state"] == "measured")
            .cloned()
    });
    rows.map(|row| serde_json::from_value(row["figures"].clone()).expect("figures")).collect()
}

#[test]
fn a_merged_page_has_the_figures_of_every_file_and_no_file_has_a_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let (json, html) = compared(folder.path());
    let text = fs::read_to_string(&json).expect("written");
    assert!(!text.contains("secret-project") && text.contains("points.npy"), "{text}");
    assert_eq!(figures_of(&fs::read_to_string(&html).expect("written")), figures_in(&json));
    let other = folder.path().join("b.json");
    fs::copy(&json, &other).expect("copied");
    let (page, tables) = (folder.path().join("page.html"), folder.path().join("page.md"));
    let (page, tables) = (page.to_str().expect("UTF-8"), tables.to_str().expect("UTF-8"));
    let told = run(&["report", &json, other.to_str().expect("UTF-8"), "--html", page, "--markdown", tables])
        .ended_with(0)
        .on_one_line();
    assert!(told.contains("a.json tells:") && told.contains("No host name, user name or path."), "{told}");
    let both = [figures_in(&json), figures_in(&json)].concat();
    assert_eq!(figures_of(&fs::read_to_string(page).expect("written")), both);
    let tables = fs::read_to_string(tables).expect("written");
    assert!(tables.contains("| none | host |") && tables.contains("b.json"), "{tables}");
}

#[test]
fn other_versions_are_refused_by_name_and_something_must_be_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let old = folder.path().join("old.json");
    fs::write(&old, r#"{"schema": "gpufeed-compare/1"}"#).expect("written");
    let page = folder.path().join("page.html");
    let (old, page) = (old.to_str().expect("UTF-8"), page.to_str().expect("UTF-8"));
    let refused = run(&["report", old, "--html", page]).ended_with(1).stderr;
    assert!(refused.contains("old.json") && refused.contains("gpufeed-compare/1"), "{refused}");
    assert!(!Path::new(page).exists());
    run(&["report", old]).ended_with(2);
    run(&["report", "--html", page]).ended_with(2);
}

/// The results that were sent in, with their names.
fn reports_of_this_repository() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports");
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
    let mut files: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|end| end == "json")).collect();
    files.sort();
    files
}

#[test]
fn the_reports_of_this_repository_make_a_page_and_its_readme_says_who_is_missing() {
    const TEST: &str = "the_reports_of_this_repository_make_a_page_and_its_readme_says_who_is_missing";
    let files = reports_of_this_repository();
    if files.is_empty() {
        return skip(TEST, "they are not part of the package");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (page, tables) = (path("page.html"), path("page.md"));
    let reports = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports");
    let args = ["report", reports.to_str().expect("UTF-8"), "--html", &page, "--markdown", &tables];
    let told = run(&args).ended_with(0).on_one_line();
    assert!(!told.contains("HOLDS PATHS"), "{told}");
    let (page, tables) = (fs::read_to_string(page).expect("written"), fs::read_to_string(tables).expect("written"));
    assert!(!page.contains("debug build"), "a debug build is no result");
    let missing = tables.lines().find(|line| line.starts_with("Nobody has sent")).unwrap_or_default();
    let readme = fs::read_to_string(reports.join("README.md")).expect("it is there");
    assert!(readme.contains(missing), "reports/README.md should say: {missing}");
    let of = |file: &PathBuf| figures_in(file.to_str().expect("UTF-8"));
    assert_eq!(figures_of(&page), files.iter().flat_map(of).collect::<Vec<_>>(), "the figures are the files'");
    for file in files {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(page.contains(&name) && readme.contains(&name), "{name} is on the page and in the README");
    }
}

#[test]
fn a_browser_shows_the_page_without_a_complaint() {
    const TEST: &str = "a_browser_shows_the_page_without_a_complaint";
    let folder = tempfile::tempdir().expect("a folder");
    let (json, html) = compared(folder.path());
    let browser = ["chromium", "chromium-browser", "google-chrome"];
    let found =
        browser.iter().find(|name| Command::new(name).arg("--version").output().is_ok_and(|ran| ran.status.success()));
    let Some(found) = found else { return skip(TEST, "there is no chromium") };
    let profile = format!("--user-data-dir={}", folder.path().join("profile").display());
    let args = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom", &profile];
    let ran = Command::new(found).args(args).arg(format!("file://{html}")).output().expect("it runs");
    let (dom, log) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    if dom.is_empty() {
        return skip(TEST, &format!("it does not start here: {}", log.lines().last().unwrap_or_default()));
    }
    assert!(!log.contains("CONSOLE"), "{log}");
    assert_eq!(figures_of(&dom), figures_in(&json), "{dom}");
    assert!(dom.matches("<svg").count() >= 4 && dom.contains("role=\"img\""), "{dom}");
}

/// A report whose rates are those of the file, times a factor.
fn scaled(json: &str, factor: f64, driver: &str) -> String {
    let mut report: Value = serde_json::from_str(&fs::read_to_string(json).expect("written")).expect("JSON");
    for row in report["devices"][0]["configurations"].as_array_mut().expect("rows") {
        // As many as a slow machine may not have made.
        let rounds = row["rounds"].as_array().expect("rounds").clone();
        row["rounds"] = rounds.iter().cycle().take(6 * rounds.len()).cloned().collect::<Vec<_>>().into();
        for round in row["rounds"].as_array_mut().expect("rounds") {
            round["samples_s"] = json!(round["samples_s"].as_f64().expect("a rate") * factor);
        }
    }
    report["devices"][0]["adapter"]["driver"] = driver.into();
    serde_json::from_value::<Report>(report.clone()).expect("still a report");
    report.to_string()
}

#[test]
fn a_build_is_held_against_a_report_and_another_driver_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (json, _) = compared(folder.path());
    let data = folder.path().join("secret-project/points.npy");
    let baseline = folder.path().join("baseline.json");
    let gate = |text: &str, more: &[&str]| -> Ran {
        fs::write(&baseline, text).expect("written");
        let data = data.to_str().expect("UTF-8");
        let args = ["compare", data, "--device", "host", "--time", "3", "--batch-size", "8", "--baseline"];
        run(&[&args[..], &[baseline.to_str().expect("UTF-8")], more].concat())
    };
    // However slow the machine has become: a hundredth of the rate, and a hundred times of it.
    let passes = gate(&scaled(&json, 0.01, "none"), &[]).ended_with(0).stdout;
    assert!(passes.contains("passes:") && passes.contains("at least 0.970 is allowed"), "{passes}");
    let slow = gate(&scaled(&json, 100.0, "none"), &["--max-slowdown", "50%"]).ended_with(1).stdout;
    assert!(slow.contains("TOO SLOW:") && slow.contains("at least 0.500 is allowed"), "{slow}");
    let refused = gate(&scaled(&json, 0.01, "another 2.0"), &[]).ended_with(1).stderr;
    assert!(refused.contains("driver another 2.0") && refused.contains("--other-device"), "{refused}");
    gate(&scaled(&json, 0.01, "another 2.0"), &["--other-device"]).ended_with(0);
    assert!(gate("[1]", &[]).ended_with(1).stderr.contains("neither a report nor a program"));
}

#[test]
fn a_build_is_held_against_another_in_turn() {
    let folder = tempfile::tempdir().expect("a folder");
    compared(folder.path());
    let data = folder.path().join("secret-project/points.npy");
    let args =
        ["compare", data.to_str().expect("UTF-8"), "--device", "host", "--batch-size", "2", "--max-slowdown", "90%"];
    let own = env!("CARGO_BIN_EXE_gpufeed");
    let ran = run(&[&args[..], &["--baseline", own]].concat()).ended_with(0);
    assert!(ran.stdout.contains("passes:") && ran.stderr.contains("run 5:"), "{} {}", ran.stdout, ran.stderr);
    let other = if cfg!(windows) { r"C:\windows\system32\hostname.exe" } else { "/bin/true" };
    let refused = run(&[&args[..], &["--baseline", other]].concat()).ended_with(1).stderr;
    assert!(refused.contains("without paced rounds"), "{refused}");
}
