//! A device's part of the page: its answer, charts, and every number in a table.

use std::fmt::Write;

use gpufeed::measure::report::{Ceilings, DeviceReport, SIZES, Settings, Size, Status};

use super::chart::{self, Group, Mark};
use super::escape::escape;
use super::latency::{Axis, Latency, latencies};
use super::numbers;
use super::sent::{Row, Sent};
use super::words::{answer, driver, marks};
use crate::compare::overlap;

/// Everything about one device.
pub fn device(out: &mut String, sent: &Sent, index: usize, anchor: &str) {
    let (device, report) = (&sent.report.devices[index], &sent.report);
    let rows = sent.rows(index);
    let _ = write!(
        out,
        "<section aria-labelledby=\"{anchor}\">\n<h2 id=\"{anchor}\">{} {}",
        escape(&device.adapter.id),
        escape(&device.adapter.name)
    );
    for mark in marks(device, report) {
        let _ = write!(out, " <span class=\"mark\">[{mark}]</span>");
    }
    let _ = writeln!(out, "</h2>\n<p class=\"about\">{}</p>", escape(&about(sent, device)));
    let _ = writeln!(out, "<p>{}</p>", coded(&answer(device, report)));
    beside_consumers(out, device);
    if let Some(best) = device.winner.as_ref().map(|winner| winner.settings) {
        charts(out, sent, device, &rows, &best);
    }
    without_numbers(out, device);
    if !rows.is_empty() {
        numbers::table(out, &rows, &format!("{} in {}", device.adapter.id, sent.name));
    }
    out.push_str("</section>\n");
}

/// Text whose `names` are code.
fn coded(text: &str) -> String {
    let parts = text.split('`').map(escape).enumerate();
    parts.map(|(index, part)| if index % 2 == 1 { format!("<code>{part}</code>") } else { part }).collect()
}

/// Who is fastest beside each consumer that computes.
fn beside_consumers(out: &mut String, device: &DeviceReport) {
    let winners = overlap::winners(device);
    if winners.is_empty() {
        return;
    }
    out.push_str("<details><summary>Beside consumers that compute</summary><ul>\n");
    for line in &winners {
        let _ = writeln!(out, "<li>{}</li>", coded(line));
    }
    out.push_str("</ul></details>\n");
}

fn about(sent: &Sent, device: &DeviceReport) -> String {
    let (report, host) = (&sent.report, &sent.report.host);
    format!(
        "{}; {}, gpufeed {}; {} ({} cores, {}); {}, {}; from {}",
        driver(device),
        report.date,
        report.gpufeed,
        host.cpu.as_deref().unwrap_or(&host.arch),
        host.cores,
        host.os,
        report.data.layout,
        report.data.preprocess,
        sent.name
    )
}

