//! The countdown of a slot's regions and the slot's hand-over, under every order of their steps that a bounded number of
//! preemptions allows, by loom. What is checked is the crate's own file, `src/staging/countdown.rs`, with loom's atomics.
//!
//! The same models over weakened orderings must fail: that is the proof that they can.

#![allow(clippy::duplicate_mod)] // That is the point: one file over several kinds of atomics.

mod loom_atomics;
mod without_acquire;
mod without_release;

use loom_atomics::models as right;

/// Loom explores more orders of two threads than of four: preemptions that a model can afford.
const THOROUGH: usize = 4;
const WIDE: usize = 2;

#[test]
fn what_the_regions_wrote_is_there_when_the_fill_finishes() {
    right::finish_sees_every_region(THOROUGH);
}

#[test]
fn one_region_is_the_last_and_an_abandoned_one_cancels() {
    right::one_of_three_is_the_last(WIDE);
}

#[test]
fn a_slot_is_claimed_again_only_after_its_last_writer() {
    right::a_second_fill_follows_the_first(THOROUGH);
}

#[test]
fn a_fill_is_begun_again_only_after_its_last_region() {
    right::a_restarted_fill_follows_its_first_regions(THOROUGH);
}

#[test]
fn memory_is_let_go_only_after_its_last_writer() {
    right::the_owner_frees_after_the_last_writer(THOROUGH);
}

#[test]
fn a_cancelled_fill_is_cancelled_even_if_the_slot_is_claimed_at_once() {
    right::a_cancelled_fill_never_passes_for_filled(THOROUGH);
}

#[test]
fn a_slot_goes_from_hand_to_hand_by_channels() {
    right::two_fills_by_channels(WIDE);
}

/// Each must fail without the ordering that it rests on.
macro_rules! fails {
    ($($test:ident: $weakened:ident :: $model:ident;)+) => {$(
        #[test]
        #[should_panic(expected = "Causality violation")]
        fn $test() {
            $weakened::models::$model(THOROUGH);
        }
    )+};
}

fails! {
    finishing_needs_acquire: without_acquire::finish_sees_every_region;
    claiming_needs_acquire: without_acquire::a_second_fill_follows_the_first;
    restarting_needs_acquire: without_acquire::a_restarted_fill_follows_its_first_regions;
    freeing_needs_acquire: without_acquire::the_owner_frees_after_the_last_writer;
    finishing_needs_the_writers_release: without_release::finish_sees_every_region;
    claiming_needs_the_writers_release: without_release::a_second_fill_follows_the_first;
    restarting_needs_the_writers_release: without_release::a_restarted_fill_follows_its_first_regions;
    freeing_needs_release: without_release::the_owner_frees_after_the_last_writer;
    channels_do_not_order_all_writers: without_release::two_fills_by_channels;
}
