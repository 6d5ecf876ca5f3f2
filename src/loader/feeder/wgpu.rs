//! What a feeder on a `wgpu` device offers beside: tensors in buffers of the application's, and frames that are on the GPU already.

use super::super::batch::Batch;
use super::super::outputs::Output;
use super::Feeder;
use super::error::{FeedError, FillError};
use super::frame::AsFrame;
use super::send::into_feed_error;
use super::target::TargetBatch;
use super::writer::FrameWriter;
use crate::backend::Wait;
use crate::backend::wgpu::{GpuFrames, SubmitError, WgpuBackend, WgpuTensor};
use crate::error::{DeviceError, LayoutError};

/// A place in a buffer of the application's.
type Place<'a> = (&'a wgpu::Buffer, u64);

impl Feeder<WgpuBackend> {
    /// As [`feed`](Self::feed), and the kernel, or the copy where nothing is computed, writes the tensors straight into `target`, from
    /// byte `offset` on: no tensor of the feeder's lies between. For a model's own input, and for frameworks that cannot take a foreign
    /// buffer.
    ///
    /// The work is on wgpu's own queue: it follows what the application has submitted before, and what it submits from now on sees the
    /// tensors. Until then the application must not have `target` mapped, nor destroy it, and it must not read the tensors on a queue
    /// that wgpu does not know of. Both are of one [`wgpu::Instance`]: wgpu itself mistakes a buffer of another for one of its own, or
    /// panics. Every byte from `offset` up to the end of the last field's tensor may be written, with up to 15 more
    /// that fill its last vector.
    ///
    /// `target` has the usage `STORAGE` where something is computed, and `COPY_DST` where something is copied: for
    /// [`Preprocess::Raw`](crate::Preprocess::Raw), and for fields behind the first. `offset` is a multiple of the device's
    /// `min_storage_buffer_offset_alignment` and of 16 where something is computed, and else of 4.
    ///
    /// ```
    /// use gpufeed::backend::wgpu::WgpuBackend;
    /// use gpufeed::{Feeder, FeederOptions, Normalize, SampleLayout, wgpu};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Ok(backend) = WgpuBackend::open("vulkan:0") else { return Ok(()) };
    /// let options = FeederOptions { preprocess: Normalize::unit(3).into(), ..FeederOptions::default() };
    /// let mut feeder = Feeder::new(&backend, SampleLayout::image(8, 8, 3)?, options)?;
    /// let input = backend.device().create_buffer(&wgpu::BufferDescriptor {
    ///     label: Some("the model's input"),
    ///     size: 4 * 8 * 8 * 3,
    ///     usage: wgpu::BufferUsages::STORAGE,
    ///     mapped_at_creation: false,
    /// });
    /// let tensors = feeder.feed_into(&[&[255; 192]], &input, 0)?;
    /// assert_eq!(tensors.desc().shape.as_slice(), [1, 3, 8, 8]);
    /// // Submit the model's work, which reads `input`.
    /// # tensors.wait()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`FeedError`], among them [`FeedError::Resource`] for a buffer that cannot be written. Nothing was sent.
    pub fn feed_into<F: AsFrame>(
        &mut self,
        frames: &[F],
        target: &wgpu::Buffer,
        offset: u64,
    ) -> Result<TargetBatch, FeedError> {
        let frames = self.check(frames)?;
        let mut write = self.copying(&frames);
        self.feed_with_into(frames.len(), &mut write, target, offset).map_err(into_feed_error)
    }

