use crate::backend::{GpuTimes, Strategy};
use crate::loader::{Bottleneck, LoaderStats, PumpWaits};
use crate::measure::report::{Configuration, GpuRates, Status};
use crate::measure::testing::{device, measured};

#[test]
fn the_fastest_strategy_wins_with_its_ratio_to_the_next() {
    let mut report = device(vec![
        measured(Strategy::WriteBuffer, 64, &[100.0, 101.0, 99.0]),
        measured(Strategy::MappedRing, 64, &[200.0, 202.0, 198.0]),
    ]);
    report.summarise();
    let winner = report.winner.expect("a winner");
    assert_eq!(winner.settings.strategy, Strategy::MappedRing);
    assert_eq!(winner.runner_up.map(|s| s.strategy), Some(Strategy::WriteBuffer));
    assert_eq!((winner.ratio, winner.rounds, winner.beyond_noise), (Some(2.0), 3, true));
    assert!(report.sweep.is_empty(), "one combination of sizes is no sweep");
}

#[test]
fn a_sweep_has_a_winner_for_each_combination_and_strategies_meet_at_their_best() {
    let mut report = device(vec![
        measured(Strategy::WriteBuffer, 8, &[300.0; 3]),
        measured(Strategy::MappedRing, 8, &[200.0; 3]),
        measured(Strategy::WriteBuffer, 64, &[100.0; 3]),
        measured(Strategy::MappedRing, 64, &[400.0; 3]),
    ]);
    report.summarise();
    let winners: Vec<_> = report.sweep.iter().map(|w| (w.settings.batch_size, w.settings.strategy)).collect();
    assert_eq!(winners, [(8, Strategy::WriteBuffer), (64, Strategy::MappedRing)]);
    let winner = report.winner.expect("a winner");
    assert_eq!((winner.settings.batch_size, winner.runner_up.map(|s| s.batch_size)), (64, Some(8)));
}

#[test]
fn samples_of_several_sizes_are_held_against_their_own_ceilings_and_win_by_their_bytes() {
    let of_size = |sample_bytes: u64, samples_s: f64, copy: f64| {
        let row = |strategy, samples_s: f64| {
            let mut row = measured(strategy, 64, &[samples_s; 3]);
            row.settings.sample_bytes = sample_bytes;
            row.rounds.iter_mut().for_each(|round| round.gb_s = samples_s * sample_bytes as f64 / 1e9);
            row
        };
        let slower = row(Strategy::WriteBuffer, samples_s / 4.0);
        let mut report = device(vec![row(Strategy::MappedRing, samples_s), slower]);
        (report.ceilings[0].device_copy_gb_s, report.kernel_ceiling_gb_s) = (Some(copy), Some(40.0 * copy));
        report.summarise();
        report
    };
    let mut report = of_size(1_000_000, 4000.0, 8.0);
    report.merge(of_size(4_000_000, 1500.0, 12.0));
    let shares: Vec<_> = report.configurations.iter().map(|row| row.figures.get("percent_of_copy")).collect();
    assert_eq!(shares, [Some(50.0), Some(12.5), Some(50.0), Some(12.5)]);
    assert_eq!(report.kernel_ceiling_gb_s, Some(480.0));
    assert_eq!(report.sweep.iter().map(|won| won.settings.sample_bytes).collect::<Vec<_>>(), [1_000_000, 4_000_000]);
    let won = report.winner.expect("a winner");
    let sizes = (won.settings.sample_bytes, won.runner_up.map(|second| second.sample_bytes));
    assert_eq!(sizes, (4_000_000, Some(4_000_000)), "more bytes, not more samples, and against one of its own size");
    assert_eq!(won.ratio, Some(4.0));
}

