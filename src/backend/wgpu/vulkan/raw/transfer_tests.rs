//! On the first Vulkan device, whose own queue stands for one apart where there is no other.

#![allow(clippy::print_stderr)] // A test that skips itself says so.

use super::super::{device_buffer, host_buffer};
use super::*;
use crate::backend::Api;
use crate::backend::wgpu::adapters_of;
use crate::backend::wgpu::native::{Copy, Place, RawBuffer, Region, Writable};
use crate::backend::wgpu::tensor::read_back;
use crate::backend::wgpu::vulkan::HostCache;

const BYTES: usize = 4096;

struct Bench {
    backend: WgpuBackend,
    host: Writable,
    target: wgpu::Buffer,
    raw: RawBuffer,
    queue: TransferQueue,
}

fn open() -> Option<Bench> {
    // The validation layers speak through the log.
    let _ = env_logger::try_init();
    if adapters_of(Api::Vulkan).is_empty() {
        eprintln!("skipped: no Vulkan device here");
        return None;
    }
    let backend = WgpuBackend::open("vulkan:0").expect("a device");
    let shared = SharedQueues::wgpus_own(backend.device()).expect("it is Vulkan's");
    let place = Place::System(HostCache::Cached);
    let (_, mut host) =
        host_buffer(&backend, "test", BYTES as u64, wgpu::BufferUsages::COPY_SRC, place).expect("memory");
    let (target, raw) = device_buffer(&backend, "test", BYTES as u64).expect("memory");
    let bytes: Vec<u8> = (0..BYTES).map(|at| (at * 7 + at / 251) as u8).collect();
    host.write(0, &bytes);
    clear(&backend, &target);
    let queue = TransferQueue::new(&backend, shared, 2).expect("a queue");
    Some(Bench { backend, host, target, raw, queue })
}

fn clear(backend: &WgpuBackend, buffer: &wgpu::Buffer) {
    let mut encoder = backend.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.clear_buffer(buffer, 0, None);
    backend.queue().submit([encoder.finish()]);
    backend.device().poll(wgpu::PollType::wait_indefinitely()).expect("it ends");
}

fn region(src_offset: u64, dst_offset: u64, size: u64) -> Region {
    Region { src_offset, dst_offset, size }
}

impl Bench {
    fn submit(&mut self, regions: &[Region]) -> Result<TransferTicket, DeviceError> {
        let copy = Copy { from: &self.host.raw(), to: &self.raw, regions };
        self.queue.submit(&std::iter::once(copy))
    }

    fn delivered(&self) -> Vec<u8> {
        read_back(&self.backend, &self.target, 0, BYTES).expect("it is read")
    }
}

#[test]
fn what_was_copied_is_seen_on_wgpus_queue() {
    let Some(mut bench) = open() else { return };
    // Samples of 31 bytes, in another order: nothing has to be aligned.
    for turn in 0..8u64 {
        let regions: Vec<_> = (0..100).map(|at| region(at * 31, (99 - at) * 31 + turn, 31)).collect();
        let ticket = bench.submit(&regions).expect("it is sent");
        assert!(bench.queue.wait(ticket, Duration::from_secs(10)).expect("a live device"), "it ends");
        assert!(bench.queue.is_reached(ticket).expect("a live device"));
        bench.queue.stage(ticket).expect("it has ended");
        let delivered = bench.delivered();
        for at in 0..100 {
            let sample = (at * 31..at * 31 + 31).map(|at| (at * 7 + at / 251) as u8);
            let first = (99 - at) * 31 + usize::try_from(turn).expect("small");
            assert!(delivered[first..first + 31].iter().copied().eq(sample), "sample {at}, turn {turn}");
        }
    }
}

#[test]
fn a_copy_outside_of_its_buffers_is_refused_and_nothing_is_copied() {
    let Some(mut bench) = open() else { return };
    let outside = BYTES as u64 - 8;
    for wrong in [region(outside, 0, 16), region(0, outside, 16), region(u64::MAX, 0, 2), region(0, 0, 0)] {
        let error = bench.submit(&[region(0, 0, 16), wrong]).expect_err("it does not fit");
        assert!(matches!(error, DeviceError::Refused { .. }), "{error}");
    }
    assert_eq!(bench.delivered(), [0; BYTES]);
}

#[test]
fn nothing_waits_for_a_transfer_that_has_not_ended() {
    let Some(bench) = open() else { return };
    let mut never = TransferTicket::default();
    never.0[0] = 7;
    assert!(!bench.queue.is_reached(never).expect("a live device"));
    assert!(!bench.queue.wait(never, Duration::from_millis(1)).expect("a live device"));
    let error = bench.queue.stage(never).expect_err("a staged wait would hang the application's queue");
    assert!(matches!(error, DeviceError::Refused { .. }), "{error}");
    assert_eq!(bench.delivered(), [0; BYTES], "and it did not");
    assert!(bench.queue.wait(TransferTicket::default(), Duration::ZERO).expect("nothing to wait for"));
}

#[test]
fn its_parts_can_be_dropped_in_any_order_while_a_transfer_is_under_way() {
    for order in 0..6 {
        let Some(mut bench) = open() else { return };
        bench.submit(&[region(0, 0, BYTES as u64)]).expect("it is sent");
        let Bench { backend, host, target, raw, queue } = bench;
        // The queue goes before the buffers that its transfers use, as in a lane; the device goes whenever.
        match order {
            0 => drop((backend, queue, host, target, raw)),
            1 => drop((queue, backend, host, target, raw)),
            2 => drop((queue, host, backend, raw, target)),
            3 => drop((queue, target, raw, host, backend)),
            4 => {
                backend.device().destroy();
                drop((backend, queue, target, raw, host));
            }
            _ => {
                backend.device().destroy();
                drop((queue, target, raw, host, backend));
            }
        }
    }
}

#[test]
fn a_device_with_one_family_says_so() {
    let Some(bench) = open() else { return };
    let families = super::super::device_families(bench.backend.device());
    let adapter = crate::backend::wgpu::adapters::find(Some(Api::Vulkan)).remove(0).adapter;
    assert_eq!(families, super::super::adapter_families(&adapter), "gpufeed opens all that there is");
    let request = adapter.request_device(&wgpu::DeviceDescriptor::default());
    let (plain, _queue) = pollster::block_on(request).expect("a device");
    let reason = super::super::device_families(&plain).expect_err("it was not opened by gpufeed");
    match families {
        Ok(_) => assert_eq!(reason, crate::backend::wgpu::vulkan::NoSecondQueue::NotOpened),
        Err(all) => assert_eq!(reason, all),
    }
}
