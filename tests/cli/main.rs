//! The command, run as its users run it.

mod auto;
mod compare;
#[cfg(target_os = "linux")]
mod control_group;
mod data;
mod doctor;
mod ends;
mod help;
mod keyboard;
mod labels;
mod observe;
mod outputs;
mod pages;
mod report;
mod resume;
mod several;
mod shards;
mod shrink;
mod support;
mod sweeps;
mod tensors;
mod transforms;
