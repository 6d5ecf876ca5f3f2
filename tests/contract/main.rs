//! One suite that every backend and strategy passes: the contract of `gpufeed::backend`, seen from outside.
//!
//! Tests on a device that this machine lacks are skipped in sight.

mod arrivals;
mod device;
#[cfg(feature = "wgpu")]
mod direct;
#[cfg(feature = "wgpu")]
mod external;
mod faults;
mod feeders;
mod fields;
mod frames;
mod lanes;
mod loaders;
mod masks;
mod moments;
mod pipelines;
mod ragged;
#[path = "../support/skip.rs"]
mod skip;
#[cfg(feature = "wgpu")]
mod steps;
#[cfg(feature = "wgpu")]
mod textures;
mod trust;

/// Makes every test of the suite for one way of opening a device and one strategy.
macro_rules! contract {
    ($name:ident, $open:expr, $strategy:ident) => {
        mod $name {
            use crate::device::run;
            use crate::{faults, feeders, fields, frames, lanes, loaders, masks, pipelines, ragged, trust};
            use gpufeed::Strategy;

            contract!(@tests $open, $strategy;
                lanes: bytes_arrive_as_they_were_written, several_batches_are_in_flight_at_once,
                    a_tensor_that_is_sent_again_reads_as_what_was_sent_last,
                    a_slot_is_not_reused_before_the_device_has_read_it,
                    nothing_in_flight_means_that_every_slot_is_free, a_half_filled_slot_is_never_sent,
                    what_is_refused_comes_back, what_is_submitted_ahead_is_bounded, an_output_that_fails_does_not_take_the_slot_along,
                    the_devices_own_times_are_those_of_its_batches;
                loaders: shapes_of_every_kind_arrive_whole, normalised_images_are_within_the_bound,
                    fingerprints_are_those_of_the_delivered_bytes, batches_do_not_depend_on_workers_or_slots,
                    a_batch_outlives_its_loader, a_batch_may_be_dropped_on_another_thread,
                    a_forgotten_batch_costs_its_tensor_only, holding_every_tensor_is_an_error_not_a_hang,
                    batches_can_be_awaited, a_large_batch_is_split_or_refused_before_anything_is_allocated,
                    memory_is_constant_over_a_thousand_epochs;
                fields: every_field_of_a_sample_arrives, bad_samples_cost_none_of_the_others_fields,
                    frames_with_several_fields_are_pushed_whole;
                ragged: every_sample_has_its_own_number_of_rows, half_a_row_and_a_row_too_many_cost_their_batch_by_name,
                    bad_samples_cost_none_of_the_others_rows,
                    frames_of_tokens_are_pushed_as_long_as_they_are;
                pipelines: every_format_filter_type_and_layout_is_within_its_bound,
                    the_geometry_of_a_sample_is_that_of_its_seed_alone, pushed_frames_tell_their_geometry,
                    batches_in_parts_are_whole, a_batch_of_many_tiles_is_within_its_bound;
                masks: masks_share_the_geometry_of_their_image, masks_in_parts_are_whole,
                    pushed_masks_share_the_geometry_of_their_frame, masks_that_do_not_fit_are_named;
                feeders: frames_become_batches_in_the_order_they_are_pushed, frames_are_normalised,
                    frames_that_do_not_fit_are_named_and_nothing_is_lost, frames_can_be_awaited,
                    a_device_lost_between_frames_is_an_error;
                frames: a_closure_writes_frames_in_place, a_closure_that_fails_or_panics_costs_its_frames_only,
                    labels_fields_and_tags_come_with_the_batch, a_slot_that_was_waited_for_is_for_the_next_frames,
                    streams_share_batches_in_the_order_of_arrival,
                    frames_whose_batch_was_not_sent_are_those_of_the_next_try;
                faults: a_source_that_fails_is_named_and_the_next_batch_arrives,
                    a_panic_and_a_short_sample_are_errors, dropping_at_any_moment_returns,
                    an_epoch_that_is_dropped_at_once_is_not_read, an_epoch_may_fail_at_every_sample,
                    a_device_lost_while_slots_are_filled_is_an_error, a_strategy_of_another_backend_says_why;
                trust: an_epoch_goes_on_where_any_token_was_made, a_changed_configuration_is_not_resumed,
                    skipped_samples_shift_nothing, substitutes_are_the_same_everywhere, too_many_bad_samples_end_the_epoch,
                    unordered_batches_are_the_same_batches, a_waiting_user_can_be_cancelled,
                    a_wait_can_end_in_time, padding_fills_the_last_batch;
            );
        }
    };
    (direct $name:ident, $open:expr, $strategy:ident) => {
        mod $name {
            use crate::device::run;
            use crate::{fields, loaders, pipelines, ragged, trust};
            use gpufeed::Strategy;

            contract!(@tests $open, $strategy;
                loaders: shapes_of_every_kind_arrive_whole, normalised_images_are_within_the_bound,
                    fingerprints_are_those_of_the_delivered_bytes, batches_do_not_depend_on_workers_or_slots,
                    a_batch_outlives_its_loader, a_batch_may_be_dropped_on_another_thread,
                    a_forgotten_batch_costs_its_tensor_only, holding_every_tensor_is_an_error_not_a_hang,
                    batches_can_be_awaited, memory_is_constant_over_a_thousand_epochs;
                fields: several_fields_are_not_read_in_place;
                ragged: rows_of_any_number_are_not_read_in_place;
                pipelines: every_format_filter_type_and_layout_is_within_its_bound,
                    the_geometry_of_a_sample_is_that_of_its_seed_alone, a_mask_is_not_read_in_place,
                    samples_without_a_geometry_are_refused;
                trust: an_epoch_goes_on_where_any_token_was_made, padding_fills_the_last_batch;
            );
        }
    };
    (loaders $name:ident, $open:expr, $strategy:ident) => {
        mod $name {
            use crate::device::run;
            use crate::{faults, fields, loaders, masks, pipelines, ragged, trust};
            use gpufeed::Strategy;

            contract!(@tests $open, $strategy;
                loaders: shapes_of_every_kind_arrive_whole, normalised_images_are_within_the_bound,
                    fingerprints_are_those_of_the_delivered_bytes, batches_do_not_depend_on_workers_or_slots,
                    a_batch_outlives_its_loader, a_batch_may_be_dropped_on_another_thread,
                    a_forgotten_batch_costs_its_tensor_only, holding_every_tensor_is_an_error_not_a_hang,
                    batches_can_be_awaited, memory_is_constant_over_a_thousand_epochs;
                faults: a_source_that_fails_is_named_and_the_next_batch_arrives,
                    a_panic_and_a_short_sample_are_errors, dropping_at_any_moment_returns,
                    an_epoch_that_is_dropped_at_once_is_not_read, an_epoch_may_fail_at_every_sample,
                    a_device_lost_while_slots_are_filled_is_an_error;
                fields: every_field_of_a_sample_arrives, bad_samples_cost_none_of_the_others_fields;
                ragged: every_sample_has_its_own_number_of_rows, half_a_row_and_a_row_too_many_cost_their_batch_by_name,
                    bad_samples_cost_none_of_the_others_rows;
                pipelines: every_format_filter_type_and_layout_is_within_its_bound,
                    the_geometry_of_a_sample_is_that_of_its_seed_alone;
                masks: masks_share_the_geometry_of_their_image, masks_in_parts_are_whole;
                trust: an_epoch_goes_on_where_any_token_was_made, skipped_samples_shift_nothing,
                    unordered_batches_are_the_same_batches, a_waiting_user_can_be_cancelled,
                    a_wait_can_end_in_time, padding_fills_the_last_batch;
            );
        }
    };
    (@tests $open:expr, $strategy:ident; $($module:ident: $($test:ident),+;)+) => {
        $($(
            #[test]
            fn $test() {
                run(concat!(module_path!(), "::", stringify!($test)), $open, Strategy::$strategy, |open| {
                    $module::$test(&open.backend(), open.strategy);
                });
            }
        )+)+
    };
}

