//! Whether transfers can run beside the application's work.

use gpufeed::{AdapterInfo, Api, Strategy};

use super::finding::{Finding, State};

pub const CHECK: &str = "queues";

/// Pure; `None` for APIs where it is not a question of queue families.
pub fn judge(adapter: &AdapterInfo) -> Option<Finding> {
    match adapter.api {
        Api::Cuda => Some(Finding::new(CHECK, State::Ok, "uploads have a stream of their own").on(&adapter.id)),
        Api::Vulkan => Some(vulkan(adapter).on(&adapter.id)),
        _ => None,
    }
}

/// What the strategy that could use such queues says of them.
fn vulkan(adapter: &AdapterInfo) -> Finding {
    let ring = adapter.strategies.iter().find(|support| support.strategy == Strategy::SystemRing);
    match ring.and_then(|ring| ring.queues.as_deref()) {
        None => Finding::new(CHECK, State::Unknown, "the driver does not list its queues"),
        Some(told) if told.starts_with("copied on wgpu's queue") => Finding::new(CHECK, State::Note, told.to_owned())
            .cost("a transfer waits for the application's kernels, and they for it: both times add up")
            .mend("a newer driver may list more families; CUDA has streams"),
        Some(told) => Finding::new(CHECK, State::Ok, told.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{adapter, support};

    fn of(api: Api, queues: Option<&str>) -> Option<Finding> {
        let mut support = support(Strategy::SystemRing, None, None);
        support.queues = queues.map(str::to_owned);
        judge(&adapter(|adapter| (adapter.api, adapter.strategies) = (api, vec![support])))
    }

    #[test]
    fn one_family_is_a_note_and_queues_apart_are_well() {
        let one = of(Api::Vulkan, Some("copied on wgpu's queue: the driver has one family of queues"));
        assert_eq!(one.as_ref().map(|found| found.state), Some(State::Note), "{one:?}");
        let more = of(Api::Vulkan, Some("copied on 2 transfer queues beside wgpu's"));
        assert_eq!(
            more.map(|found| (found.state, found.what)),
            Some((State::Ok, "copied on 2 transfer queues beside wgpu's".to_owned()))
        );
        assert_eq!(of(Api::Vulkan, None).map(|found| found.state), Some(State::Unknown));
        assert_eq!(of(Api::Cuda, None).map(|found| found.state), Some(State::Ok));
        assert_eq!(of(Api::Gl, None), None);
    }
}
