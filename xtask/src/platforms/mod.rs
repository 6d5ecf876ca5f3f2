//! `cargo xtask platforms`: the crate proven on every platform that this machine can reach, one after the other.
//!
//! Everything is kept in `target/platforms`; nothing else is touched, packages of the system apart, which are printed before they are
//! installed.

mod catalogue;
mod cross;
mod debian;
mod drivers;
mod folder;
mod launcher;
mod modules;
mod options;
mod outcome;
pub mod packages;
mod programs;
mod proof;
mod step;
mod table;
mod toolchain;
mod wine;

use std::cell::OnceCell;
use std::time::Instant;

use catalogue::{Kind, PLATFORMS, Platform};
use launcher::Launcher;
pub use options::{Options, parse};
use outcome::{Line, Outcome};
use programs::Programs;
use wine::{NoWindows, Windows};

/// Runs the platforms and prints the table. False where one of them failed; one that cannot be reached is no failure.
pub fn platforms(options: &Options) -> bool {
    if options.list {
        PLATFORMS.iter().for_each(|platform| println!("{:16} {}", platform.key, platform.what));
        return true;
    }
    let chosen = match catalogue::choose(&options.only) {
        Ok(chosen) => chosen,
        Err(problem) => {
            eprintln!("{problem}");
            return false;
        }
    };
    let start = Instant::now();
    let builds = Builds { install: options.install, native: OnceCell::new(), windows: OnceCell::new() };
    let lines: Vec<Line> = chosen.iter().map(|platform| line(platform, &builds)).collect();
    let total = table::total(&lines);
    println!("\n{}", table::render(&lines));
    let took = start.elapsed().as_secs();
    println!("platforms: {} passed, {} failed, {} skipped, {took} s", total.passed, total.failed, total.skipped);
    lines.iter().all(|line| line.outcome.is_good())
}

/// What several platforms share, each made when the first of them needs it.
struct Builds {
    install: bool,
    native: OnceCell<Result<Programs, String>>,
    windows: OnceCell<Result<Windows, NoWindows>>,
}

fn line(platform: &Platform, builds: &Builds) -> Line {
    println!("== {}: {}", platform.key, platform.what);
    let start = Instant::now();
    let outcome = prove(platform, builds);
    Line { key: platform.key, outcome, took: start.elapsed() }
}

fn prove(platform: &Platform, builds: &Builds) -> Outcome {
    match platform.kind {
        Kind::Own { api } => natively(platform, api, Launcher::default(), builds),
        Kind::Software { api, driver } => match driver.launcher(builds.install) {
            Ok(launcher) => natively(platform, api, launcher, builds),
            Err(reason) => Outcome::NotReachable { reason },
        },
        Kind::Wine { api } => match builds.windows.get_or_init(|| wine::ensure(builds.install)) {
            Ok(windows) => proof::on(platform.key, api, windows.launcher.clone(), &windows.programs),
            Err(NoWindows::NotReachable(reason)) => Outcome::NotReachable { reason: reason.clone() },
            Err(NoWindows::DoesNotBuild(reason)) => Outcome::Failed { reason: reason.clone() },
        },
        Kind::Check(target) => cross::check(target, builds.install),
        Kind::Generate(target) => cross::generate(target, builds.install),
    }
}

fn natively(platform: &Platform, api: &str, launcher: Launcher, builds: &Builds) -> Outcome {
    match builds.native.get_or_init(Programs::native) {
        Ok(programs) => proof::on(platform.key, api, launcher, programs),
        Err(reason) => Outcome::Failed { reason: reason.clone() },
    }
}
