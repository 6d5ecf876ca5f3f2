//! What was compiled for an API and never seen to run there. It is refused by name, so that nobody relies on it, unless somebody asks to
//! try it: who has the device can prove it.

use crate::backend::Api;

/// The variable that asks.
const VARIABLE: &str = "GPUFEED_UNPROVEN";

/// Whether somebody asked.
pub(super) fn may_be_tried() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| value == "1")
}

/// Why something does not run on an API.
pub(super) fn reason(what: &str, api: Option<Api>) -> String {
    let api = api.map_or("this API", Api::key);
    format!("`{what}` was compiled for {api} and has never run there; {VARIABLE}=1 tries it")
}
