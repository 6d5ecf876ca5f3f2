//! Page-locked memory: the limit on it, and what fits all the same.

use super::finding::{Finding, State};
use crate::units;

pub const CHECK: &str = "locked-memory";

/// What is known of locking memory here.
#[derive(Clone, Copy, Debug, Default)]
pub struct LockFacts {
    /// `RLIMIT_MEMLOCK`; `Some(None)` is no limit.
    pub limit: Option<Option<u64>>,
    /// The most that was locked by trying, and how much was tried at most.
    pub locked: Option<u64>,
    pub tried: u64,
    /// The bytes of the ring in question.
    pub ring: u64,
    /// Whether each GPU made a ring of that size all the same; `None` where there is no GPU.
    pub gpus_ring_fits: Option<bool>,
}

const MEND: &str = "raise it: `ulimit -l unlimited` where that is allowed, a line `* - memlock unlimited` in \
                    /etc/security/limits.conf and a new login, `LimitMEMLOCK=infinity` in a systemd unit, `docker run --ulimit memlock=-1`; or take \
                    fewer or smaller slots";

/// Pure.
pub fn judge(facts: &LockFacts) -> Finding {
    let ring = units::bytes(facts.ring);
    let Some(limit) = facts.limit else {
        return Finding::new(CHECK, State::Unknown, "this system does not say how much memory may be page-locked");
    };
    let locked = facts.locked.map(|bytes| {
        let more = if bytes >= facts.tried { "at least " } else { "" };
        format!("{more}{} could be locked", units::bytes(bytes))
    });
    let locked = locked.unwrap_or_else(|| "what can be locked was not found out".to_owned());
    let enough = facts.locked.is_some_and(|bytes| bytes >= facts.ring);
    let limited = limit.map_or("no limit".to_owned(), |bytes| format!("a limit of {}", units::bytes(bytes)));
    let what = format!("{limited} on page-locked memory (`ulimit -l`); {locked}, and a ring of {ring} is wanted");
    let finding = match (enough, facts.gpus_ring_fits) {
        (true, _) if limit.is_some_and(|bytes| bytes < facts.ring) => {
            Finding::new(CHECK, State::Ok, format!("{what}: this process may exceed its limit"))
        }
        (true, _) => Finding::new(CHECK, State::Ok, what),
        (false, Some(true)) => {
            Finding::new(CHECK, State::Note, format!("{what}: the GPU's driver makes such a ring all the same")).mend(MEND)
        }
        (false, _) => Finding::new(CHECK, State::Wrong, what)
            .cost("a driver that keeps to the limit refuses the ring, and copies from memory that is not page-locked are several times slower")
            .mend(MEND),
    };
    let figures = [("limit_bytes", limit), ("locked_bytes", facts.locked), ("ring_bytes", Some(facts.ring))];
    figures
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .fold(finding, |f, (name, v)| f.figure(name, v as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: LockFacts = LockFacts {
        limit: Some(Some(65_536)),
        locked: Some(65_536),
        tried: 1 << 30,
        ring: 40 << 20,
        gpus_ring_fits: None,
    };

    #[test]
    fn a_limit_of_64_kib_is_named_with_what_fits_and_how_to_raise_it() {
        let found = judge(&SMALL);
        assert_eq!(found.state, State::Wrong);
        assert!(
            found.what.contains("a limit of 64.0 KiB") && found.what.contains("64.0 KiB could be locked"),
            "{found:?}"
        );
        assert!(found.what.contains("a ring of 40.0 MiB"), "{found:?}");
        assert!(found.mend.is_some_and(|mend| mend.contains("ulimit -l unlimited")));
        assert_eq!(found.figures.get("limit_bytes"), Some(&65_536.0));
    }

    #[test]
    fn a_driver_that_locks_more_all_the_same_leaves_a_note() {
        assert_eq!(judge(&LockFacts { gpus_ring_fits: Some(true), ..SMALL }).state, State::Note);
        assert_eq!(judge(&LockFacts { gpus_ring_fits: Some(false), ..SMALL }).state, State::Wrong);
    }

    #[test]
    fn without_a_limit_and_with_the_right_to_exceed_it_all_is_well() {
        let free = LockFacts { limit: Some(None), locked: Some(1 << 30), ..SMALL };
        let found = judge(&free);
        assert_eq!(found.state, State::Ok);
        assert!(found.what.starts_with("no limit") && found.what.contains("at least 1.00 GiB"), "{found:?}");
        let privileged = judge(&LockFacts { locked: Some(1 << 30), ..SMALL });
        assert!(privileged.state == State::Ok && privileged.what.contains("may exceed its limit"), "{privileged:?}");
        assert_eq!(judge(&LockFacts { limit: None, ..SMALL }).state, State::Unknown);
    }
}