contract!(host_memcpy, crate::device::host, Memcpy);
contract!(host_slow_memcpy, crate::device::slow_host, Memcpy);
contract!(host_ending_between_looks, crate::device::host_ending_between_looks, Memcpy);
contract!(host_with_two_queues, crate::device::host_with_two_queues, Memcpy);
// Without frames that are pushed: a feeder waits for no tensor.
contract!(loaders host_with_kernels_beside, crate::device::host_with_kernels_beside, Memcpy);

/// Makes every test of strategies that read the source's own memory.
#[cfg(feature = "wgpu")]
macro_rules! direct {
    ($name:ident, $open:expr, $strategy:ident) => {
        mod $name {
            use crate::device::run;
            use crate::direct;
            use gpufeed::Strategy;

            contract!(@tests $open, $strategy;
                direct: samples_of_every_size_arrive_whole, samples_may_lie_anywhere,
                    memory_larger_than_a_binding_is_read_everywhere,
                    normalised_samples_are_within_the_bound, fingerprints_are_those_of_the_samples,
                    many_shuffled_batches_are_in_flight_at_once, what_cannot_be_read_is_refused,
                    an_output_that_fails_costs_its_batch_only, memory_that_holds_no_sample_is_refused,
                    memory_is_let_go_after_its_last_use, a_lane_may_be_dropped_with_batches_in_flight,
                    a_device_may_be_destroyed_while_it_reads, the_devices_own_times_are_those_of_its_batches;
            );
        }
    };
}