fn charts(out: &mut String, sent: &Sent, device: &DeviceReport, rows: &[Row<'_>], best: &Settings) {
    let mut here: Vec<Row<'_>> = rows.iter().copied().filter(|row| same_loader(row, best)).collect();
    let rate = |row: &Row<'_>| row.figure("samples_s").unwrap_or(0.0);
    here.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
    let compute = levels(&here, |row| row.compute_us());
    out.push_str("<div class=\"charts\">\n");
    let sizes = format!("batch {}, {} workers, {} slots", best.batch_size, best.workers, best.slots);
    let unit = if sent.report.data.images { "images/s" } else { "samples/s" };
    let rate = chart::bars(
        &groups(&here, &compute, "samples_s", Some("samples_s_spread")),
        &ceilings(device, &here, best),
        unit,
    );
    figure(out, &format!("Throughput, {unit}"), &format!("{sizes}; medians with their spread{}", key(&compute)), &rate);
    latency_figures(out, &here, &compute);
    let cost = chart::bars(&groups(&here, &compute, "cpu_s_per_gb", None), &[], "s/GB");
    figure(out, "CPU time, seconds a gigabyte", "of the whole process", &cost);
    for size in SIZES.iter().filter(|size| !size.is_of_the_consumer()) {
        sweep(out, rows, best, size);
    }
    compute_sweep(out, rows, best);
    out.push_str("</div>\n");
}

/// Whether all is the same but how long the consumer computes.
fn same_loader(row: &Row<'_>, best: &Settings) -> bool {
    SIZES
        .iter()
        .filter(|size| !size.key.starts_with("compute"))
        .all(|size| (size.of)(row.settings()) == (size.of)(best))
}

/// The different values, ascending.
fn levels(rows: &[Row<'_>], of: impl Fn(&Row<'_>) -> f64) -> Vec<f64> {
    let mut all: Vec<f64> = rows.iter().map(of).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

/// Of all levels of compute the first and the last: an idle consumer and the busiest.
fn shown(compute: &[f64]) -> Vec<f64> {
    match compute {
        [idle, .., busy] => vec![*idle, *busy],
        other => other.to_vec(),
    }
}

/// Each strategy's figure at each level of compute that is shown.
fn groups(rows: &[Row<'_>], compute: &[f64], key: &str, spread: Option<&str>) -> Vec<Group> {
    let shown = shown(compute);
    let mut groups: Vec<Group> = Vec::new();
    for row in rows {
        let label = row.settings().strategy.to_string();
        if groups.iter().any(|group| group.label == label) {
            continue;
        }
        let at = |level: &f64| {
            let row = rows
                .iter()
                .find(|other| other.settings().strategy == row.settings().strategy && other.compute_us() == *level)?;
            Some((row.figure(key)?, spread.and_then(|key| row.figure(key)).unwrap_or(0.0)))
        };
        groups.push(Group { label, values: shown.iter().map(at).collect() });
    }
    groups
}

fn key(compute: &[f64]) -> String {
    match compute {
        [idle, .., busy] => {
            format!("; above, in blue, beside {}; below, in orange, beside {}", consumer(*idle), consumer(*busy))
        }
        _ => String::new(),
    }
}

fn ceilings(device: &DeviceReport, rows: &[Row<'_>], best: &Settings) -> Vec<Mark> {
    let Some(ceilings) = Ceilings::of(&device.ceilings, best) else { return Vec::new() };
    let known =
        [("the device's own copy", ceilings.device_copy_gb_s), ("host memcpy, a reference", ceilings.host_memcpy_gb_s)];
    let known = known.into_iter().filter_map(|(label, rate)| Some((label, rate?)));
    // What was passed is no ceiling.
    let fastest = rows.iter().filter_map(|row| row.figure("gb_s")).fold(0.0, f64::max);
    let label = |label: &str, rate: f64| {
        let passed = fastest > 1.05 * rate && !label.ends_with("a reference");
        if passed { format!("{label}, a reference") } else { label.to_owned() }
    };
    let samples_s = |gb_s: f64| gb_s * 1e9 / best.sample_bytes.max(1) as f64;
    known.map(|(name, rate)| Mark { label: label(name, rate), value: samples_s(rate) }).collect()
}

/// Latencies beside the idle consumer and beside the busiest, on one axis.
fn latency_figures(out: &mut String, rows: &[Row<'_>], compute: &[f64]) {
    let levels = shown(compute);
    let at = |level: &f64| rows.iter().filter(|row| row.compute_us() == *level).filter_map(latency).collect();
    let charts: Vec<Vec<Latency<'_>>> = levels.iter().map(at).collect();
    let axis = Axis::of(&charts);
    for (level, of) in levels.iter().zip(&charts) {
        let beside = if levels.len() > 1 { format!(", beside {}", consumer(*level)) } else { String::new() };
        let kept = of.iter().any(|row| !row.distribution.buckets().is_empty());
        let bars = if kept { "; bars: how many batches took so long, over all rounds" } else { "" };
        let from =
            "from the start of a batch's fill to its tensor on the device; dots: p50, p95, p99, medians of the rounds";
        figure(out, &format!("Latency, ms, logarithmic{beside}"), &format!("{from}{bars}"), &latencies(of, &axis));
    }
}

/// Whom a strategy was measured beside.
fn consumer(compute_us: f64) -> String {
    if compute_us > 0.0 {
        format!("a consumer that computes {compute_us:.0} us a batch")
    } else {
        "an idle consumer".to_owned()
    }
}

fn latency<'a>(row: &Row<'a>) -> Option<Latency<'a>> {
    let at = |key| row.figure(key);
    let percentiles_ms = [at("latency_p50_ms")?, at("latency_p95_ms")?, at("latency_p99_ms")?];
    let distribution = &row.configuration.latency;
    Some(Latency { label: row.settings().strategy.to_string(), percentiles_ms, distribution })
}

/// A curve for each strategy over a size that was swept, the others as the winner has them.
fn sweep(out: &mut String, rows: &[Row<'_>], best: &Settings, size: &Size) {
    let others = |row: &&Row<'_>| {
        SIZES.iter().all(|other| other.key == size.key || (other.of)(row.settings()) == (other.of)(best))
    };
    let here: Vec<Row<'_>> = rows.iter().filter(others).copied().collect();
    let by_bytes = size.key == "sample_bytes";
    curve(out, &here, (size.title, by_bytes), &|row| (size.of)(row.settings()).parse().unwrap_or(0.0));
}

fn compute_sweep(out: &mut String, rows: &[Row<'_>], best: &Settings) {
    let here: Vec<Row<'_>> = rows.iter().filter(|row| same_loader(row, best)).copied().collect();
    curve(out, &here, ("compute, us a batch", false), &|row| row.compute_us());
}

/// Rates over a size: in bytes where samples differ in theirs.
fn curve(out: &mut String, rows: &[Row<'_>], (over, by_bytes): (&str, bool), of: &dyn Fn(&Row<'_>) -> f64) {
    if levels(rows, of).len() < 2 {
        return;
    }
    let (unit, key) = if by_bytes { ("GB/s", "gb_s") } else { ("samples/s", "samples_s") };
    let mut curves: Vec<chart::Curve> = Vec::new();
    for row in rows {
        let (name, Some(rate)) = (row.settings().strategy.to_string(), row.figure(key)) else { continue };
        match curves.iter_mut().find(|(known, _)| *known == name) {
            Some((_, points)) => points.push((of(row), rate)),
            None => curves.push((name, vec![(of(row), rate)])),
        }
    }
    curves.iter_mut().for_each(|(_, points)| points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    let title = format!("{} over {over}", if by_bytes { "GB/s" } else { "Samples a second" });
    figure(out, &title, "the other sizes as the winner has them", &chart::curves(&curves, over, unit));
}

fn figure(out: &mut String, title: &str, caption: &str, svg: &str) {
    let labelled = svg.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{}\" ", escape(title)), 1);
    let _ = writeln!(
        out,
        "<figure><h3>{}</h3>{labelled}<figcaption>{}</figcaption></figure>",
        escape(title),
        escape(caption)
    );
}

fn without_numbers(out: &mut String, device: &DeviceReport) {
    for row in &device.configurations {
        let strategy = row.settings.strategy;
        let _ = match &row.status {
            Status::Unsupported { reason } => {
                writeln!(out, "<p class=\"about\"><code>{strategy}</code> is not available: {}</p>", escape(reason))
            }
            Status::Failed { message, .. } => {
                writeln!(out, "<p class=\"mark\"><code>{strategy}</code> failed: {}</p>", escape(message))
            }
            _ => Ok(()),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_backticks_are_code_and_all_else_is_text() {
        assert_eq!(coded("below 4 `a<b` wins & `c`."), "below 4 <code>a&lt;b</code> wins &amp; <code>c</code>.");
    }
}
