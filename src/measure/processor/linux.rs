//! From `/proc/cpuinfo` and sysfs.

use std::fs;

pub fn name() -> Option<String> {
    fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| cpu_name(&text))
}

pub fn largest_cache() -> Option<u64> {
    let caches = fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    caches.filter_map(|entry| cache_bytes(&fs::read_to_string(entry.ok()?.path().join("size")).ok()?)).max()
}

/// `model name` on x86, `Model` or `Hardware` on boards.
fn cpu_name(cpuinfo: &str) -> Option<String> {
    let named = |field: &str| {
        cpuinfo.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == field && !value.trim().is_empty()).then(|| value.trim().to_owned())
        })
    };
    ["model name", "Model", "Hardware"].into_iter().find_map(named)
}

/// `32768K`.
fn cache_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let (number, factor) = match text.strip_suffix('K') {
        Some(number) => (number, 1 << 10),
        None => text.strip_suffix('M').map_or((text, 1), |number| (number, 1 << 20)),
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_processors_and_sizes_of_caches_are_found() {
        let x86 = "processor : 0\nmodel name\t: Some CPU @ 2GHz\nmodel : 9\n";
        assert_eq!(cpu_name(x86).as_deref(), Some("Some CPU @ 2GHz"));
        assert_eq!(cpu_name("Model : A Board Rev 1\n").as_deref(), Some("A Board Rev 1"));
        assert_eq!(cpu_name("bogus"), None);
        assert_eq!(
            [cache_bytes("32768K\n"), cache_bytes("2M"), cache_bytes("x")],
            [Some(32 << 20), Some(2 << 20), None]
        );
    }
}
