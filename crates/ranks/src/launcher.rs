//! Which launcher started this process, as the environment tells.
//!
//! | variable | launcher |
//! |---|---|
//! | `OMPI_COMM_WORLD_SIZE` | `mpirun` of Open MPI |
//! | `PMI_SIZE` | `mpiexec` of MPICH and its relatives, `srun --mpi=pmi2` |
//! | `PMIX_RANK` with `SLURM_NTASKS` | `srun --mpi=pmix` |
//!
//! `SLURM_*` alone is no proof: a batch script has these variables, too.

use crate::mpi;
use crate::{Error, Group, Implementation};
use std::rc::Rc;

/// What the environment says of a launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Launched {
    /// The implementation that it belongs to, as far as is known.
    by: Implementation,
    /// How many processes it started.
    size: usize,
    /// How many of them run on this machine, if it says so.
    here: Option<usize>,
}

pub(crate) fn join(chosen: Option<Implementation>) -> Result<Option<Rc<dyn Group>>, Error> {
    let Some(launched) = launched(&|name| std::env::var(name).ok()) else {
        return if chosen.is_some() { Err(Error::NoLauncher) } else { Ok(None) };
    };
    if launched.size < 2 {
        return Ok(None);
    }
    mpi::join(chosen.unwrap_or(launched.by), launched.size).map(Some)
}

fn launched(variable: &dyn Fn(&str) -> Option<String>) -> Option<Launched> {
    let number = |name: &str| variable(name).and_then(|text| text.trim().parse::<usize>().ok());
    // `SLURM_NTASKS_PER_NODE` is what was asked for; `SLURM_STEP_TASKS_PER_NODE` may be a list.
    let of_slurm = || number("SLURM_NTASKS_PER_NODE");
    if let Some(size) = number("OMPI_COMM_WORLD_SIZE") {
        let here = number("OMPI_COMM_WORLD_LOCAL_SIZE");
        return Some(Launched { by: Implementation::OpenMpi, size, here });
    }
    if let Some(size) = number("PMI_SIZE") {
        let here = number("MPI_LOCALNRANKS").or_else(of_slurm);
        return Some(Launched { by: Implementation::Mpich, size, here });
    }
    variable("PMIX_RANK")?;
    let size = number("SLURM_STEP_NUM_TASKS").or_else(|| number("SLURM_NTASKS"))?;
    Some(Launched { by: Implementation::OpenMpi, size, here: of_slurm() })
}

/// How many threads each of several ranks on this machine should compute with: all that it may use, shared among them, unless the
/// launcher has bound each rank to some processors already.
pub fn threads_each() -> usize {
    let may_use = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let here = launched(&|name| std::env::var(name).ok()).and_then(|launched| launched.here).unwrap_or(1);
    if may_use < processors() { may_use } else { (may_use / here.max(1)).max(1) }
}

/// The processors of this machine, whether this process may use them or not.
fn processors() -> usize {
    #[cfg(unix)]
    {
        // SAFETY: it only reads a number of the system.
        let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
        usize::try_from(online).unwrap_or(0)
    }
    #[cfg(not(unix))]
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Option<Launched> {
        launched(&|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn each_launcher_is_known_by_its_variables() {
        let launched = |by, size, here| Some(Launched { by, size, here });
        let open = [("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"), ("PMIX_RANK", "0")];
        assert_eq!(found(&open), launched(Implementation::OpenMpi, 4, Some(2)));
        let mpich = [("PMI_SIZE", "3"), ("PMI_RANK", "1"), ("MPI_LOCALNRANKS", "3")];
        assert_eq!(found(&mpich), launched(Implementation::Mpich, 3, Some(3)));
        let slurm = [("PMIX_RANK", "0"), ("SLURM_NTASKS", "8"), ("SLURM_NTASKS_PER_NODE", "4")];
        assert_eq!(found(&slurm), launched(Implementation::OpenMpi, 8, Some(4)));
    }

    #[test]
    fn a_batch_script_of_slurm_is_no_launcher() {
        assert_eq!(found(&[("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")]), None);
        assert_eq!(found(&[]), None);
    }
}
