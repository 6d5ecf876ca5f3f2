//! Ctrl-C: the first asks for a clean end, the second ends at once.

use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit code of a command that Ctrl-C ended: 128 and the number of SIGINT.
pub const EXIT_CODE: u8 = 130;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// From here on Ctrl-C is a request, and whoever calls this must look at [`requested`].
pub fn catch() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| {
        if REQUESTED.swap(true, Ordering::Relaxed) {
            exit(EXIT_CODE.into());
        }
    })
}

/// Whether Ctrl-C was pressed.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
