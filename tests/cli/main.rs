//! The command, run as its users run it.

mod auto;
mod compare;
mod data;
mod ends;
mod help;
mod labels;
mod observe;
mod outputs;
mod report;
mod resume;
mod several;
mod shards;
mod shrink;
mod support;
mod tensors;