#[test]
fn what_failed_does_not_win_and_shares_are_of_the_copy() {
    let mut fast = measured(Strategy::WriteBuffer, 64, &[900.0; 3]);
    fast.status = Status::Failed { message: "wrong bytes".into(), wrong_data: true };
    let mut report = device(vec![fast, measured(Strategy::MappedRing, 64, &[200.0; 3])]);
    report.ceilings[0].device_copy_gb_s = Some(0.5);
    report.summarise();
    assert_eq!(report.winner.as_ref().map(|w| w.settings.strategy), Some(Strategy::MappedRing));
    let figures = &report.configurations[1].figures;
    assert_eq!(["percent_of_copy", "times_memcpy"].map(|key| figures.get(key)), [Some(40.0), Some(0.05)]);
    assert_eq!(["staging_gb_s", "staging_times_memcpy"].map(|key| figures.get(key)), [Some(2.0), Some(0.5)]);
}

#[test]
fn nothing_is_shown_above_its_ceiling() {
    let mut report = device(vec![measured(Strategy::MappedRing, 64, &[9600.0; 3])]);
    let times = GpuTimes { batches: 9, ..GpuTimes::default() };
    let clock = GpuRates { times, copy_gb_s: Some(7.9), kernel_gb_s: Some(2_028_169.0) };
    report.configurations[0].gpu = Some(clock);
    report.software = false;
    report.kernel_ceiling_gb_s = Some(3_000_000.0);
    report.summarise();
    report.summarise();
    assert_eq!(report.kernel_ceiling_gb_s, None, "the ceiling's clock is no better");
    assert!(report.kernel_ceiling_error.as_deref().is_some_and(|why| why.contains("is no measurement")));
    let row = &report.configurations[0];
    let figure = |key: &str| row.figures.get(key);
    assert_eq!((figure("percent_of_copy"), figure("times_memcpy")), (None, Some(2.4)), "120% of a copy is no ceiling");
    assert_eq!((figure("gpu_copy_gb_s"), figure("gpu_kernel_gb_s")), (Some(7.9), None));
    assert!(matches!(&row.doubts[..], [why] if why.contains("kernels by the device's clock: 2028169 GB/s")), "{row:?}");
}

#[test]
fn what_held_a_recorded_configuration_back_is_judged_as_a_loader_is() {
    let mut row = measured(Strategy::PinnedRing, 64, &[100.0; 3]);
    for round in &mut row.rounds {
        let waits = PumpWaits { device_s: 0.9, ..PumpWaits::default() };
        round.stats = LoaderStats { batches: 50, active_s: 1.0, waits, ..LoaderStats::default() };
    }
    // 30 ms of copies and 10 ms of kernels a batch, in a pass of its own.
    let times = GpuTimes { copy_s: 0.15, kernel_s: 0.05, batches: 5 };
    row.gpu = Some(GpuRates { times, copy_gb_s: Some(6.0), kernel_gb_s: Some(30.0) });
    let mut report = device(vec![row]);
    report.summarise();
    let held_back = report.configurations[0].held_back.expect("judged");
    assert_eq!(held_back.bottleneck, Bottleneck::Copy);
    let recorded = serde_json::to_string(&report).expect("JSON");
    let mut again: crate::measure::report::DeviceReport = serde_json::from_str(&recorded).expect("a report");
    again.configurations[0].held_back = None;
    again.summarise();
    assert_eq!(again.configurations[0].held_back, Some(held_back));
    again.configurations[0].doubts.push("the clock is wrong".to_owned());
    again.summarise();
    let without = again.configurations[0].held_back.map(|found| found.bottleneck);
    assert_eq!(without, Some(Bottleneck::Device), "a clock that is not believed tells nothing apart");
}

/// A row whose steps took so many microseconds: 8 MB a batch, beside a consumer that computes for so long.
fn steps(strategy: Strategy, compute_us: u32, step_us: f64) -> Configuration {
    let mut row = measured(strategy, 8, &[1.0; 3]);
    row.settings.compute_us = compute_us;
    row.compute_alone_us = (compute_us > 0).then(|| f64::from(compute_us) + 10.0);
    for round in &mut row.rounds {
        (round.batches, round.bytes, round.seconds) = (1000, 8_000_000_000, step_us / 1e3);
        (round.samples_s, round.waited_s, round.stats.next_s) = (8e6 / step_us, 0.1, 0.2);
        round.gb_s = 8e3 / step_us;
    }
    row
}