/// Makes every test of an application's own buffers and textures.
#[cfg(feature = "wgpu")]
macro_rules! external {
    ($name:ident, $open:expr, $strategy:ident) => {
        mod $name {
            use crate::device::run;
            use crate::{external, textures};
            use gpufeed::Strategy;

            contract!(@tests $open, $strategy;
                external: tensors_are_written_straight_into_an_applications_buffer,
                    a_target_that_cannot_be_written_is_refused_by_name, frames_in_a_buffer_become_tensors_where_they_are,
                    frames_that_cannot_be_read_where_they_are_are_refused_by_name,
                    a_buffer_of_another_device_is_refused, work_is_ordered_with_the_applications_own;
                textures: a_texture_becomes_the_frame_that_its_texels_are, a_texture_that_is_no_frame_is_refused_by_name,
                    a_destroyed_texture_is_refused, a_texture_has_an_applications_step_too;
            );
        }
    };
}

/// Makes every test of an application's own steps.
#[cfg(feature = "wgpu")]
macro_rules! steps {
    (nowhere $name:ident, $open:expr, $strategy:ident) => {
        mod $name {
            use crate::device::run;
            use crate::steps;
            use gpufeed::Strategy;

            contract!(@tests $open, $strategy; steps: a_step_that_nothing_records_is_refused_by_name;);
        }
    };
    (loaders $name:ident, $open:expr, $strategy:ident) => {
        mod $name {
            use crate::device::run;
            use crate::steps;
            use gpufeed::Strategy;

            contract!(@tests $open, $strategy;
                steps: a_step_changes_what_the_kernels_made, a_step_makes_the_tensor_or_is_refused_by_name,
                    a_step_that_fails_in_a_loader_is_an_error_of_its_batch;
            );
        }
    };
    ($name:ident, $open:expr, $strategy:ident) => {
        mod $name {
            use crate::device::run;
            use crate::steps;
            use gpufeed::Strategy;

            contract!(@tests $open, $strategy;
                steps: a_step_changes_what_the_kernels_made, a_step_makes_the_tensor_or_is_refused_by_name,
                    a_step_that_fails_costs_its_batch_only, a_step_that_fails_in_a_loader_is_an_error_of_its_batch,
                    a_tensor_that_a_step_destroys_is_lost, frames_that_are_on_the_gpu_have_the_step_too;
            );
        }
    };
}

#[cfg(feature = "wgpu")]
steps!(nowhere host_records_no_steps, crate::device::host, Memcpy);

#[cfg(feature = "wgpu")]
mod vulkan {
    steps!(steps_write_buffer, crate::device::vulkan, WriteBuffer);
    steps!(steps_write_buffer_with, crate::device::vulkan, WriteBufferWith);
    steps!(steps_staging_belt, crate::device::vulkan, StagingBelt);
    steps!(steps_fresh_mapped, crate::device::vulkan, FreshMapped);
    steps!(steps_mapped_ring, crate::device::vulkan, MappedRing);
    steps!(steps_direct_map, crate::device::vulkan, DirectMap);
    steps!(steps_system_ring, crate::device::vulkan, SystemRing);
    steps!(steps_system_ring_in_place, crate::device::vulkan_in_place, SystemRing);
    steps!(loaders steps_system_ring_beside, crate::device::vulkan_with_two_queues, SystemRing);
    steps!(nowhere no_steps_beside, crate::device::vulkan_with_kernels_beside, SystemRing);
    steps!(nowhere no_steps_in_place, crate::device::vulkan, Imported);
    external!(external_write_buffer, crate::device::vulkan, WriteBuffer);
    external!(external_write_buffer_with, crate::device::vulkan, WriteBufferWith);
    external!(external_staging_belt, crate::device::vulkan, StagingBelt);
    external!(external_mapped_ring, crate::device::vulkan, MappedRing);
    external!(external_direct_map, crate::device::vulkan, DirectMap);
    external!(external_system_ring, crate::device::vulkan, SystemRing);
    external!(external_system_ring_in_place, crate::device::vulkan_in_place, SystemRing);
    external!(external_on_an_applications_device, crate::device::vulkan_of_an_application, MappedRing);
    external!(external_in_parts, crate::device::vulkan_of_small_bindings, MappedRing);
    direct!(imported, crate::device::vulkan, Imported);
    direct!(imported_by_copies, crate::device::vulkan_that_copies, Imported);
    direct!(imported_on_an_applications_device, crate::device::vulkan_of_an_application, Imported);
    direct!(imported_in_parts, crate::device::vulkan_of_small_bindings, Imported);
    direct!(imported_in_parts_by_copies, crate::device::vulkan_of_small_bindings_that_copies, Imported);
    contract!(direct imported_by_a_loader, crate::device::vulkan, Imported);
    contract!(write_buffer, crate::device::vulkan, WriteBuffer);
    contract!(write_buffer_with, crate::device::vulkan, WriteBufferWith);
    contract!(staging_belt, crate::device::vulkan, StagingBelt);
    contract!(fresh_mapped, crate::device::vulkan, FreshMapped);
    contract!(mapped_ring, crate::device::vulkan, MappedRing);
    contract!(direct_map, crate::device::vulkan, DirectMap);
    contract!(system_ring, crate::device::vulkan, SystemRing);
    contract!(system_ring_in_place, crate::device::vulkan_in_place, SystemRing);
    contract!(system_ring_on_an_applications_device, crate::device::vulkan_of_an_application, SystemRing);
    contract!(loaders system_ring_beside, crate::device::vulkan_with_two_queues, SystemRing);
    contract!(direct imported_beside, crate::device::vulkan_with_two_queues, Imported);
    contract!(loaders system_ring_with_kernels_beside, crate::device::vulkan_with_kernels_beside, SystemRing);
    contract!(direct imported_with_kernels_beside, crate::device::vulkan_with_kernels_beside, Imported);
    contract!(mapped_ring_on_an_applications_device, crate::device::vulkan_of_an_application, MappedRing);

