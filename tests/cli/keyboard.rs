//! The merged page without a mouse, in a real browser.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{run, skip};

const TEST: &str = "every_part_of_the_merged_page_is_reached_by_keyboard_on_a_phone";

/// What the script finds in a page that stands in a frame as wide as a phone; `None`, with the reason, where no browser starts.
fn found_in(page: &str, folder: &Path) -> Result<Value, String> {
    let browser = ["chromium", "chromium-browser", "google-chrome"];
    let starts = |name: &&&str| Command::new(name).arg("--version").output().is_ok_and(|ran| ran.status.success());
    let browser = browser.iter().find(starts).ok_or("there is no chromium")?;
    let quoted = page.replace('&', "&amp;").replace('"', "&quot;");
    let harness = folder.join("harness.html");
    let script = include_str!("keyboard.js");
    let text = format!(
        "<!doctype html><meta charset=\"utf-8\"><pre></pre><iframe width=\"360\" height=\"800\" srcdoc=\"{quoted}\"></iframe><script>{script}</script>"
    );
    fs::write(&harness, text).expect("written");
    let profile = format!("--user-data-dir={}", folder.join("profile").display());
    let args = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom", &profile];
    let ran = Command::new(browser).args(args).arg(format!("file://{}", harness.display())).output().expect("it runs");
    let (dom, log) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    if dom.is_empty() {
        return Err(format!("it does not start here: {}", log.lines().last().unwrap_or_default()));
    }
    let text = dom.split("<pre>").nth(1).and_then(|rest| rest.split("</pre>").next()).expect("the script's answer");
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    Ok(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}\n{log}")))
}

#[test]
fn every_part_of_the_merged_page_is_reached_by_keyboard_on_a_phone() {
    let reports = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports");
    if !reports.is_dir() {
        return skip(TEST, "the package has no reports");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page.html");
    run(&["report", reports.to_str().expect("UTF-8"), "--html", page.to_str().expect("UTF-8")]).ended_with(0);
    let page = fs::read_to_string(page).expect("written");
    let found = match found_in(&page, folder.path()) {
        Ok(found) => found,
        Err(reason) => return skip(TEST, &reason),
    };
    assert_eq!(found["wrong"], serde_json::json!([]), "{found}");
    let declared: usize = ["<a href=", "<summary", "tabindex="].iter().map(|stop| page.matches(stop).count()).sum();
    assert_eq!(found["stops"], declared, "{found}");
    // The table of winners, and each device's figures.
    assert!(page.matches("tabindex=\"0\"").count() > page.matches("<section").count());
    // What cannot be seen and what cannot be reached are noticed.
    let without = page.replace("outline: 3px solid", "outline: 0 none").replacen("tabindex=\"0\"", "", 1);
    let found = found_in(&without, folder.path()).expect("it has just run");
    let wrong = found["wrong"].to_string();
    assert!(wrong.contains("not seen where the focus is") && wrong.contains("scrolls by mouse alone"), "{wrong}");
}
