//! Ctrl-C, and what else asks a process to end (SIGTERM, SIGHUP, the console's closing): the first asks for a clean end, a
//! later one ends at once.

use std::process::exit;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The exit code of a command that was interrupted: 128 and the number of SIGINT.
pub const EXIT_CODE: u8 = 130;

/// How long the same request may be on its way twice: `timeout` and batch systems signal a process and its group.
const ONE_REQUEST: Duration = Duration::from_secs(1);

static REQUESTED: OnceLock<Instant> = OnceLock::new();

/// From here on an interruption is a request, and whoever calls this must look at [`requested`].
pub fn catch() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| {
        if REQUESTED.get_or_init(Instant::now).elapsed() > ONE_REQUEST {
            exit(EXIT_CODE.into());
        }
    })
}

/// Whether the command was asked to end.
pub fn requested() -> bool {
    REQUESTED.get().is_some()
}
