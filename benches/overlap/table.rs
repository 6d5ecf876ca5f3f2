//! The table.

use super::consumer::Work;

/// What a row begins with.
pub struct Row {
    pub strategy: String,
    pub tensor: &'static str,
    /// Seconds of the transfer alone.
    pub alone: f64,
}

pub fn header() {
    println!(
        "| strategy | tensor | compute us | measured alone | transfer alone | step us | of three epochs | ideal | of ideal | hidden |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|");
}

impl Row {
    /// `steps` are seconds, one an epoch.
    pub fn print(&self, work: Work, mut steps: Vec<f64>) {
        steps.sort_by(f64::total_cmp);
        let step = steps[steps.len() / 2];
        let ideal = self.alone.max(work.alone);
        let (first, last) = (steps[0], steps[steps.len() - 1]);
        // Of the shorter of both, how much cost no time; nothing can be hidden behind nothing.
        let shorter = self.alone.min(work.alone);
        let hidden = ((self.alone + work.alone - step) / shorter).clamp(0.0, 1.0) * 100.0;
        let hidden = if shorter > 0.0 { format!("{hidden:.0}%") } else { String::new() };
        println!(
            "| {} | {} | {} | {:.0} | {:.0} | {:.0} | {:.0} to {:.0} | {:.0} | {:.3} | {hidden} |",
            self.strategy,
            self.tensor,
            work.microseconds,
            work.alone * 1e6,
            self.alone * 1e6,
            step * 1e6,
            first * 1e6,
            last * 1e6,
            ideal * 1e6,
            step / ideal,
        );
    }
}
