//! gpufeed's waiting for a Vulkan device holds up nothing that other threads do with it.

#![cfg(all(feature = "wgpu", any(windows, target_os = "linux", target_os = "android", target_os = "freebsd")))]
#![allow(unsafe_code)] // The gate is made through the driver.

#[path = "support/skip.rs"]
mod skip;

use std::sync::{Arc, mpsc};
use std::time::Duration;

use ash::vk;
use gpufeed::backend::wgpu::WgpuBackend;
use gpufeed::wgpu::hal::api::Vulkan;
use gpufeed::{Loader, LoaderOptions, MemorySource, OpenError, SampleLayout, wgpu};

/// How long a thread that nothing holds up may take. A failing test takes it, a passing one does not.
const HELD_UP: Duration = Duration::from_secs(20);

/// Holds back what is submitted to a queue next, until it is opened.
struct Gate {
    device: wgpu::Device,
    raw: ash::Device,
    semaphore: vk::Semaphore,
}

impl Gate {
    fn close(device: &wgpu::Device, queue: &wgpu::Queue) -> Self {
        // SAFETY: the handle is used to make a child that goes before the device does.
        let of_device = unsafe { device.as_hal::<Vulkan>() }.expect("this is a Vulkan device");
        // SAFETY: the handle is used to stage a wait for the next submission.
        let of_queue = unsafe { queue.as_hal::<Vulkan>() }.expect("this is a Vulkan queue");
        let raw = of_device.raw_device().clone();
        let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: the device exists, and wgpu enables timeline semaphores where there are any.
        let semaphore = unsafe { raw.create_semaphore(&info, None) }.expect("a semaphore");
        of_queue.add_wait_semaphore(semaphore, Some(1), vk::PipelineStageFlags::ALL_COMMANDS);
        drop((of_device, of_queue));
        Self { device: device.clone(), raw, semaphore }
    }

    fn open(&self) {
        let info = vk::SemaphoreSignalInfo::default().semaphore(self.semaphore).value(1);
        // SAFETY: a timeline semaphore of this device, whose value was zero.
        unsafe { self.raw.signal_semaphore(&info) }.expect("it is signalled");
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.device.poll(wgpu::PollType::wait_indefinitely()).expect("the device is there");
        // SAFETY: what waited for it has ended.
        unsafe { self.raw.destroy_semaphore(self.semaphore, None) };
    }
}

/// Two samples of 16 bytes, in one batch.
fn loader(test: &str) -> Option<Loader<WgpuBackend>> {
    let backend = match WgpuBackend::open("vulkan:0") {
        Err(OpenError::NoDevice { .. }) => {
            skip::skip(test, "no Vulkan device here");
            return None;
        }
        opened => opened.expect("the device is there and opens"),
    };
    let source = MemorySource::new(vec![7; 2 * 16], SampleLayout::bytes(&[16]).expect("valid")).expect("whole samples");
    let options = LoaderOptions { batch_size: 2, ..LoaderOptions::default() };
    Some(Loader::new(&backend, Arc::new(source), options).expect("the loader opens"))
}

fn texture(device: &wgpu::Device) -> wgpu::Texture {
    device.create_texture(&wgpu::TextureDescriptor {
        label: None,
        size: wgpu::Extent3d { width: 4, height: 4, depth_or_array_layers: 1 },
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format: wgpu::TextureFormat::Rgba8Unorm,
        usage: wgpu::TextureUsages::COPY_DST,
        view_formats: &[],
    })
}

#[test]
fn a_texture_is_destroyed_and_work_submitted_while_gpufeed_waits_for_the_device() {
    let Some(mut loader) = loader("a_texture_is_destroyed") else { return };
    let (device, queue) = (loader.backend().device().clone(), loader.backend().queue().clone());
    let (texture, software) = (texture(&device), loader.backend().info().is_software());
    let gate = Gate::close(&device, &queue);
    let mut epoch = loader.epoch(0);
    let batch = epoch.next().expect("a batch is delivered before it is written").expect("no error");
    assert!(!batch.is_ready().expect("the device is there"), "the gate is closed");
    let (waits, waiting) = mpsc::channel();
    let (finishes, finished) = mpsc::channel();
    let free = std::thread::scope(|scope| {
        scope.spawn(|| {
            waits.send(()).expect("the test is there");
            batch.wait().expect("it is written in the end");
        });
        waiting.recv().expect("the thread is there");
        // By now that thread waits, and so does the loader's pump.
        std::thread::sleep(Duration::from_millis(100));
        scope.spawn(|| {
            texture.destroy();
            // Software drivers hold a submission itself back until the one before it may run.
            if !software {
                queue.submit([]);
            }
            finishes.send(()).expect("the test is there");
        });
        let free = finished.recv_timeout(HELD_UP);
        gate.open();
        free
    });
    assert_eq!(free, Ok(()), "nothing holds up the application's thread");
    drop(batch);
    assert!(epoch.all(|batch| batch.is_ok()));
}
