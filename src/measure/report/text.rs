//! Figures as tables show them.

/// A positive number with three digits, or with all of those before the point.
#[must_use]
pub fn digits(value: f64) -> String {
    let decimals = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// Percent, with a decimal where there is not much before it.
#[must_use]
pub fn percent(percent: f64) -> String {
    format!("{percent:.*}%", usize::from(percent < 9.95))
}

/// A ratio to a reference.
#[must_use]
pub fn times(ratio: f64) -> String {
    format!("{ratio:.2}x")
}

/// Figures that are not known are dashes.
pub(super) fn number(figures: &[Option<f64>]) -> String {
    joined(figures, digits)
}

pub(super) fn percents(figures: &[Option<f64>]) -> String {
    joined(figures, percent)
}

pub(super) fn ratios(figures: &[Option<f64>]) -> String {
    joined(figures, times)
}

fn joined(figures: &[Option<f64>], text: fn(f64) -> String) -> String {
    if figures.iter().all(Option::is_none) {
        return "-".to_owned();
    }
    figures.iter().map(|figure| figure.map_or_else(|| "-".to_owned(), text)).collect::<Vec<_>>().join("/")
}

/// A median and its spread, which few rounds do not have.
pub(super) fn spread(figures: &[Option<f64>]) -> String {
    match *figures {
        [Some(median), spread] => format!("{}±{}", digits(median), spread.map_or_else(|| "?".to_owned(), digits)),
        _ => "-".to_owned(),
    }
}

/// A rate and its ratio to a reference.
pub(super) fn with_ratio(figures: &[Option<f64>]) -> String {
    with(figures, times)
}

/// A rate and its share of a ceiling.
pub(super) fn with_percent(figures: &[Option<f64>]) -> String {
    with(figures, percent)
}

fn with(figures: &[Option<f64>], text: fn(f64) -> String) -> String {
    match *figures {
        [Some(rate), Some(part)] => format!("{} ({})", digits(rate), text(part)),
        [Some(rate), ..] => digits(rate),
        _ => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_a_dash() {
        assert_eq!([number(&[None]), number(&[None, None]), spread(&[None, None])], ["-", "-", "-"]);
        assert_eq!([number(&[Some(0.5), None]), spread(&[Some(2000.0), None])], ["0.50/-", "2000±?"]);
        assert_eq!([with_ratio(&[Some(2.0), Some(0.5)]), with_percent(&[Some(30.0), None])], ["2.00 (0.50x)", "30.0"]);
        assert_eq!([percents(&[Some(5.0)]), ratios(&[Some(1.2)]), percents(&[Some(75.2)])], ["5.0%", "1.20x", "75%"]);
    }
}
