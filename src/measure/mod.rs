//! What comparing strategies needs: robust statistics, the process's own costs, and the host's copy ceiling.

pub mod cpu;
pub mod memcpy;
pub mod stats;

pub use cpu::{available_memory, physical_memory, process_cpu};
pub use memcpy::parallel_memcpy;
pub use stats::{Ratio, Summary, Winner, percentile, ratio_in_words, winner};
