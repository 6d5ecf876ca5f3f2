//! How a batch is cut where the device cannot bind it as one, and what it cannot bind at all. Pure arithmetic.

use std::ops::Range;

use super::program::GROUP;
use crate::backend::{LaneSpec, Strategy};
use crate::error::{DeviceError, LayoutError, OpenError};
use crate::layout::{COPY_ALIGN, VECTOR_ALIGN, align_up, samples_per_binding};
use crate::preprocess::{OutputLayout, PipelinePlan};

/// Bytes of one sample's fingerprint: two words.
const FINGERPRINT_BYTES: usize = 8;

/// Shaders count bytes in 32 bits, so no binding may be larger, whatever the device allows.
const MAX_ADDRESSABLE: u64 = u32::MAX as u64;

/// Bytes of the buffer that holds so many fingerprints, padded as all buffers are.
pub(crate) const fn fingerprint_bytes(count: usize) -> u64 {
    (count as u64).saturating_mul(FINGERPRINT_BYTES as u64).next_multiple_of(VECTOR_ALIGN as u64)
}

/// A run of samples that is bound and dispatched at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// The samples, counted within the batch.
    pub samples: Range<usize>,
    /// Their bytes in the source buffer, and padding only after the batch's last sample.
    pub source: Range<u64>,
    /// Bytes at the start of `source` that belong to an earlier sample.
    pub skip: u64,
    /// Their bytes in the tensor buffer, and padding only after the batch's last sample.
    pub tensor: Range<u64>,
}

impl Segment {
    /// What is bound of it for the first `samples` samples of the batch, of so many bytes a sample in the source and in the tensor: their
    /// bytes and no others, but for what fills the last vector. `None` if none of them is here.
    pub fn first(&self, samples: usize, source: usize, tensor: usize) -> Option<Self> {
        let end = self.samples.end.min(samples);
        let last = |bytes: usize, align: usize| align_up(end.saturating_mul(bytes), align).map(|end| end as u64);
        let (source, tensor) = (last(source, COPY_ALIGN)?, last(tensor, VECTOR_ALIGN)?);
        (end > self.samples.start).then_some(Self {
            samples: self.samples.start..end,
            source: self.source.start..source,
            skip: self.skip,
            tensor: self.tensor.start..tensor,
        })
    }
}

/// What a device can bind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Binding {
    /// The most bytes.
    limit: usize,
    /// What offsets are multiples of; at least a vector's size.
    align: usize,
}

impl Binding {
    pub fn new(limits: &wgpu::Limits) -> Self {
        let limit = limits.max_storage_buffer_binding_size.min(MAX_ADDRESSABLE);
        let align = usize::try_from(limits.min_storage_buffer_offset_alignment).unwrap_or(usize::MAX);
        Self { limit: usize::try_from(limit).unwrap_or(usize::MAX), align: align.max(VECTOR_ALIGN) }
    }

    /// Segments for what makes tensors, which start at aligned addresses in both buffers.
    pub fn normalize(self, spec: &LaneSpec) -> Result<Vec<Segment>, OpenError> {
        self.tensors(
            spec.layout.batch_size(),
            [spec.layout.payload(1), spec.preprocess.tensor(&spec.layout, 1).byte_len()],
        )
    }

    /// Those for so many samples of these bytes, and of these in the tensor. Both fill up their last vector.
    fn tensors(self, batch: usize, sizes: [usize; 2]) -> Result<Vec<Segment>, OpenError> {
        let per = samples_per_binding(batch, &sizes, self.limit, self.align)
            .ok_or_else(|| self.refused("an aligned run of samples and their tensor", sizes[0].max(sizes[1])))?;
        let whole = |size: usize| size.checked_mul(batch).and_then(|bytes| align_up(bytes, VECTOR_ALIGN));
        let overflow = LayoutError::Overflow { what: "the tensor's byte count" };
        let (Some(source), Some(tensor)) = (whole(sizes[0]), whole(sizes[1])) else { return Err(overflow.into()) };
        let cut = |buffer: usize, samples: &Range<usize>| {
            let end = if samples.end == batch { [source, tensor][buffer] } else { samples.end * sizes[buffer] };
            (samples.start * sizes[buffer]) as u64..end as u64
        };
        let runs = (0..batch).step_by(per).map(|start| start..batch.min(start.saturating_add(per)));
        Ok(runs
            .map(|samples| Segment { source: cut(0, &samples), skip: 0, tensor: cut(1, &samples), samples })
            .collect())
    }

    /// Segments for what makes a pipeline's tensor, counted from the first byte of the field in a slot and of the tensor in the output.
    pub fn pipeline(self, spec: &LaneSpec, plan: &PipelinePlan) -> Result<Vec<Segment>, OpenError> {
        let batch = spec.layout.batch_size();
        self.tensors(batch, [plan.frame.byte_len(), plan.tensor_bytes()])
    }

