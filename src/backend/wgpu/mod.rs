//! Devices through wgpu.

mod kernel;
