//! Latencies: how they are distributed, and their percentiles, on one logarithmic axis.

use gpufeed::loader::Distribution;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::chart::{Area, Drawn, FONT, GRID, INK, MARGIN, MUTED, SERIES, SMALL, WIDTH, style, svg};
use crate::units;

/// How high the fullest bucket of a row is drawn.
const PEAK: i32 = 36;
/// More lines with numbers than this are in each other's way.
const MAX_TICKS: usize = 7;

/// A row: its name, p50, p95 and p99, and how long everything took, where that was kept.
pub struct Latency<'a> {
    pub label: String,
    pub percentiles_ms: [f64; 3],
    pub distribution: &'a Distribution,
}

/// The axis: logarithmic, in milliseconds.
pub struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// Long enough for every row of several charts, which then can be held against each other.
    pub fn of(charts: &[Vec<Latency<'_>>]) -> Self {
        let rows = || charts.iter().flatten();
        let buckets = || rows().flat_map(|row| row.distribution.buckets());
        let ends = buckets().flat_map(|bucket| [bucket.above_us() / 1e3, bucket.up_to_us / 1e3]);
        let all = rows().flat_map(|row| row.percentiles_ms).chain(ends).filter(|ms| *ms > 0.0);
        let (low, high) = all.fold((f64::MAX, 0.0f64), |(low, high), ms| (low.min(ms), high.max(ms)));
        if low > high { Self { low: 1.0, high: 10.0 } } else { Self { low: low * 0.9, high: high * 1.1 } }
    }

    fn x(&self, ms: f64) -> i32 {
        let share = (ms.max(self.low) / self.low).ln() / (self.high / self.low).ln();
        MARGIN + (share * f64::from(WIDTH as i32 - 2 * MARGIN)).round() as i32
    }

    /// Round numbers along it: 1, 2 and 5 of each decade where there is room, or the decades.
    fn ticks(&self) -> Vec<f64> {
        let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let of = |steps: &'static [f64]| -> Vec<f64> {
            let all = decades.clone().flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)));
            all.filter(|ms| (self.low..=self.high).contains(ms)).collect()
        };
        let fine = of(&[1.0, 2.0, 5.0]);
        if fine.len() <= MAX_TICKS { fine } else { of(&[1.0]) }
    }
}

/// A row for each strategy: bars as high as there are batches that took so long, and a dot at each percentile below them.
pub fn latencies(rows: &[Latency<'_>], axis: &Axis) -> String {
    // Without distributions the dots stand close under their names.
    let kept = rows.iter().any(|row| !row.distribution.buckets().is_empty());
    let peak = if kept { PEAK } else { 0 };
    let row_height = FONT + peak + 32;
    let bottom = MARGIN + rows.len() as i32 * row_height;
    svg((bottom + SMALL + 12) as u32, |area| {
        for ms in axis.ticks() {
            let x = axis.x(ms);
            area.draw(&PathElement::new([(x, MARGIN + FONT + 6), (x, bottom)], GRID))?;
            let text = style(SMALL, &MUTED).pos(Pos::new(HPos::Center, VPos::Top));
            let x = x.clamp(MARGIN + 12, WIDTH as i32 - MARGIN - 12);
            area.draw(&Text::new(short(ms), (x, bottom + 4), text))?;
        }
        let top = |index: usize| MARGIN + index as i32 * row_height;
        rows.iter().enumerate().try_for_each(|(index, row)| draw_row(area, axis, (top(index), peak), row))
    })
}

fn draw_row(area: &Area<'_>, axis: &Axis, (top, peak): (i32, i32), row: &Latency<'_>) -> Drawn {
    let text = format!("{}: {} ms", row.label, row.percentiles_ms.map(units::digits).join(" / "));
    area.draw(&Text::new(text, (MARGIN, top), style(FONT, &INK)))?;
    let base = top + FONT + 6 + peak;
    let buckets = row.distribution.buckets();
    let most = buckets.iter().map(|bucket| bucket.count).max().unwrap_or(1);
    for bucket in buckets {
        // Whatever there is can be seen.
        let height = (f64::from(peak) * bucket.count as f64 / most as f64).ceil() as i32;
        let (from, to) = (axis.x(bucket.above_us() / 1e3), axis.x(bucket.up_to_us / 1e3));
        let bar = [(from, base - height), (to.max(from + 1), base)];
        area.draw(&Rectangle::new(bar, SERIES[4].filled()))?;
    }
    let [p50, _, p99] = row.percentiles_ms.map(|ms| axis.x(ms));
    let line = base + 7;
    area.draw(&PathElement::new([(p50, line), (p99, line)], SERIES[0].stroke_width(3)))?;
    for (ms, radius) in row.percentiles_ms.iter().zip([6, 5, 4]) {
        area.draw(&Circle::new((axis.x(*ms), line), radius, SERIES[0].filled()))?;
    }
    Ok(())
}

/// A round number without zeros that say nothing.
fn short(ms: f64) -> String {
    let text = format!("{ms:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(drawn: &str, element: &str, name: &str) -> Vec<f64> {
        let (element, name) = (format!("<{element} "), format!(" {name}=\""));
        let all = drawn.split(&element).skip(1).map(|one| format!(" {one}"));
        all.filter_map(|one| one.split(&name).nth(1)?.split('"').next()?.parse().ok()).collect()
    }

    fn drawn(rows: Vec<Latency<'_>>) -> String {
        let charts = [rows];
        latencies(&charts[0], &Axis::of(&charts))
    }

    #[test]
    fn bars_are_as_high_as_their_buckets_are_full_and_percentiles_lie_under_them() {
        let mut distribution = Distribution::default();
        distribution.add(1000.0, 40);
        distribution.add(8000.0, 10);
        let row =
            Latency { label: "mapped-ring".to_owned(), percentiles_ms: [1.0, 8.0, 8.0], distribution: &distribution };
        let text = drawn(vec![row]);
        assert!(text.starts_with("<svg") && text.contains("mapped-ring: 1.00 / 8.00 / 8.00 ms"), "{text}");
        let heights = attributes(&text, "rect", "height");
        assert_eq!(heights.len(), 2, "{text}");
        assert!((heights[0] / heights[1] - 4.0).abs() < 0.2, "{heights:?}");
        let (ends, dots) = (attributes(&text, "rect", "x"), attributes(&text, "circle", "cx"));
        assert!(ends[0] < dots[0] && dots[0] < ends[1] && ends[1] < dots[1] + 1.0, "{ends:?} {dots:?}");
        assert!(text.contains("\n1\n") && text.contains("\n2\n"), "the axis has numbers: {text}");
    }

    #[test]
    fn without_a_distribution_there_are_the_percentiles_and_without_rows_an_axis() {
        let none = Distribution::default();
        let row = Latency { label: "imported".to_owned(), percentiles_ms: [0.02, 3.0, 4000.0], distribution: &none };
        let text = drawn(vec![row]);
        assert!(!text.contains("<rect") && attributes(&text, "circle", "cx").len() == 3, "{text}");
        assert!(text.contains("\n0.1\n") && text.contains("\n1000\n") && !text.contains("\n200\n"), "{text}");
        assert!(drawn(Vec::new()).starts_with("<svg"));
    }
}
