//! The one place where shaders are compiled without a counter in each of their loops.

#![allow(unsafe_code)]

/// Compiles one of `shaders/`. Loops are not made to end: on NVIDIA's Vulkan that costs a sixth of a pipeline's time. All other checks are kept.
pub(super) fn module(device: &wgpu::Device, label: Option<&str>, shader: &str) -> wgpu::ShaderModule {
    let source = wgpu::ShaderSource::Wgsl(shader.into());
    let mut checks = wgpu::ShaderRuntimeChecks::checked();
    checks.force_loop_bounding = false;
    // SAFETY: the shaders are the crate's own, and each of their loops counts in 32 bits to an end that the loop does not move, or halves a
    // number until it is zero: `tests/shaders.rs` looks at each.
    unsafe { device.create_shader_module_trusted(wgpu::ShaderModuleDescriptor { label, source }, checks) }
}