    /// Segments of the tensor alone, which start at aligned addresses.
    pub fn tensor(self, spec: &LaneSpec) -> Result<Vec<Segment>, OpenError> {
        let batch = spec.layout.batch_size();
        let (size, bytes) = (spec.preprocess.tensor(&spec.layout, 1).byte_len(), tensor_bytes(spec)?);
        let per = samples_per_binding(batch, &[size], self.limit, self.align)
            .ok_or_else(|| self.refused("an aligned run of samples of the tensor", size))?;
        let segment = |start: usize| {
            let samples = start..batch.min(start.saturating_add(per));
            let end = if samples.end == batch { bytes } else { samples.end * size };
            Segment { tensor: (start * size) as u64..end as u64, source: 0..0, skip: 0, samples }
        };
        Ok((0..batch).step_by(per).map(segment).collect())
    }

    /// Segments for the fingerprints of `batch` samples of `size` bytes from byte `offset` of a buffer on. They start at any byte: the
    /// shader skips what the binding's alignment adds.
    pub fn fingerprint(self, batch: usize, offset: usize, size: usize) -> Result<Vec<Segment>, OpenError> {
        let room = self.limit.saturating_sub(self.align).saturating_sub(VECTOR_ALIGN);
        let per = if batch.saturating_mul(size) <= room { batch } else { room / size };
        if per == 0 {
            return Err(self.refused("a sample", size));
        }
        let segment = |start: usize| {
            let samples = start..batch.min(start.saturating_add(per));
            let bytes = offset + start * size..offset + samples.end * size;
            let from = bytes.start - bytes.start % self.align;
            let to = align_up(bytes.end, COPY_ALIGN).unwrap_or(usize::MAX);
            Segment { samples, source: from as u64..to as u64, skip: (bytes.start - from) as u64, tensor: 0..0 }
        };
        Ok((0..batch).step_by(per).map(segment).collect())
    }

    fn refused(self, what: &'static str, needed: usize) -> OpenError {
        OpenError::TooLarge {
            what,
            needed: needed as u64,
            limit: self.limit as u64,
            limit_name: "max_storage_buffer_binding_size",
            advice: "use smaller samples, or sizes that are multiples of the binding alignment",
        }
    }
}

/// What offsets of bytes and tensors are multiples of, for kernels to find them.
pub(crate) fn alignment(limits: &wgpu::Limits) -> u64 {
    Binding::new(limits).align as u64
}

fn tensor_bytes(spec: &LaneSpec) -> Result<usize, OpenError> {
    let desc = spec.preprocess.tensor(&spec.layout, spec.layout.batch_size());
    Ok(desc.buffer_bytes().ok_or(LayoutError::Overflow { what: "the tensor's byte count" })?)
}

/// Whether a device runs workgroups of the shaders' size.
fn check_compute(limits: &wgpu::Limits) -> Result<(), OpenError> {
    let threads = limits.max_compute_invocations_per_workgroup.min(limits.max_compute_workgroup_size_x);
    if (threads as usize) < GROUP || limits.max_compute_workgroups_per_dimension == 0 {
        let message = format!("kernels need compute shaders with workgroups of {GROUP} threads");
        return Err(DeviceError::Refused { message }.into());
    }
    Ok(())
}

