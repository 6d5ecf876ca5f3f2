//! Logarithm, exponential, sine and cosine from additions, products and quotients alone, which IEEE 754 fixes to the last bit. Those of
//! a system's library differ from one to the next, and so would the samples.

use std::f64::consts::{LN_2, PI};

/// Terms after which a series within its reduced range is exact to f64.
const TERMS: i32 = 12;

/// The natural logarithm of a positive, normal number.
pub(super) fn ln(x: f64) -> f64 {
    // x = m * 2^exponent with m from 0.75 to 1.5.
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i32 - 1023;
    let mut m = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | (1023 << 52));
    if m > 1.5 {
        m *= 0.5;
        exponent += 1;
    }
    // ln m = 2 artanh((m - 1) / (m + 1))
    let t = (m - 1.0) / (m + 1.0);
    let (square, mut power, mut sum) = (t * t, t, 0.0);
    for term in 0..3 * TERMS / 2 {
        sum += power / f64::from(2 * term + 1);
        power *= square;
    }
    2.0 * sum + f64::from(exponent) * LN_2
}

/// e to the power of a number whose result is normal.
pub(super) fn exp(x: f64) -> f64 {
    let whole = (x / LN_2).round();
    // At most 0.35 from zero, and 0.022 once halved four times.
    let rest = (x - whole * LN_2) / 16.0;
    let (mut term, mut sum) = (1.0, 1.0);
    for number in 1..=TERMS {
        term *= rest / f64::from(number);
        sum += term;
    }
    for _ in 0..4 {
        sum *= sum;
    }
    sum * f64::from_bits(((whole as i64 + 1023) as u64) << 52)
}

/// Sine and cosine of an angle from -2 pi to 2 pi.
pub(super) fn sin_cos(angle: f64) -> (f64, f64) {
    let angle = angle - (angle / (2.0 * PI)).round() * 2.0 * PI;
    // Halved three times, and doubled by the formulas for twice an angle.
    let eighth = angle / 8.0;
    let (mut term, mut sin, mut cos) = (1.0, 0.0, 1.0);
    for number in 1..=2 * TERMS {
        term *= eighth / f64::from(number);
        match number % 4 {
            1 => sin += term,
            2 => cos -= term,
            3 => sin -= term,
            _ => cos += term,
        }
    }
    for _ in 0..3 {
        (sin, cos) = (2.0 * sin * cos, cos * cos - sin * sin);
    }
    (sin, cos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_the_functions_that_they_are_called() {
        let near = |own: f64, other: f64| (own - other).abs() <= 1e-14 * other.abs().max(1.0);
        for step in 1..2000 {
            let x = f64::from(step) / 100.0;
            assert!(near(ln(x), x.ln()) && near(ln(1.0 / x), -x.ln()), "ln {x}");
            let small = x - 10.0;
            assert!(near(exp(small) / small.exp(), 1.0), "exp {small}");
            let angle = (x - 10.0) / 10.0 * 2.0 * PI;
            let (sin, cos) = sin_cos(angle);
            assert!(near(sin, angle.sin()) && near(cos, angle.cos()), "sin and cos of {angle}");
        }
    }
}
