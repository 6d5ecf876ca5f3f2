//! Barriers that name stages of graphics, on queues that have none.
//!
//! wgpu takes its one queue for one that draws: before a kernel reads a buffer its barrier waits for every kind of shader. A family without
//! graphics has only some of these stages, and Vulkan wants no others to be named there.

use std::sync::OnceLock;

use ash::vk;

/// The stages that queues for computing and copying have.
const STAGES: vk::PipelineStageFlags = vk::PipelineStageFlags::from_raw(
    vk::PipelineStageFlags::TOP_OF_PIPE.as_raw()
        | vk::PipelineStageFlags::DRAW_INDIRECT.as_raw()
        | vk::PipelineStageFlags::COMPUTE_SHADER.as_raw()
        | vk::PipelineStageFlags::TRANSFER.as_raw()
        | vk::PipelineStageFlags::BOTTOM_OF_PIPE.as_raw()
        | vk::PipelineStageFlags::HOST.as_raw()
        | vk::PipelineStageFlags::ALL_COMMANDS.as_raw(),
);

/// The loader's function, which finds the driver by the command buffer, whatever device that is of; and what keeps the loader.
static LOADERS: OnceLock<(vk::PFN_vkCmdPipelineBarrier, ash::Entry)> = OnceLock::new();

/// The same device, whose barriers leave out the stages of graphics. `None` where the loader does not have the function.
pub(super) fn without_graphics(
    device: &ash::Device,
    entry: &ash::Entry,
    instance: &ash::Instance,
) -> Option<ash::Device> {
    if LOADERS.get().is_none() {
        // SAFETY: the instance exists, as its caller holds it.
        let found = unsafe { entry.get_instance_proc_addr(instance.handle(), c"vkCmdPipelineBarrier".as_ptr()) }?;
        // SAFETY: that is the type of the function of this name.
        let found = unsafe { std::mem::transmute::<unsafe extern "system" fn(), vk::PFN_vkCmdPipelineBarrier>(found) };
        // Another thread may have been first, with the same function.
        let _ = LOADERS.set((found, entry.clone()));
    }
    let mut functions = device.fp_v1_0().clone();
    functions.cmd_pipeline_barrier = barrier;
    let (v1_1, v1_2, v1_3) = (device.fp_v1_1().clone(), device.fp_v1_2().clone(), device.fp_v1_3().clone());
    Some(ash::Device::from_parts_1_3(device.handle(), functions, v1_1, v1_2, v1_3))
}

/// What there is of these stages; all of them where there is none, which waits for no less.
fn known(stages: vk::PipelineStageFlags) -> vk::PipelineStageFlags {
    let known = stages & STAGES;
    if known.is_empty() { vk::PipelineStageFlags::ALL_COMMANDS } else { known }
}

/// `vkCmdPipelineBarrier`.
unsafe extern "system" fn barrier(
    commands: vk::CommandBuffer,
    before: vk::PipelineStageFlags,
    after: vk::PipelineStageFlags,
    dependencies: vk::DependencyFlags,
    memory_count: u32,
    memory: *const vk::MemoryBarrier<'_>,
    buffer_count: u32,
    buffers: *const vk::BufferMemoryBarrier<'_>,
    image_count: u32,
    images: *const vk::ImageMemoryBarrier<'_>,
) {
    let Some((function, _)) = LOADERS.get() else { return };
    // SAFETY: the parameters are the caller's, with fewer stages; the function was set before any device was given this one.
    unsafe {
        function(
            commands,
            known(before),
            known(after),
            dependencies,
            memory_count,
            memory,
            buffer_count,
            buffers,
            image_count,
            images,
        );
    }
}

#[cfg(test)]
mod tests {
    use vk::PipelineStageFlags as Stages;

    use super::*;

    #[test]
    fn stages_of_graphics_are_left_out_and_others_stay() {
        let shaders = Stages::VERTEX_SHADER | Stages::FRAGMENT_SHADER | Stages::COMPUTE_SHADER;
        assert_eq!(known(shaders), Stages::COMPUTE_SHADER);
        assert_eq!(known(shaders | Stages::TRANSFER), Stages::COMPUTE_SHADER | Stages::TRANSFER);
        assert_eq!(known(Stages::ALL_COMMANDS), Stages::ALL_COMMANDS);
        assert_eq!(known(Stages::VERTEX_SHADER), Stages::ALL_COMMANDS);
    }
}
