//! Many shards in one name: `train-{000000..000146}.tar`, `{train,val}.tar`.

use std::path::PathBuf;

use super::error::TarError;

/// The most shards that a pattern may name.
const MAX_SHARDS: usize = 1_000_000;

/// The paths that a pattern names, in its order: braces as in shells.
///
/// # Errors
/// [`TarError::Pattern`].
pub(super) fn expand(pattern: &str) -> Result<Vec<PathBuf>, TarError> {
    let failed = |reason: String| TarError::Pattern { pattern: pattern.to_owned(), reason };
    let mut texts = Vec::new();
    alternatives(pattern, &mut texts).map_err(failed)?;
    Ok(texts.into_iter().map(PathBuf::from).collect())
}

/// Adds every text that a pattern stands for.
fn alternatives(pattern: &str, out: &mut Vec<String>) -> Result<(), String> {
    let Some(open) = pattern.find('{') else {
        out.push(pattern.to_owned());
        return if out.len() > MAX_SHARDS { Err(format!("more than {MAX_SHARDS} shards")) } else { Ok(()) };
    };
    let close = closing(&pattern[open..]).ok_or("a brace is not closed")? + open;
    let (before, within, after) = (&pattern[..open], &pattern[open + 1..close], &pattern[close + 1..]);
    let parts = match commas(within) {
        parts if parts.len() > 1 => parts.into_iter().map(str::to_owned).collect(),
        _ => range(within)?,
    };
    for part in parts {
        // The part may have braces of its own.
        alternatives(&format!("{before}{part}{after}"), out)?;
    }
    Ok(())
}

/// Where the brace that this text starts with is closed.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().find_map(|(at, c)| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

/// The parts of a list, whose commas within further braces are not its own.
fn commas(list: &str) -> Vec<&str> {
    let mut depth = 0;
    list.split(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
    .collect()
}

/// The numbers of `FIRST..LAST` or `FIRST..LAST..STEP`, upwards or downwards, with the zeros that the first or the last has in
/// front.
fn range(text: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("`{{{text}}}` is neither a range, as in {{000..146}}, nor a list, as in {{a,b}}");
    let bounds: Vec<&str> = text.split("..").collect();
    let (first, last, step) = match bounds[..] {
        [first, last] => (first, last, "1"),
        [first, last, step] => (first, last, step),
        _ => return Err(wrong()),
    };
    let number = |digits: &str| match digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => digits.parse::<u64>().map_err(|_| wrong()),
        false => Err(wrong()),
    };
    let padded = [first, last].iter().any(|digits| digits.len() > 1 && digits.starts_with('0'));
    let width = if padded { first.len().max(last.len()) } else { 0 };
    let (first, last) = (number(first)?, number(last)?);
    let step = number(step)?.max(1);
    let count = first.abs_diff(last) / step + 1;
    if count > MAX_SHARDS as u64 {
        return Err(format!("more than {MAX_SHARDS} shards"));
    }
    let at = |number: u64| if first <= last { first + number * step } else { first - number * step };
    Ok((0..count).map(|number| format!("{:0width$}", at(number))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(pattern: &str) -> String {
        let paths = expand(pattern).expect("a pattern");
        paths.iter().map(|path| path.to_str().expect("text")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ranges_keep_their_zeros_and_their_direction() {
        assert_eq!(expanded("a-{008..011}.tar"), "a-008.tar a-009.tar a-010.tar a-011.tar");
        assert_eq!(expanded("{8..11}"), "8 9 10 11");
        assert_eq!(expanded("{2..0}"), "2 1 0");
        assert_eq!(expanded("{0..10..5}"), "0 5 10");
        assert_eq!(expanded("{00..2..9}"), "00");
    }

    #[test]
    fn lists_may_hold_ranges_and_lists() {
        assert_eq!(expanded("{a,b}/{0..1}"), "a/0 a/1 b/0 b/1");
        assert_eq!(expanded("{train-{0..1},val{,2}}.tar"), "train-0.tar train-1.tar val.tar val2.tar");
        assert_eq!(expanded("plain.tar"), "plain.tar");
    }

    #[test]
    fn braces_that_mean_nothing_are_refused() {
        for (pattern, reason) in [
            ("a{0..3", "a brace is not closed"),
            ("a{0}", "neither a range"),
            ("a{x..y}", "neither a range"),
            ("a{-1..2}", "neither a range"),
            ("a{0..99999999}", "more than 1000000 shards"),
            ("{0..9999}{0..9999}", "more than 1000000 shards"),
        ] {
            let error = expand(pattern).expect_err("refused").to_string();
            assert!(error.starts_with(pattern) && error.contains(reason), "{error}");
        }
    }
}