    mod in_parts {
        use crate::device::run;
        use crate::{masks, pipelines};
        use gpufeed::Strategy;

        contract!(@tests crate::device::vulkan_of_small_bindings, MappedRing;
            pipelines: batches_in_parts_are_whole;
            masks: masks_in_parts_are_whole;
        );
    }

    mod imported_by_a_loader_in_parts {
        use crate::device::run;
        use crate::pipelines;
        use gpufeed::Strategy;

        contract!(@tests crate::device::vulkan_of_small_bindings, Imported; pipelines: batches_in_parts_are_whole;);
    }
}

#[cfg(feature = "wgpu")]
mod gl {
    steps!(steps_write_buffer, crate::device::gl, WriteBuffer);
    steps!(steps_write_buffer_with, crate::device::gl, WriteBufferWith);
    steps!(steps_staging_belt, crate::device::gl, StagingBelt);
    steps!(steps_fresh_mapped, crate::device::gl, FreshMapped);
    steps!(steps_mapped_ring, crate::device::gl, MappedRing);
    external!(external_write_buffer, crate::device::gl, WriteBuffer);
    external!(external_mapped_ring, crate::device::gl, MappedRing);
    contract!(write_buffer, crate::device::gl, WriteBuffer);
    contract!(write_buffer_with, crate::device::gl, WriteBufferWith);
    contract!(staging_belt, crate::device::gl, StagingBelt);
    contract!(fresh_mapped, crate::device::gl, FreshMapped);
    contract!(mapped_ring, crate::device::gl, MappedRing);
}

/// What is the same everywhere, on an API that one system alone has.
#[cfg(all(feature = "wgpu", any(windows, target_vendor = "apple")))]
macro_rules! native {
    ($name:ident, $open:expr, $of_an_application:expr, $on_one_queue:expr, $in_place:expr) => {
        mod $name {
            direct!(imported, $open, Imported);
            contract!(direct imported_by_a_loader, $open, Imported);
            contract!(write_buffer, $open, WriteBuffer);
            contract!(write_buffer_with, $open, WriteBufferWith);
            contract!(staging_belt, $open, StagingBelt);
            contract!(fresh_mapped, $open, FreshMapped);
            contract!(mapped_ring, $open, MappedRing);
            contract!(direct_map, $open, DirectMap);
            contract!(system_ring, $open, SystemRing);
            contract!(system_ring_on_one_queue, $on_one_queue, SystemRing);
            contract!(system_ring_in_place, $in_place, SystemRing);
            contract!(system_ring_on_an_applications_device, $of_an_application, SystemRing);
            contract!(mapped_ring_on_an_applications_device, $of_an_application, MappedRing);
        }
    };
}

#[cfg(all(feature = "wgpu", windows))]
native!(
    dx12,
    crate::device::dx12,
    crate::device::dx12_of_an_application,
    crate::device::dx12_on_one_queue,
    crate::device::dx12_in_place
);
#[cfg(all(feature = "wgpu", target_vendor = "apple"))]
native!(
    metal,
    crate::device::metal,
    crate::device::metal_of_an_application,
    crate::device::metal_on_one_queue,
    crate::device::metal_in_place
);

#[cfg(feature = "cuda")]
mod cuda {
    contract!(direct registered_by_a_loader, crate::device::cuda, Registered);
    contract!(pageable, crate::device::cuda, Pageable);
    contract!(pin_per_batch, crate::device::cuda, PinPerBatch);
    contract!(pinned_ring, crate::device::cuda, PinnedRing);
    contract!(pinned_write_combined, crate::device::cuda, PinnedWriteCombined);
    contract!(pinned_ring_in_an_applications_context, crate::device::cuda_of_an_application, PinnedRing);
}
