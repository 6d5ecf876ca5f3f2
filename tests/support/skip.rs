//! What this machine lacks is said, and counted by `cargo xtask test`.

use std::io::Write;

/// Says that a test, or a part of one, is skipped, and why.
#[allow(clippy::print_stderr)]
pub fn skip(name: &str, reason: &str) {
    let line = format!("skipped: {name}: {reason}");
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("GPUFEED_SKIP_LOG") {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(path);
        log.and_then(|mut log| writeln!(log, "{line}")).expect("the list of skipped tests can be written");
    }
}