/// Whether a device of these limits can hold and bind a lane's batches, at least in parts. Allocates nothing.
///
/// # Errors
/// [`OpenError::Layout`] for parameters that do not fit the samples, [`OpenError::TooLarge`] naming the limit, and
/// [`DeviceError::Refused`] where kernels are needed and compute shaders are missing.
pub(crate) fn check_limits(limits: &wgpu::Limits, spec: &LaneSpec) -> Result<(), OpenError> {
    spec.preprocess.validate(spec.layout.sample())?;
    let buffers = [
        ("the batch's buffer", spec.layout.slot_bytes() as u64),
        ("the tensors' buffer", OutputLayout::new(&spec.preprocess, &spec.layout)?.bytes() as u64),
        ("the fingerprints' buffer", fingerprint_bytes(spec.fingerprint_count())),
    ];
    let advice = "use smaller batches";
    let too_large =
        |what, needed, limit, limit_name| Err(OpenError::TooLarge { what, needed, limit, limit_name, advice });
    if let Some((what, needed)) = buffers.into_iter().find(|&(_, bytes)| bytes > limits.max_buffer_size) {
        return too_large(what, needed, limits.max_buffer_size, "max_buffer_size");
    }
    let binding = Binding::new(limits);
    if spec.strategy == Strategy::Imported {
        check_compute(limits)?;
        binding.tensor(spec)?;
        return Ok(());
    }
    if spec.fingerprints || spec.preprocess.has_kernels() {
        check_compute(limits)?;
    }
    if spec.preprocess.has_kernels() {
        binding.normalize(spec)?;
        for mask in spec.preprocess.masks(spec.layout.sample())? {
            binding.pipeline(spec, &mask)?;
        }
    }
    if spec.fingerprints {
        for field in OutputLayout::new(&spec.preprocess, &spec.layout)?.fields() {
            binding.fingerprint(spec.layout.batch_size(), 0, field.source_bytes(&spec.layout))?;
        }
        // The sums are always bound as one.
        let (what, needed) = buffers[2];
        if needed > binding.limit as u64 {
            return too_large(what, needed, binding.limit as u64, "max_storage_buffer_binding_size");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{BatchLayout, SampleLayout};
    use crate::preprocess::Normalize;

    fn spec(height: usize, width: usize, batch: usize) -> LaneSpec {
        let sample = SampleLayout::image(height, width, 3).expect("valid");
        LaneSpec {
            layout: BatchLayout::new(sample, batch).expect("valid"),
            preprocess: Normalize::imagenet().into(),
            strategy: Strategy::MappedRing,
            slots: 1,
            outputs: 1,
            fingerprints: true,
            memory: None,
            timing: false,
            step: None,
        }
    }

    fn limits(binding: u64, align: u32) -> wgpu::Limits {
        wgpu::Limits {
            max_storage_buffer_binding_size: binding,
            min_storage_buffer_offset_alignment: align,
            ..wgpu::Limits::default()
        }
    }

    #[test]
    fn segments_cover_the_batch_within_the_limit() {
        for (height, width, batch, limit, align) in
            [(224, 224, 256, 128 << 20, 32), (8, 8, 37, 4096, 256), (31, 17, 600, 2_000_000, 256)]
        {
            let spec = spec(height, width, batch);
            let binding = Binding::new(&limits(limit, align));
            let fingerprint = binding.fingerprint(batch, 0, spec.layout.payload(1));
            for segments in [binding.normalize(&spec).expect("fits"), fingerprint.expect("fits")] {
                let mut next = 0;
                for segment in &segments {
                    assert_eq!(segment.samples.start, next);
                    next = segment.samples.end;
                    for range in [&segment.source, &segment.tensor] {
                        assert!(range.end - range.start <= limit);
                        assert_eq!(range.start % u64::from(align), 0);
                        assert_eq!(range.end % 4, 0);
                    }
                    assert!(segment.source.end <= spec.layout.slot_bytes() as u64);
                }
                assert_eq!(next, batch);
            }
        }
    }

    #[test]
    fn a_field_behind_the_first_is_found_wherever_it_starts() {
        let binding = Binding::new(&limits(4096, 256));
        for (batch, offset, size) in [(37, 512, 192), (600, 4864, 527), (3, 256, 4)] {
            let segments = binding.fingerprint(batch, offset, size).expect("it fits in parts");
            let mut next = 0;
            for segment in &segments {
                assert_eq!(segment.samples.start, next);
                next = segment.samples.end;
                assert_eq!(segment.source.start + segment.skip, (offset + segment.samples.start * size) as u64);
                assert!(segment.source.start % 256 == 0 && segment.source.end - segment.source.start <= 4096);
                assert!(segment.source.end >= (offset + segment.samples.end * size) as u64);
            }
            assert_eq!(next, batch);
        }
        assert!(binding.fingerprint(2, 0, 4096).is_err(), "a sample that no binding holds");
    }

    #[test]
    fn the_first_samples_are_bound_with_their_own_bytes_only() {
        let spec = spec(31, 17, 600);
        let segments = Binding::new(&limits(2_000_000, 256)).normalize(&spec).expect("fits");
        let (source, tensor) = (1581, 4 * 1581);
        for samples in [1, 255, 256, 257, 599, 600] {
            let first: Vec<_> = segments.iter().filter_map(|segment| segment.first(samples, source, tensor)).collect();
            assert_eq!(first.iter().map(|segment| segment.samples.len()).sum::<usize>(), samples);
            let last = first.last().expect("there are some");
            assert_eq!(last.source.end, (samples * source).next_multiple_of(4) as u64);
            assert_eq!(last.tensor.end, (samples * tensor).next_multiple_of(16) as u64);
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let name = |limits: wgpu::Limits| match check_limits(&limits, &spec(31, 17, 600)) {
            Err(OpenError::TooLarge { what, limit_name, .. }) => (what, limit_name),
            other => panic!("{other:?}"),
        };
        let small = wgpu::Limits { max_buffer_size: 1 << 20, ..wgpu::Limits::default() };
        assert_eq!(name(small), ("the tensors' buffer", "max_buffer_size"));
        let unaligned = name(limits(1_000_000, 256));
        assert_eq!(unaligned, ("an aligned run of samples and their tensor", "max_storage_buffer_binding_size"));
        check_limits(&limits(2_000_000, 256), &spec(31, 17, 600)).expect("fits in parts");
        let none = wgpu::Limits { max_compute_invocations_per_workgroup: 0, ..wgpu::Limits::default() };
        assert!(matches!(check_limits(&none, &spec(8, 8, 2)), Err(OpenError::Device(DeviceError::Refused { .. }))));
    }
}
