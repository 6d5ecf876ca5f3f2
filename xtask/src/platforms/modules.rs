//! A program of tests run module by module, each in a process of its own and several side by side, where one process may run only one
//! test at a time.

use std::num::NonZero;
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::thread;

use super::launcher::Launcher;
use super::outcome::Tally;
use super::step;

/// Runs the tests whose names begin with `prefix`.
pub fn tests(launcher: &Launcher, program: &Path, prefix: &str, platform: &str, name: &str) -> Tally {
    let listed = launcher.command(program).args([prefix, "--list"]).stdin(Stdio::null()).output();
    let modules = listed.map(|output| modules(&String::from_utf8_lossy(&output.stdout), prefix)).unwrap_or_default();
    if modules.is_empty() {
        return step::tests(&mut launcher.tests(program, &[prefix]), platform, name);
    }
    let (waiting, total) = (Mutex::new(modules.into_iter()), Mutex::new(Tally::default()));
    let next = || waiting.lock().expect("nothing panics with it").next();
    let work = || {
        while let Some(module) = next() {
            let filter = format!("{prefix}{module}::");
            let tally = step::tests(&mut launcher.tests(program, &[&filter]), platform, &format!("{name}-{module}"));
            total.lock().expect("nothing panics with it").add(tally);
        }
    };
    let processes = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| (0..processes).for_each(|_| drop(scope.spawn(work))));
    total.into_inner().expect("nothing panicked with it")
}

/// The modules below `prefix`, once each, from lines as `dx12::mapped_ring::a_test: test`.
fn modules(list: &str, prefix: &str) -> Vec<String> {
    let of = |line: &str| Some(line.strip_prefix(prefix)?.strip_suffix(": test")?.split_once("::")?.0.to_owned());
    let mut modules: Vec<String> = list.lines().map(str::trim_end).filter_map(of).collect();
    modules.sort_unstable();
    modules.dedup();
    modules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_named_once_each_and_only_those_of_the_api() {
        let list =
            "dx12::ring::a: test\r\ndx12::ring::b: test\r\ndx12::belt::a: test\nvulkan::ring::a: test\n\n3 tests\n";
        assert_eq!(modules(list, "dx12::"), ["belt", "ring"]);
    }
}
