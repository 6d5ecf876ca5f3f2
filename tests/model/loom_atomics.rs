//! The countdown as it is, with loom's atomics.

#[path = "../../src/staging/countdown.rs"]
mod countdown;
#[path = "models.rs"]
pub mod models;

mod sync {
    pub use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
}
