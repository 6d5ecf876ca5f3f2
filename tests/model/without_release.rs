//! The countdown with every `Release` weakened to `Relaxed`.

#[path = "../../src/staging/countdown.rs"]
mod countdown;
#[path = "models.rs"]
pub mod models;

mod sync {
    pub use loom::sync::atomic::{AtomicBool, AtomicUsize};

    /// Stands in for the enum of this name.
    #[allow(non_snake_case, non_upper_case_globals)]
    pub mod Ordering {
        pub use loom::sync::atomic::Ordering::{Acquire, Relaxed};

        pub const Release: loom::sync::atomic::Ordering = Relaxed;
    }
}
