//! What a comparison found, in plain structs: every sample is kept, and what is derived from them stands beside.
//!
//! A [`Report`] holds a [`DeviceReport`] for each device, which holds a [`Configuration`] for each strategy with its sizes. The
//! figures of a configuration are those of one table, [`COLUMNS`]: the terminal, [`Markdown`], [`Csv`] and the JSON show them all
//! from there. [`JSON_SCHEMA`] describes the JSON. Rates are in decimal gigabytes (10^9 bytes) of the samples as the source
//! delivers them.

mod ceilings;
mod clock;
mod columns;
mod configuration;
mod csv;
mod device;
mod exporter;
mod figures;
mod hand_over;
mod markdown;
mod measured;
mod schema;
mod sizes;
mod summarise;
mod text;
mod whole;

pub use ceilings::Ceilings;
pub use clock::GpuRates;
pub use columns::{COLUMNS, Column, Figure, Table};
pub use configuration::{Configuration, Round, Settings, Status};
pub use csv::Csv;
pub use device::{DeviceReport, DeviceStatus, Winner};
pub use exporter::Exporter;
pub use figures::Figures;
pub use hand_over::HandOver;
pub use markdown::Markdown;
pub use measured::Measured;
pub use schema::{JSON_SCHEMA, SCHEMA};
pub use sizes::{SIZES, Size};
pub use text::{digits, percent, times};
pub use whole::{Data, Report};

pub use super::machine::Host;