    /// As [`feed_with`](Self::feed_with), into a buffer of the application's as [`feed_into`](Self::feed_into).
    ///
    /// # Errors
    /// As both.
    pub fn feed_with_into<E>(
        &mut self,
        count: usize,
        mut write: impl FnMut(&mut FrameWriter<'_>) -> Result<(), E>,
        target: &wgpu::Buffer,
        offset: u64,
    ) -> Result<TargetBatch, FillError<E>> {
        self.check_count(count)?;
        self.check_target(count, (target, offset), false)?;
        let fill = loop {
            match self.take_slot()? {
                Some(fill) => break fill,
                None => self.reap(Wait::One)?,
            }
        };
        let made = self.lane.tensor_in(fill.slot(), count, target, offset).map_err(FeedError::from);
        let mut output = match made.and_then(|tensor| Ok(Output::for_feeder(tensor, &self.layout)?)) {
            Ok(output) => output,
            Err(error) => {
                self.slot = Some(fill);
                return Err(error.into());
            }
        };
        match self.send(fill, count, &mut output, &mut write) {
            Ok(_) => Ok(self.target_batch(output, offset)),
            Err(error) => Err(of_target(error.into_error())),
        }
    }

    /// Feeds frames that are in a buffer on the GPU already: `frames` of them, back to back, from byte `offset` on. No byte passes the
    /// CPU: the kernel reads them where they are, and where nothing is computed they are copied on the device.
    ///
    /// The work is one submission on wgpu's own queue: it follows whatever the application has submitted before, which may have written
    /// the frames, and not what it has only recorded. The application may overwrite them by work that it submits from now on.
    ///
    /// `source` has the usage `STORAGE` where something is computed, else `COPY_SRC`; `offset` is as for [`feed_into`](Self::feed_into).
    /// Frames have one field, on the device. Bind groups are made for each call, and go with its work: nothing of the application's is kept.
    ///
    /// ```
    /// use gpufeed::backend::wgpu::WgpuBackend;
    /// use gpufeed::{Feeder, FeederOptions, SampleLayout, wgpu};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Ok(backend) = WgpuBackend::open("vulkan:0") else { return Ok(()) };
    /// let mut feeder = Feeder::new(&backend, SampleLayout::image(2, 2, 4)?, FeederOptions::default())?;
    /// let rendered = backend.device().create_buffer(&wgpu::BufferDescriptor {
    ///     label: None,
    ///     size: 16,
    ///     usage: wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
    ///     mapped_at_creation: false,
    /// });
    /// backend.queue().write_buffer(&rendered, 0, &[9; 16]); // Or what a shader has written.
    /// assert_eq!(feeder.feed_buffer(&rendered, 0, 1)?.read()?, [9; 16]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`FeedError`], among them [`FeedError::Resource`] for a buffer that cannot be read. Nothing was sent.
    pub fn feed_buffer(
        &mut self,
        source: &wgpu::Buffer,
        offset: u64,
        frames: usize,
    ) -> Result<Batch<WgpuBackend>, FeedError> {
        self.feed_gpu(GpuFrames::Buffer(source, offset), frames)
    }

    /// As [`feed_buffer`](Self::feed_buffer), into a buffer of the application's as [`feed_into`](Self::feed_into).
    ///
    /// # Errors
    /// As both.
    pub fn feed_buffer_into(
        &mut self,
        source: &wgpu::Buffer,
        offset: u64,
        frames: usize,
        (target, target_offset): (&wgpu::Buffer, u64),
    ) -> Result<TargetBatch, FeedError> {
        self.feed_gpu_into(GpuFrames::Buffer(source, offset), frames, (target, target_offset))
    }

    /// Feeds a texture as a frame: what was rendered, or decoded by the GPU. No byte passes the CPU, and the work is one submission on
    /// wgpu's own queue, as with [`feed_buffer`](Self::feed_buffer).
    ///
    /// `R8Unorm` becomes frames of one channel, `Rgba8Unorm` and `Bgra8Unorm` those of three (alpha is left out) or four, in the order and
    /// with the pitch of the frames' [`PixelFormat`](crate::PixelFormat), whatever the texture's order. Of an sRGB texture the stored values are read, as of a picture in memory: its Unorm twin has to be
    /// among the `view_formats` that it was created with, which GL does not have. The texture has the frames' size, two dimensions, one mip level, one layer, one
    /// sample a texel and the usage `TEXTURE_BINDING`; the view says which texture is meant.
    ///
    /// With strategies whose kernels read slots in place a frame's bytes on the device are allocated at the first call, and so is a
    /// pipeline's geometry for frames that are in no slot, within the [byte budget](crate::FeederOptions::byte_budget).
    ///
    /// ```
    /// use gpufeed::backend::wgpu::WgpuBackend;
    /// use gpufeed::{Feeder, FeederOptions, Normalize, SampleLayout, wgpu};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Ok(backend) = WgpuBackend::open("vulkan:0") else { return Ok(()) };
    /// let options = FeederOptions { preprocess: Normalize::unit(3).into(), ..FeederOptions::default() };
    /// let mut feeder = Feeder::new(&backend, SampleLayout::image(4, 6, 3)?, options)?;
    /// let picture = backend.device().create_texture(&wgpu::TextureDescriptor {
    ///     label: Some("a render target"),
    ///     size: wgpu::Extent3d { width: 6, height: 4, depth_or_array_layers: 1 },
    ///     mip_level_count: 1,
    ///     sample_count: 1,
    ///     dimension: wgpu::TextureDimension::D2,
    ///     format: wgpu::TextureFormat::Bgra8Unorm,
    ///     usage: wgpu::TextureUsages::TEXTURE_BINDING | wgpu::TextureUsages::RENDER_ATTACHMENT,
    ///     view_formats: &[],
    /// });
    /// // Render, submit, and then:
    /// let batch = feeder.feed_texture(&picture.create_view(&wgpu::TextureViewDescriptor::default()))?;
    /// assert_eq!(batch.shape(), [1, 3, 4, 6]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`FeedError`], among them [`FeedError::Resource`] for a texture that cannot be read. Nothing was sent.
    pub fn feed_texture(&mut self, texture: &wgpu::TextureView) -> Result<Batch<WgpuBackend>, FeedError> {
        self.feed_gpu(GpuFrames::Texture(texture), 1)
    }

    /// As [`feed_texture`](Self::feed_texture), into a buffer of the application's as [`feed_into`](Self::feed_into), where a kernel
    /// writes it in any case.
    ///
    /// # Errors
    /// As both.
    pub fn feed_texture_into(
        &mut self,
        texture: &wgpu::TextureView,
        target: &wgpu::Buffer,
        offset: u64,
    ) -> Result<TargetBatch, FeedError> {
        self.feed_gpu_into(GpuFrames::Texture(texture), 1, (target, offset))
    }

    fn feed_gpu(&mut self, frames: GpuFrames<'_>, count: usize) -> Result<Batch<WgpuBackend>, FeedError> {
        self.check_gpu(frames, count)?;
        let mut output = self.take_output()?;
        match self.send_gpu(frames, count, &mut output) {
            Ok(id) => Ok(self.batch(id, output)),
            Err(error) => {
                self.outputs.put(output);
                Err(error)
            }
        }
    }

    fn feed_gpu_into(
        &mut self,
        frames: GpuFrames<'_>,
        count: usize,
        (target, offset): Place<'_>,
    ) -> Result<TargetBatch, FeedError> {
        self.check_gpu(frames, count)?;
        self.check_target(count, (target, offset), matches!(frames, GpuFrames::Texture(_)))?;
        let mut output = Output::for_feeder(self.lane.bare_tensor_in(target, offset), &self.layout)?;
        self.send_gpu(frames, count, &mut output)?;
        Ok(self.target_batch(output, offset))
    }

    fn check_target(&self, count: usize, target: Place<'_>, by_kernel: bool) -> Result<(), FeedError> {
        Ok(self.lane.check_target(&self.tensors, count, target, by_kernel)?)
    }

    fn check_gpu(&self, frames: GpuFrames<'_>, count: usize) -> Result<(), FeedError> {
        self.check_count(count)?;
        self.lane.check_frames(frames, count)?;
        let missing = self.lane.missing_bytes(frames);
        let (memory, taken) = (crate::backend::Lane::memory(&self.lane), self.outputs.taken());
        Ok(self.account.check_more(memory, taken, "frames without a slot", missing)?)
    }

    /// Submits frames that were checked, once there is room for another submission.
    fn send_gpu(
        &mut self,
        frames: GpuFrames<'_>,
        count: usize,
        output: &mut Output<WgpuTensor>,
    ) -> Result<u64, FeedError> {
        while !self.lane.has_room() {
            self.reap(Wait::One)?;
        }
        self.begin_lists(count, output);
        let id = self.lane.submit_frames(frames, count, &self.records(count)?, &output.tensor)?;
        Ok(self.sent(id, count, output))
    }

    /// What a pipeline's kernel is told of the next frames: their geometries, one after the other.
    fn records(&self, count: usize) -> Result<Vec<f32>, FeedError> {
        let Some(geometries) = &self.geometries else { return Ok(Vec::new()) };
        let words = (self.fed..self.fed + count as u64).map(|index| geometries.of(index, 0).map(|one| one.words()));
        let words: Result<Vec<_>, _> = words.collect();
        let refused = |error: LayoutError| FeedError::Device(DeviceError::Refused { message: error.to_string() });
        words.map(|words| words.concat()).map_err(refused)
    }

    fn target_batch(&self, output: Output<WgpuTensor>, offset: u64) -> TargetBatch {
        TargetBatch::new(output, &self.outputs, &self.tensors, self.geometries.clone(), offset)
    }
}

/// The error of a submission that wrote into a target: see [`SubmitError`].
fn of_target<E>(error: FillError<E>) -> FillError<E> {
    match error {
        FillError::Feed(FeedError::Device(error)) => FillError::Feed(SubmitError::from(error).into()),
        other => other,
    }
}