#[test]
fn what_is_hidden_follows_from_the_steps_beside_both_consumers() {
    let mut report = device(vec![
        steps(Strategy::SystemRing, 0, 1200.0),
        steps(Strategy::SystemRing, 990, 1300.0),
        steps(Strategy::Imported, 0, 1100.0),
        steps(Strategy::Imported, 990, 2100.0),
        steps(Strategy::Imported, 3000, 3000.0),
    ]);
    // A batch of 8 MB: 1,000 us on the device alone, 2,000 in the CPU's memcpy.
    report.ceilings[0].batch_copy_gb_s = Some(8.0);
    report.summarise();
    let figures = |key: &str| -> Vec<Option<f64>> {
        let round = |figure: f64| (figure * 100.0).round() / 100.0;
        report.configurations.iter().map(|row| row.figures.get(key).map(round)).collect()
    };
    assert_eq!(figures("step_us"), [1200.0, 1300.0, 1100.0, 2100.0, 3000.0].map(Some));
    assert_eq!(
        figures("compute_us"),
        [0.0, 1000.0, 0.0, 1000.0, 3010.0].map(Some),
        "what it takes, and not what was asked"
    );
    assert_eq!(
        figures("ideal_us"),
        [2000.0, 2000.0, 1000.0, 1000.0, 3010.0].map(Some),
        "direct strategies have no fill"
    );
    assert_eq!(figures("step_times_ideal"), [0.6, 0.65, 1.1, 2.1, 1.0].map(Some));
    // 1,200 + 1,000 - 1,300 of 1,000; 1,100 + 1,000 - 2,100 of 1,000; all of the 1,100, and no more.
    assert_eq!(figures("hidden_percent"), [None, Some(90.0), None, Some(0.0), Some(100.0)]);
    assert_eq!(figures("cpu_waits_us"), [Some(300.0); 5]);
    let winners: Vec<_> = report.busy.iter().map(|won| (won.settings.compute_us, won.settings.strategy)).collect();
    assert_eq!(winners, [(990, Strategy::SystemRing), (3000, Strategy::Imported)]);
    assert_eq!(report.winner.map(|won| won.settings.strategy), Some(Strategy::Imported), "beside an idle consumer");
    assert!(report.sweep.is_empty());
}

#[test]
fn a_recorded_configuration_whose_copies_are_not_hidden_is_told_who_hides_them() {
    let waits = PumpWaits { device_s: 0.9, ..PumpWaits::default() };
    let mut rows = vec![
        steps(Strategy::SystemRing, 0, 1200.0),
        steps(Strategy::SystemRing, 990, 1250.0),
        steps(Strategy::Imported, 0, 1100.0),
        steps(Strategy::Imported, 990, 2050.0),
    ];
    for row in &mut rows {
        let gpu = row.gpu.take();
        for round in &mut row.rounds {
            round.stats = LoaderStats { batches: 1000, active_s: round.seconds, waits, ..LoaderStats::default() };
            round.stats.waits.device_s *= round.seconds;
        }
        // Asked once, of the loader beside an idle consumer.
        row.gpu = gpu.filter(|_| row.settings.is_idle());
    }
    let mut report = device(rows);
    report.summarise();
    let held_back = |row: usize| report.configurations[row].held_back.expect("judged");
    assert_eq!((held_back(3).bottleneck, held_back(3).hidden_by), (Bottleneck::NotHidden, Some(Strategy::SystemRing)));
    assert!(held_back(3).evidence.hidden.is_some_and(|share| (share - 0.05).abs() < 1e-9));
    assert!(held_back(3).describe().ends_with("; `system-ring` would hide them"), "{}", held_back(3).describe());
    // The ring's own are hidden, and its consumer works all the time.
    assert_eq!((held_back(1).bottleneck, held_back(1).hidden_by), (Bottleneck::Consumer, None));
    // Beside a consumer that does nothing there is nothing to hide behind.
    assert!([0, 2].iter().all(|&row| held_back(row).hidden_by.is_none() && held_back(row).evidence.hidden.is_none()));
}
