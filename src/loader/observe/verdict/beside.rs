//! What else the device works at.

use crate::backend::Strategy;

/// What is known of the work that a loader's user has on the device meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Beside {
    /// Seconds of it for each batch, alone on the device; `None` where nobody has measured it.
    pub compute_s: Option<f64>,
    /// How much of what could be hidden was, from 0 (copies and that work took turns) to 1; `None` where nobody has measured it.
    pub hidden: Option<f64>,
    /// A strategy whose copies are hidden behind that work where those of the loader's are not; `None` if they are, or none is known.
    pub hidden_by: Option<Strategy>,
}
