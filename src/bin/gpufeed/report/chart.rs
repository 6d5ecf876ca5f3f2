//! Charts as SVG: bars and curves. Colours are names here: the page's style gives them their light and dark values.

use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::units;

/// The width that everything is drawn at; the page scales it.
pub const WIDTH: u32 = 520;
pub const FONT: i32 = 20;
pub const SMALL: i32 = 17;
const BAR: i32 = 20;
/// A line further out than this, as a multiple of the longest bar, is only named.
const FAR: f64 = 1.6;
pub const MARGIN: i32 = 8;

/// Text, lines, and what is in the background. `style.css` turns them over in the dark.
pub const INK: RGBColor = RGBColor(0x1a, 0x1a, 0x1b);
pub const MUTED: RGBColor = RGBColor(0x6a, 0x6a, 0x6b);
pub const GRID: RGBColor = RGBColor(0xd9, 0xd9, 0xda);
const CEILING: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
/// Colours that most eyes tell apart (Okabe and Ito), idle consumers and busy ones first.
pub const SERIES: [RGBColor; 8] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0xa0, 0x50, 0x10),
    RGBColor(0x80, 0x80, 0x30),
    RGBColor(0x70, 0x60, 0xd0),
];

/// A label and the values under it.
pub struct Group {
    pub label: String,
    /// Value, and how far it spreads; one a series.
    pub values: Vec<Option<(f64, f64)>>,
}

/// A line across all bars.
pub struct Mark {
    pub label: String,
    pub value: f64,
}

pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// Drawing into text fails only on a mistake in the drawing.
pub type Drawn = Result<(), Box<dyn std::error::Error>>;

