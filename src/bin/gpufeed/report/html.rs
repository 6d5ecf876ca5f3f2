//! The page: one file, without scripts, fonts or anything else from elsewhere.

use std::fmt::Write;

use super::escape::escape;
use super::numbers;
use super::section;
use super::sent::Sent;
use super::words::{notices, winners};

const STYLE: &str = include_str!("style.css");

/// The whole page.
pub fn page(sent: &[Sent]) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>gpufeed: staging strategies compared</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header><h1>Which staging strategy feeds which device fastest</h1>\n"
    );
    for notice in notices(sent) {
        let _ = writeln!(out, "<p>{}</p>", escape(&notice));
    }
    out.push_str("</header>\n<main>\n");
    contents(&mut out, sent);
    winners_table(&mut out, sent);
    for (number, one) in sent.iter().enumerate() {
        for device in 0..one.report.devices.len() {
            section::device(&mut out, one, device, &anchor(number, device));
        }
    }
    numbers::explanations(&mut out);
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn anchor(report: usize, device: usize) -> String {
    format!("d{report}-{device}")
}

fn contents(out: &mut String, sent: &[Sent]) {
    out.push_str("<nav aria-label=\"Devices\"><ul>\n");
    for (number, one) in sent.iter().enumerate() {
        for (index, device) in one.report.devices.iter().enumerate() {
            let text = format!("{} {}", device.adapter.id, device.adapter.name);
            let _ = writeln!(
                out,
                "<li><a href=\"#{}\">{}</a> ({})</li>",
                anchor(number, index),
                escape(&text),
                escape(&one.name)
            );
        }
    }
    out.push_str("</ul></nav>\n");
}

/// What the table of winners tells of each device.
const WINNERS: [&str; 8] = ["vendor", "API", "memory", "device", "fastest", "lead", "marks", "from"];

fn winners_table(out: &mut String, sent: &[Sent]) {
    let heading = |title: &&str| format!("<th scope=\"col\">{title}</th>");
    let _ = writeln!(
        out,
        "<h2>Winners by vendor, API and kind of memory</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Winners\">\
         <table class=\"words\"><thead><tr>{}</tr></thead><tbody>",
        WINNERS.iter().map(heading).collect::<String>()
    );
    for line in winners(sent) {
        let cells = [&line.vendor, line.api, line.memory, &line.device]
            .map(|text| format!("<td>{}</td>", escape(text)))
            .concat();
        let _ = writeln!(
            out,
            "<tr>{cells}<td><code>{}</code></td><td>{}</td><td class=\"mark\">{}</td><td>{}</td></tr>",
            escape(&line.strategy),
            escape(&line.lead),
            escape(&line.marks),
            escape(&line.source)
        );
    }
    out.push_str("</tbody></table></div>\n");
}

#[cfg(test)]
mod tests {
    use gpufeed::Strategy;

    use super::*;
    use crate::compare::testing::{device, report};

    #[test]
    fn what_a_driver_calls_itself_is_only_text() {
        let mut found = device("vulkan:0", &[(Strategy::MappedRing, 8, 100.0)]);
        found.adapter.name = "<script>alert('\"&')</script>".to_owned();
        let page = page(&[Sent::of("<b>.json", &report(vec![found]))]);
        assert!(!page.contains("<script") && !page.contains("<b>"), "{page}");
        assert!(page.contains("&lt;script&gt;alert(&#39;&quot;&amp;&#39;)"));
    }

    #[test]
    fn a_page_needs_nothing_from_elsewhere() {
        let page = page(&[Sent::of("a.json", &report(vec![device("vulkan:0", &[(Strategy::MappedRing, 8, 100.0)])]))]);
        let without_names = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!without_names.contains("http://") && !without_names.contains("https://") && !page.contains("<script"));
        assert!(page.contains("class=\"mark\">software, debug build<"), "{page}");
    }
    /// How far apart two colours are, from 1 to 21 (WCAG 2.2, contrast ratio).
    fn contrast(one: &str, other: &str) -> f64 {
        let linear = |hex: &str| {
            let value = f64::from(u8::from_str_radix(hex, 16).expect("hexadecimal")) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        let luminance = |colour: &str| {
            [(1, 0.2126), (3, 0.7152), (5, 0.0722)]
                .iter()
                .map(|&(at, weight)| weight * linear(&colour[at..at + 2]))
                .sum::<f64>()
        };
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn every_curve_is_seen_in_the_dark() {
        let curves: Vec<_> = (0..8).map(|number| (number.to_string(), vec![(1.0, 1.0), (2.0, 2.0)])).collect();
        let drawn = crate::report::chart::curves(&curves, "batch", "GB/s");
        let lines = drawn.split("<polyline ").skip(1).filter_map(|line| line.split("stroke=\"").nth(1)?.get(..7));
        let dark = STYLE.split("prefers-color-scheme: dark").nth(1).expect("a dark page");
        let card = dark.split("--card: ").nth(1).and_then(|rest| rest.get(..7)).expect("a colour");
        let mut seen = 0;
        for light in lines {
            let own = dark.split(&format!("[stroke=\"{light}\"] {{ stroke: ")).nth(1).and_then(|rest| rest.get(..7));
            let shown = own.unwrap_or(light);
            assert!(contrast(shown, card) >= 3.0, "{light} is {shown} on {card}: {}", contrast(shown, card));
            seen += 1;
        }
        assert!(seen >= 8, "{drawn}");
    }
}
