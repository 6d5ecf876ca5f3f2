//! Which share of each epoch is this process's, as the launcher that started it tells in the environment.

use std::env::{self, VarError};

use super::super::LoaderOptions;

/// A process's share of each epoch: its rank among `world` processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Share {
    /// This process, from 0, below `world`.
    pub rank: u64,
    /// The number of processes, at least 1.
    pub world: u64,
    /// This process among those of its machine, from 0; `None` where the launcher does not tell. Which device to open, usually.
    pub local_rank: Option<u64>,
    /// Who told it: `torchrun`, `Open MPI`, `MVAPICH`, `MPICH` (Intel MPI and others that start with Hydra as well) or `Slurm`; `options`
    /// where none of them did.
    pub from: &'static str,
}

/// Variables of the environment that make no share.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShareError {
    /// One of two that belong together is missing.
    #[error("the environment has {set} and lacks {missing} ({from} sets both)")]
    HalfSet {
        /// The launcher.
        from: &'static str,
        /// The variable there is.
        set: &'static str,
        /// The variable there is not.
        missing: &'static str,
    },
    /// A variable that is no whole number from 0.
    #[error("the environment's {variable} is `{value}`, which is no whole number from 0")]
    NotANumber {
        /// The variable.
        variable: &'static str,
        /// What it holds.
        value: String,
    },
    /// The rank is not below the number of processes.
    #[error("the environment's {variable} is {rank}, and must be below {of}, {world}")]
    OutOfRange {
        /// The variable of the rank.
        variable: &'static str,
        /// Its value.
        rank: u64,
        /// The variable of the number of processes.
        of: &'static str,
        /// Its value.
        world: u64,
    },
}

/// The variables of one launcher.
struct Launcher {
    name: &'static str,
    rank: &'static str,
    world: &'static str,
    local_rank: &'static str,
    /// Whether the rank may be set without the world, and then says nothing.
    rank_alone_is_nothing: bool,
}

