//! How long a consumer computes, from how long its steps took. Pure.
//!
//! A program does not see how long its work is on the device: it queues it and goes on. What it sees is how long a step takes, from batch
//! to batch. If copies and compute take turns that is the sum of both, if they overlap it is the longer one, and on most devices it is
//! something between. So work is tried that makes the same strategy as slow as it was. A consumer that computes for far longer than a
//! transfer takes is tried with less: what hides a transfer then hides it behind more as well.

/// Steps within this share of each other are equal: trials are short.
const EQUAL: f64 = 0.05;
/// A step beside a consumer that takes this much longer than one alone is the consumer's doing.
const SLOWER: f64 = 1.1;
const TRIES: usize = 6;
/// Compute that is tried at most, in steps without it.
const MOST: f64 = 3.0;

/// Seconds of compute that are tried at most, where a step took `seen` seconds and one without compute takes `alone`.
pub(super) fn most(seen: f64, alone: f64) -> f64 {
    seen.min(MOST * alone)
}

/// Seconds of compute that make a step take `seen` seconds, where one without compute takes `alone` and `step` tells what one with
/// compute takes, or has no time left to. Zero if the consumer makes no difference.
pub(super) fn compute_of(seen: f64, alone: f64, mut step: impl FnMut(f64) -> Option<f64>) -> f64 {
    if seen <= SLOWER * alone {
        return 0.0;
    }
    let most = most(seen, alone);
    // If they took turns. There is at least so much of it, and at most the whole step.
    let mut compute = (seen - alone).min(most);
    for _ in 0..TRIES {
        if compute >= most {
            break;
        }
        let Some(step) = step(compute) else { break };
        let off = seen - step;
        if off.abs() <= EQUAL * seen {
            break;
        }
        let next = (compute + off).clamp(0.0, most);
        if (next - compute).abs() <= EQUAL * seen / 2.0 {
            break;
        }
        compute = next;
    }
    compute
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, right: f64) {
        assert!((found - right).abs() <= EQUAL * right, "{found} instead of {right}");
    }

    #[test]
    fn where_copies_and_compute_take_turns_the_compute_is_the_rest_of_the_step() {
        close(compute_of(1.8, 0.8, |compute| Some(0.8 + compute)), 1.0);
        close(compute_of(1.2, 0.8, |compute| Some(0.8 + compute)), 0.4);
    }

    #[test]
    fn where_they_overlap_the_compute_is_the_step() {
        close(compute_of(1.5, 0.8, |compute| Some(compute.max(0.8))), 1.5);
        close(compute_of(1.0, 0.8, |compute| Some(compute.max(0.8))), 1.0);
    }

    #[test]
    fn between_the_two_it_is_what_makes_as_long_a_step() {
        // Half of the copy is hidden.
        close(compute_of(1.6, 0.8, |compute| Some(compute.max(0.8) + 0.5 * compute.min(0.8))), 1.2);
    }

    #[test]
    fn far_more_compute_than_transfer_is_tried_with_less() {
        close(compute_of(80.0, 0.8, |_| panic!("there is nothing to be looked for")), 2.4);
        assert_eq!((most(80.0, 0.8), most(1.0, 0.8)), (MOST * 0.8, 1.0));
    }

    #[test]
    fn without_time_to_look_it_is_taken_that_they_took_turns() {
        close(compute_of(1.85, 0.8, |_| None), 1.05);
    }

    #[test]
    fn a_consumer_that_costs_no_time_computes_nothing_that_matters() {
        assert_eq!(compute_of(0.85, 0.8, |_| None), 0.0);
        // A strategy that no compute makes slower is not looked for without end, and never beyond the step.
        assert!((0.7..=1.5).contains(&compute_of(1.5, 0.8, |_| Some(0.8))));
    }
}
