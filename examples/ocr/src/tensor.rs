//! From a batch of gpufeed's to a tensor of burn's, on the same device.

use anyhow::{Result, ensure};
use burn::backend::Wgpu;
use burn::cubecl::wgpu::{AutoCompiler, WgpuServer};
use burn::tensor::{Device, Tensor};
use gpufeed::backend::wgpu::WgpuBackend;
use gpufeed::{Batch, Element};

/// The batch as a tensor of burn's: one copy on the device, and no wait. The batch may be dropped at once.
///
/// burn 0.22 cannot take a foreign buffer, so it allocates the tensor, and gpufeed fills it.
///
/// Without burn's feature `fusion`: with it a tensor is a promise, and has no buffer yet.
pub fn tensor<const D: usize>(batch: &Batch<WgpuBackend>, device: &Device) -> Result<Tensor<D>> {
    let shape: [usize; D] = batch.shape().try_into()?;
    ensure!(batch.dtype() == Element::F32, "a tensor of {} is not one of f32", batch.dtype());
    let tensor = Tensor::<D>::empty(shape, device);
    let own = tensor.clone().try_into_primitive::<Wgpu>().map_err(|error| anyhow::anyhow!("{error:?}"))?;
    // Right before the copy: it submits what burn has recorded, which may still read this memory as another tensor's. Held until the copy
    // is queued, since burn may move its tensors otherwise.
    let memory = own.client.get_resource::<WgpuServer<AutoCompiler>>(own.handle.clone())?;
    let target = memory.resource();
    batch.fill_into(&target.buffer, target.offset)?;
    Ok(tensor)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gpufeed::source::random_images;
    use gpufeed::{Loader, LoaderOptions, Normalize, SampleLayout, Strategy};

    use super::*;
    use crate::device::Opener;

    /// burn gives the memory of a dropped tensor to the next one while the work that reads it is recorded only. Its own device opens once in
    /// a process, so what that one lacks is seen here too.
    #[test]
    fn tensors_are_the_batches_by_every_strategy_and_a_device_of_gpufeeds_runs_more_than_one_of_burns() {
        let lacks = [Opener::Gpufeed, Opener::Burn].map(|opener| {
            let (backend, device) = opener.open().expect("a device");
            let all = backend.info().strategies.iter();
            let (runs, lacks): (Vec<_>, Vec<_>) = all.partition(|support| support.missing.is_none());
            runs.iter().for_each(|support| doubled_tensors_are_doubled_batches(&backend, &device, support.strategy));
            lacks.iter().map(|support| support.strategy).collect::<Vec<_>>()
        });
        let [ours, burns] = &lacks;
        assert!(ours.iter().all(|strategy| burns.contains(strategy)), "{lacks:?}");
        assert!(burns.contains(&Strategy::DirectMap) && burns.contains(&Strategy::Imported), "{lacks:?}");
    }

    fn doubled_tensors_are_doubled_batches(backend: &WgpuBackend, device: &Device, strategy: Strategy) {
        let images = random_images(SampleLayout::image(9, 7, 3).expect("a layout"), 60, 1).expect("images");
        let (strategy, preprocess) = (Some(strategy), Normalize::unit(3).into());
        let options = LoaderOptions { batch_size: 4, strategy, preprocess, ..LoaderOptions::default() };
        let mut loader = Loader::new(backend, Arc::new(images), options).expect("a loader");
        let read = |batch: Result<Batch<_>, _>| batch.expect("a batch").read_f32().expect("floats");
        let expected: Vec<Vec<f32>> = loader.epoch(0).map(read).collect();

        let mut doubled = Vec::new();
        for batch in loader.epoch(1) {
            let own = tensor::<4>(&batch.expect("a batch"), device).expect("a tensor");
            doubled.push(own.clone() * 2.0); // Not in place, since there is another one: its memory is free then.
        }
        assert_eq!(doubled.len(), 15);
        for (got, batch) in doubled.into_iter().zip(&expected) {
            let got = got.into_data().try_into_vec::<f32>().expect("floats");
            let wanted: Vec<f32> = batch.iter().map(|value| value * 2.0).collect();
            assert!(got == wanted, "{strategy:?}");
        }
    }

    #[test]
    fn a_batch_of_bytes_is_refused_by_its_type() {
        let (backend, device) = Opener::Gpufeed.open().expect("a device");
        let images = Arc::new(random_images(SampleLayout::image(2, 2, 3).expect("a layout"), 1, 1).expect("images"));
        let mut loader = Loader::new(&backend, images, LoaderOptions::default()).expect("a loader");
        let batch = loader.epoch(0).next().expect("one").expect("a batch");
        let error = tensor::<4>(&batch, &device).expect_err("burn's tensors are of f32");
        assert!(error.to_string().contains("u8"), "{error}");
    }
}
