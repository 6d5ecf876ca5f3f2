//! The command, run as its users run it.

mod compare;
mod data;
mod ends;
mod help;
mod report;
mod support;
mod tensors;