/// The innermost first: torchrun runs inside of what `mpirun` or `srun` start, and `mpirun` inside of an allocation of Slurm.
///
/// Slurm sets `SLURM_PROCID=0` and `SLURM_NTASKS` in a batch script as well, where there is one process however many tasks were
/// asked for; `SLURM_STEP_NUM_TASKS` is set for what `srun` started, and is the number of processes that really run.
const LAUNCHERS: [Launcher; 5] = [
    launcher("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"),
    launcher("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    launcher("MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"),
    launcher("MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    Launcher {
        rank_alone_is_nothing: true,
        ..launcher("Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID")
    },
];

const fn launcher(name: &'static str, rank: &'static str, world: &'static str, local_rank: &'static str) -> Launcher {
    Launcher { name, rank, world, local_rank, rank_alone_is_nothing: false }
}

impl Share {
    /// A share of one's own making; `None` where `rank` is not below `world`.
    #[must_use]
    pub fn new(rank: u64, world: u64) -> Option<Self> {
        (rank < world).then_some(Self { rank, world, local_rank: None, from: "options" })
    }

    /// The share that torchrun, Open MPI, MVAPICH, MPICH and Intel MPI, or Slurm's `srun` gave this process; `None` where none of
    /// them started it. Where one runs inside another, the inner one counts.
    ///
    /// # Errors
    /// [`ShareError`] names the variable that is missing or wrong. An outer launcher's variables do not stand in for it.
    pub fn from_env() -> Result<Option<Self>, ShareError> {
        Self::look_up(|name| match env::var(name) {
            Ok(value) => Some(value),
            Err(VarError::NotPresent) => None,
            // Is no number, and says so.
            Err(VarError::NotUnicode(value)) => Some(value.to_string_lossy().into_owned()),
        })
    }

    /// As [`from_env`](Self::from_env), from whatever `variable` tells: a job description, or a test's table.
    ///
    /// ```
    /// use gpufeed::Share;
    ///
    /// let set = [("RANK", "3"), ("WORLD_SIZE", "8"), ("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "2")];
    /// let look = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
    /// let share = Share::look_up(look)?.expect("torchrun inside of srun");
    /// assert_eq!((share.rank, share.world, share.from), (3, 8, "torchrun"));
    /// # Ok::<(), gpufeed::ShareError>(())
    /// ```
    ///
    /// # Errors
    /// As [`from_env`](Self::from_env).
    pub fn look_up(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, ShareError> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        LAUNCHERS.iter().find_map(|launcher| launcher.share(&variable).transpose()).transpose()
    }
}

impl Launcher {
    /// `None` if this launcher did not start the process.
    fn share(&self, variable: &impl Fn(&str) -> Option<String>) -> Result<Option<Share>, ShareError> {
        let half = |set, missing| Err(ShareError::HalfSet { from: self.name, set, missing });
        let (rank, world) = match (variable(self.rank), variable(self.world)) {
            (None, None) => return Ok(None),
            (Some(_), None) if self.rank_alone_is_nothing => return Ok(None),
            (Some(_), None) => return half(self.rank, self.world),
            (None, Some(_)) => return half(self.world, self.rank),
            (Some(rank), Some(world)) => (number(self.rank, &rank)?, number(self.world, &world)?),
        };
        if rank >= world {
            return Err(ShareError::OutOfRange { variable: self.rank, rank, of: self.world, world });
        }
        let local_rank = variable(self.local_rank).map(|value| number(self.local_rank, &value)).transpose()?;
        Ok(Some(Share { rank, world, local_rank, from: self.name }))
    }
}

fn number(variable: &'static str, value: &str) -> Result<u64, ShareError> {
    value.trim().parse().map_err(|_| ShareError::NotANumber { variable, value: value.to_owned() })
}

impl LoaderOptions {
    /// The same for one process's share of each epoch.
    ///
    /// ```no_run
    /// use gpufeed::{LoaderOptions, Share};
    ///
    /// let mut options = LoaderOptions { seed: Some(42), ..LoaderOptions::default() };
    /// if let Some(share) = Share::from_env()? {
    ///     options = options.share(share);
    /// }
    /// # Ok::<(), gpufeed::ShareError>(())
    /// ```
    #[must_use]
    pub fn share(self, share: Share) -> Self {
        Self { rank: share.rank, world: share.world, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(set: &[(&str, &str)]) -> Result<Option<Share>, String> {
        let look = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Share::look_up(look).map_err(|error| error.to_string())
    }

    #[test]
    fn each_launcher_is_understood() {
        for launcher in &LAUNCHERS {
            let set = [(launcher.rank, "2"), (launcher.world, "4"), (launcher.local_rank, "0")];
            let expected = Share { rank: 2, world: 4, local_rank: Some(0), from: launcher.name };
            assert_eq!(share(&set), Ok(Some(expected)));
            assert_eq!(share(&set[..2]), Ok(Some(Share { local_rank: None, ..expected })));
        }
        assert_eq!(share(&[("HOME", "/"), ("LOCAL_RANK", "1")]), Ok(None));
    }

    #[test]
    fn a_batch_script_of_slurm_is_one_process_whatever_it_asked_for() {
        let batch = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8"), ("SLURM_NPROCS", "8"), ("SLURM_LOCALID", "0")];
        assert_eq!(share(&batch), Ok(None));
        let step = [&batch[..], &[("SLURM_STEP_NUM_TASKS", "4")]].concat();
        assert_eq!(share(&step).map(|share| share.map(|share| (share.rank, share.world))), Ok(Some((0, 4))));
    }

    #[test]
    fn the_inner_launcher_counts() {
        let outer = [("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "2"), ("PMI_RANK", "1"), ("PMI_SIZE", "2")];
        let from = |set: &[(&str, &str)]| share(set).map(|share| share.map(|share| (share.from, share.rank)));
        assert_eq!(from(&outer), Ok(Some(("MPICH", 1))));
        let inner = [&outer[..], &[("RANK", "5"), ("WORLD_SIZE", "8")]].concat();
        assert_eq!(from(&inner), Ok(Some(("torchrun", 5))));
    }

    #[test]
    fn what_is_half_set_or_no_number_is_named_even_where_an_outer_launcher_is_whole() {
        let outer = [("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "2")];
        let refused = |set: &[(&str, &str)]| share(&[&outer[..], set].concat()).expect_err("refused");
        assert_eq!(refused(&[("RANK", "1")]), "the environment has RANK and lacks WORLD_SIZE (torchrun sets both)");
        assert!(refused(&[("PMI_SIZE", "1")]).contains("has PMI_SIZE and lacks PMI_RANK"));
        assert!(refused(&[("RANK", "-1"), ("WORLD_SIZE", "2")]).contains("RANK is `-1`"));
        assert!(refused(&[("RANK", "1"), ("WORLD_SIZE", "many")]).contains("WORLD_SIZE is `many`"));
        let local = [("RANK", "1"), ("WORLD_SIZE", "2"), ("LOCAL_RANK", "x")];
        assert!(refused(&local).contains("LOCAL_RANK is `x`"));
        let missing = share(&[("SLURM_STEP_NUM_TASKS", "2")]).expect_err("refused");
        assert!(missing.contains("lacks SLURM_PROCID"), "{missing}");
    }

    #[test]
    fn a_rank_outside_its_world_is_named() {
        let error = share(&[("RANK", "2"), ("WORLD_SIZE", "2")]).expect_err("refused");
        assert_eq!(error, "the environment's RANK is 2, and must be below WORLD_SIZE, 2");
        assert!(share(&[("RANK", "0"), ("WORLD_SIZE", "0")]).is_err());
    }

    #[test]
    fn a_variable_that_is_set_to_nothing_is_not_set() {
        assert_eq!(share(&[("RANK", ""), ("WORLD_SIZE", " ")]), Ok(None));
    }

    #[test]
    fn options_take_a_share() {
        let set = [("RANK", "1"), ("WORLD_SIZE", "3")];
        let share = share(&set).expect("whole").expect("a share");
        let options = LoaderOptions { batch_size: 7, ..LoaderOptions::default() }.share(share);
        assert_eq!((options.rank, options.world, options.batch_size), (1, 3, 7));
    }
}
