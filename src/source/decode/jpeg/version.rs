//! The version of the loaded libjpeg-turbo. Version 2 of its API has no function for it, but every build carries it in
//! words, which its tools print.

/// The version of the library that has code at this address: found in the library's file.
pub(super) fn of_code_at(address: usize) -> Option<String> {
    version_in(&std::fs::read(file_of(address)?).ok()?)
}

/// The mapped file that an address lies in.
#[cfg(target_os = "linux")]
fn file_of(address: usize) -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let bound = |text| usize::from_str_radix(text, 16).ok();
        let holds = (bound(start)?..bound(end)?).contains(&address);
        holds.then(|| rest.find('/').map(|at| rest[at..].to_owned()))?
    })
}

#[cfg(not(target_os = "linux"))]
fn file_of(_: usize) -> Option<String> {
    None
}

/// The version that a library says it is.
fn version_in(library: &[u8]) -> Option<String> {
    const BEFORE: &[u8] = b"libjpeg-turbo version ";
    let start = library.windows(BEFORE.len()).position(|bytes| bytes == BEFORE)? + BEFORE.len();
    let version: Vec<u8> =
        library[start..].iter().copied().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').take(16).collect();
    String::from_utf8(version).ok().filter(|version| !version.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_what_follows_the_name() {
        assert_eq!(version_in(b"\0libjpeg-turbo version 2.1.5 (build 20230203)\0"), Some("2.1.5".to_owned()));
        assert_eq!(version_in(b"libjpeg-turbo version %s"), None);
        assert_eq!(version_in(b"another library"), None);
    }
}