/// Draws, or says in the page that it could not be drawn.
pub fn svg(height: u32, draw: impl FnOnce(&Area<'_>) -> Drawn) -> String {
    let mut text = String::new();
    let drawn = draw(&SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area());
    match drawn {
        Ok(()) => text,
        Err(error) => format!("<p>This chart could not be drawn: {}</p>", super::escape::escape(&error.to_string())),
    }
}

pub fn style(size: i32, colour: &'static RGBColor) -> TextStyle<'static> {
    ("sans-serif", size).into_text_style(&(WIDTH, WIDTH)).color(colour)
}

/// Where a value lies between 0 and `most`.
fn x(value: f64, most: f64) -> i32 {
    let room = f64::from(WIDTH as i32 - 2 * MARGIN);
    MARGIN + (value / most * room).round() as i32
}

/// Horizontal bars, the values of a group under each other, with their spread as whiskers, and lines for ceilings and references.
pub fn bars(groups: &[Group], marks: &[Mark], unit: &str) -> String {
    let values = groups.iter().flat_map(|group| group.values.iter().flatten()).map(|(value, spread)| value + spread);
    let longest = values.fold(f64::MIN_POSITIVE, f64::max);
    let near = marks.iter().map(|mark| mark.value).filter(|value| *value <= FAR * longest);
    let most = near.fold(longest, f64::max) * 1.02;
    let rows: i32 = groups.iter().map(|group| group.values.iter().flatten().count() as i32).sum();
    let top = MARGIN + marks.len() as i32 * (SMALL + 5);
    let height = top + groups.len() as i32 * (FONT + 10) + rows * (BAR + 3) + MARGIN;
    svg(height as u32, |area| {
        marks
            .iter()
            .enumerate()
            .try_for_each(|(index, mark)| draw_mark(area, index as i32, mark, (most, height), unit))?;
        let mut y = top;
        for group in groups {
            area.draw(&Text::new(group.label.clone(), (MARGIN, y + 4), style(FONT, &INK)))?;
            y += FONT + 8;
            for (series, value) in group.values.iter().enumerate() {
                let Some((value, spread)) = value else { continue };
                draw_bar(area, y, series % SERIES.len(), (*value, *spread, most))?;
                y += BAR + 3;
            }
            y += 2;
        }
        Ok(())
    })
}

fn draw_bar(area: &Area<'_>, y: i32, series: usize, (value, spread, most): (f64, f64, f64)) -> Drawn {
    let end = x(value, most);
    area.draw(&Rectangle::new([(MARGIN, y), (end, y + BAR)], SERIES[series].filled()))?;
    if spread > 0.0 {
        let (low, high, middle) = (x((value - spread).max(0.0), most), x(value + spread, most), y + BAR / 2);
        area.draw(&PathElement::new([(low, middle), (high, middle)], INK.stroke_width(2)))?;
        for end in [low, high] {
            area.draw(&PathElement::new([(end, y + 4), (end, y + BAR - 4)], INK.stroke_width(2)))?;
        }
    }
    // Inside a long bar, beside a short one.
    let inside = end > WIDTH as i32 / 2;
    // White on the first colour, which is dark, and black on the others, whatever the page's.
    let within = if series == 0 { &WHITE } else { &BLACK };
    let (at, colour, anchor) =
        if inside { (MARGIN + 6, within, HPos::Left) } else { (x(value + spread, most) + 6, &INK, HPos::Left) };
    let text = style(SMALL, colour).pos(Pos::new(anchor, VPos::Center));
    area.draw(&Text::new(units::digits(value), (at, y + BAR / 2), text))?;
    Ok(())
}

fn draw_mark(area: &Area<'_>, index: i32, mark: &Mark, (most, height): (f64, i32), unit: &str) -> Drawn {
    let (at, top) = (x(mark.value.min(most), most), MARGIN + index * (SMALL + 5));
    if mark.value > most {
        let text = format!("{}: {} {unit} \u{2192}", mark.label, units::digits(mark.value));
        let pos = Pos::new(HPos::Right, VPos::Top);
        area.draw(&Text::new(text, (at, top), style(SMALL, &MUTED).pos(pos)))?;
        return Ok(());
    }
    area.draw(&PathElement::new([(at, top), (at, height - MARGIN)], CEILING.stroke_width(2)))?;
    let left = at > WIDTH as i32 / 2;
    let pos = Pos::new(if left { HPos::Right } else { HPos::Left }, VPos::Top);
    let text = format!("{}: {} {unit}", mark.label, units::digits(mark.value));
    area.draw(&Text::new(text, (if left { at - 6 } else { at + 6 }, top), style(SMALL, &MUTED).pos(pos)))?;
    Ok(())
}

/// A curve's name and its points.
pub type Curve = (String, Vec<(f64, f64)>);

/// Curves over a size, whose axis is logarithmic unless the size can be zero; a legend names them.
pub fn curves(curves: &[Curve], over: &str, unit: &str) -> String {
    let points = || curves.iter().flat_map(|(_, points)| points);
    let (first, last) = points().fold((f64::MAX, 1.0f64), |(low, high), (x, _)| (low.min(*x), high.max(*x)));
    let most = points().fold(f64::MIN_POSITIVE, |most, (_, y)| most.max(*y)) * 1.08;
    let sizes = first..last.max(first + 1.0);
    let height = 266 + curves.len() as u32 * 26;
    svg(height, |area| {
        let (plot, legend) = area.split_vertically(250);
        let mut builder = ChartBuilder::on(&plot);
        // The last label is centred at the axis' end.
        builder.margin(8).margin_right(28).x_label_area_size(48).y_label_area_size(78);
        if first > 0.0 {
            draw_curves(builder.build_cartesian_2d(sizes.log_scale().base(2.0), 0.0..most)?, curves, over, unit)?;
        } else {
            draw_curves(builder.build_cartesian_2d(sizes, 0.0..most)?, curves, over, unit)?;
        }
        for (index, (name, _)) in curves.iter().enumerate() {
            let y = 6 + index as i32 * 26;
            let colour = SERIES[index % SERIES.len()];
            legend.draw(&Rectangle::new([(MARGIN, y), (MARGIN + 24, y + 12)], colour.filled()))?;
            legend.draw(&Text::new(name.clone(), (MARGIN + 32, y - 4), style(FONT, &INK)))?;
        }
        Ok(())
    })
}

fn draw_curves<'a, DB: DrawingBackend + 'a, X>(
    mut chart: ChartContext<'a, DB, Cartesian2d<X, RangedCoordf64>>,
    curves: &[Curve],
    over: &str,
    unit: &str,
) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(MUTED)
        .label_style(style(SMALL, &MUTED))
        .x_desc(over)
        .y_desc(unit)
        .y_labels(5)
        .y_label_formatter(&|value| units::digits(*value))
        .x_label_formatter(&|value| format!("{value:.0}"))
        .draw()?;
    for (index, (_, points)) in curves.iter().enumerate() {
        let colour = SERIES[index % SERIES.len()];
        chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(3)).point_size(4))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_values() {
        let group = |label: &str, value| Group { label: label.to_owned(), values: vec![Some((value, 0.0))] };
        let drawn = bars(
            &[group("full", 100.0), group("half", 50.0)],
            &[Mark { label: "ceiling".to_owned(), value: 150.0 }],
            "images/s",
        );
        let widths: Vec<f64> = drawn
            .split("<rect ")
            .skip(1)
            .filter_map(|rect| rect.split("width=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect();
        assert_eq!(widths.len(), 2, "{drawn}");
        assert!((widths[0] / widths[1] - 2.0).abs() < 0.02, "{widths:?}");
        let far = bars(&[group("full", 100.0)], &[Mark { label: "far".to_owned(), value: 900.0 }], "images/s");
        assert!(far.contains("far: 900 images/s \u{2192}"), "{far}");
        assert!(drawn.contains("ceiling: 150 images/s") && drawn.contains("full"), "{drawn}");
    }

    #[test]
    fn every_curve_has_its_name_and_sizes_may_begin_at_zero() {
        let drawn = curves(
            &[("mapped-ring".to_owned(), vec![(1.0, 5.0), (4.0, 9.0)]), ("imported".to_owned(), vec![(1.0, 2.0)])],
            "batch",
            "GB/s",
        );
        assert!(drawn.contains("mapped-ring") && drawn.contains("imported") && drawn.contains("batch"), "{drawn}");
        let from_zero = curves(&[("imported".to_owned(), vec![(0.0, 5.0), (1000.0, 4.0)])], "compute", "GB/s");
        assert!(from_zero.contains("\n0\n") && from_zero.contains("\n1000\n"), "{from_zero}");
    }
}
