//! The host as an adapter.

use crate::backend::{AdapterInfo, Api, DeviceType, Strategy, StrategySupport};

/// The host as an adapter; its id is `host`.
#[must_use]
pub fn host_info() -> AdapterInfo {
    AdapterInfo {
        id: "host".into(),
        api: Api::Host,
        name: "host memory".into(),
        driver: "none".into(),
        driver_info: String::new(),
        device_type: DeviceType::Software,
        vendor: 0,
        device: 0,
        pci: None,
        memory: None,
        limits: Vec::new(),
        strategies: vec![StrategySupport { strategy: Strategy::Memcpy, missing: None, memory: None, queues: None }],
    }
}
