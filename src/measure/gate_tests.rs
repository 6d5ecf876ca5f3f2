use super::*;

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-3
}

/// Pseudo-random numbers of a normal distribution, the same ones always (Box and Muller, from a linear congruential generator).
fn normal(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(3_037_000_493);
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    };
    move || (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()
}

#[test]
fn the_interval_of_runs_is_that_of_the_textbook() {
    // Logarithms 0.01, 0.02, 0.03: mean 0.02, standard deviation 0.01, t(2) = 9.925.
    let found = RatioInterval::of_runs(&[0.01f64.exp(), 0.02f64.exp(), 0.03f64.exp()]).expect("three runs");
    let half = 9.925 * 0.01 / 3f64.sqrt();
    assert!(close(found.ratio, 0.02f64.exp()) && close(found.low, (0.02 - half).exp()), "{found:?}");
    assert!(close(found.high, (0.02 + half).exp()) && found.samples == 3, "{found:?}");
    assert_eq!(RatioInterval::of_runs(&[1.0]), None);
    assert_eq!(RatioInterval::of_runs(&[1.0, f64::NAN]), None);
    assert_eq!(RatioInterval::of_runs(&[1.0, 0.0]), None);
}

#[test]
fn the_interval_of_records_is_that_of_the_mann_whitney_table() {
    // Five and five: the table's critical value is 2 at 95 in 100, so that the third difference from each end bounds.
    let theirs = [1.0, 2.0, 4.0, 8.0, 16.0];
    let ours = theirs.map(|rate| rate * 32.0);
    let found = RatioInterval::of_records(&ours, &theirs).expect("five each");
    assert!(close(found.ratio, 32.0) && close(found.low, 4.0) && close(found.high, 256.0), "{found:?}");
    assert_eq!(RatioInterval::of_records(&ours[..2], &theirs[..2]), None, "two rounds bound nothing");
}

#[test]
fn paired_rounds_cancel_drift_and_outliers() {
    let theirs: Vec<f64> = (1..=20).map(f64::from).collect();
    let mut ours: Vec<f64> = theirs.iter().map(|rate| rate * 0.95).collect();
    assert!(close(paired_ratio(&ours, &theirs).expect("pairs"), 0.95));
    ours[3] *= 0.01;
    ours[7] *= 50.0;
    ours[11] *= 0.2;
    assert!(close(paired_ratio(&ours, &theirs).expect("pairs"), 0.95), "three of twenty are outliers");
    assert_eq!(paired_ratio(&[], &[]), None);
}

#[test]
fn the_gate_needs_the_whole_interval_on_one_side() {
    let interval = |low, high| RatioInterval { ratio: f64::midpoint(low, high), low, high, samples: 5 };
    assert_eq!(interval(0.975, 1.02).gate(0.03), Gate::Passes);
    assert_eq!(interval(0.93, 0.969).gate(0.03), Gate::Fails);
    assert_eq!(interval(0.95, 0.99).gate(0.03), Gate::Undecided);
    assert_eq!(interval(0.95, 0.99).gate(0.10), Gate::Passes);
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    let (mut runs, mut records) = (0, 0);
    for seed in 0..2000 {
        let mut noise = normal(seed);
        let ratios: Vec<f64> = (0..6).map(|_| (0.02 * noise()).exp() * 0.95).collect();
        let found = RatioInterval::of_runs(&ratios).expect("six runs");
        runs += u32::from(found.low <= 0.95 && 0.95 <= found.high);
        let mut rates = |level: f64| (0..10).map(|_| level * (0.05 * noise()).exp()).collect::<Vec<_>>();
        let found = RatioInterval::of_records(&rates(0.95), &rates(1.0)).expect("ten rounds each");
        records += u32::from(found.low <= 0.95 && 0.95 <= found.high);
    }
    assert!((1970..=1992).contains(&runs), "99 in 100 of 2000: {runs}");
    assert!((1880..=1930).contains(&records), "95 in 100 of 2000: {records}");
}
