//! Several processes that a launcher started as one: `mpirun -n 8 attentive train …`.

use crate::error::Error;
use attentive_ranks::{Group, Implementation, all_gather_bytes};
use clap::ValueEnum;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

thread_local! {
    /// The processes that this one has joined, if it has joined some.
    static JOINED: RefCell<Option<Rc<dyn Group>>> = const { RefCell::new(None) };
}

/// What `--mpi` can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mpi {
    /// Open MPI (libmpi.so.40)
    Openmpi,
    /// MPICH, Intel MPI, MVAPICH or Cray MPI (libmpich.so.12 or libmpi.so.12)
    Mpich,
    /// Any MPI with the standard ABI of MPI 5 (libmpi_abi.so)
    Abi,
}

/// Joins the processes that a launcher has started together with this one, if one has.
pub(crate) fn join(mpi: Option<Mpi>) -> Result<Option<Rc<dyn Group>>, Error> {
    let implementation = mpi.map(|mpi| match mpi {
        Mpi::Openmpi => Implementation::OpenMpi,
        Mpi::Mpich => Implementation::Mpich,
        Mpi::Abi => Implementation::Abi,
    });
    let group = attentive_ranks::join(implementation)?;
    JOINED.with_borrow_mut(|joined| joined.clone_from(&group));
    Ok(group)
}

/// Whether this process speaks for all: rank 0, or a process alone.
pub(crate) fn is_first(group: Option<&Rc<dyn Group>>) -> bool {
    group.is_none_or(|group| group.rank() == 0)
}

/// Collective: the answer of rank 0 to a question that it alone can answer.
pub(crate) fn as_the_first(group: Option<&Rc<dyn Group>>, answer: bool) -> Result<bool, Error> {
    let Some(group) = group else { return Ok(answer) };
    let mut answer = [u8::from(answer)];
    group.broadcast(&mut answer)?;
    Ok(answer == [1])
}

/// Collective: what every rank has, in the order of ranks.
pub(crate) fn gather<T: Serialize + DeserializeOwned>(group: &dyn Group, mine: &T) -> Result<Vec<T>, Error> {
    let mine = serde_json::to_vec(mine)?;
    let all = all_gather_bytes(group, &mine)?;
    all.iter().map(|text| Ok(serde_json::from_slice(text)?)).collect()
}

/// How long a launcher has to forward what was written. It ends everything at an abort, and may drop what it has not read by then.
const UNTIL_FORWARDED: Duration = Duration::from_millis(500);

/// Ends the command with all processes that were joined. One that has failed ends the others at once: they would wait for it.
pub(crate) fn leave(result: Result<(), Error>) -> Result<(), Error> {
    let Some(group) = JOINED.take() else { return result };
    match &result {
        Ok(()) | Err(Error::Interrupted) => {
            group.leave()?;
            // One voice is enough.
            if group.rank() > 0 { Ok(()) } else { result }
        }
        Err(error) => {
            tell(Some(&group), error);
            std::thread::sleep(UNTIL_FORWARDED);
            group.abort(error.code().into());
            std::process::exit(error.code().into())
        }
    }
}

/// Says what went wrong, and on which rank.
pub(crate) fn tell(group: Option<&Rc<dyn Group>>, error: &Error) {
    use std::io::Write;
    let rank = group.filter(|group| group.rank() > 0).map(|group| format!("rank {}: ", group.rank()));
    // Where even this cannot be written, the exit code still tells.
    let _ = writeln!(std::io::stderr(), "attentive: {}{error}", rank.unwrap_or_default());
}

/// Ends all processes after a panic.
pub(crate) fn abort() {
    if let Some(group) = JOINED.take() {
        group.abort(1);
    }
}
