//! Examples of texts as bytes, as ranks send them to each other.
//!
//! ```text
//! source's length │ types' length │ target's length │ labels' length │ source … types … target … labels …     each an i32
//! ```

use super::{Error, Example};
use crate::ranks::Ranks;

/// Collective: the examples of all ranks, in the order of ranks.
pub(super) fn gather(ranks: &Ranks, mine: Vec<Example>) -> Result<Vec<Example>, Error> {
    let Some(of_ranks) = ranks.gather_bytes(|| to_bytes(&mine))? else { return Ok(mine) };
    let mut all = Vec::new();
    for (rank, bytes) in of_ranks.iter().enumerate() {
        all.extend(from_bytes(bytes).ok_or(Error::Garbled { rank })?);
    }
    Ok(all)
}

fn to_bytes(examples: &[Example]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for Example { source, types, target, pictures, later, labels } in examples {
        debug_assert!(pictures.is_empty() && *later == 0, "only texts travel");
        let parts = [source, types, target, labels];
        bytes.extend(parts.into_iter().flat_map(|part| (part.len() as i32).to_le_bytes()));
        bytes.extend(parts.into_iter().flatten().flat_map(|number| number.to_le_bytes()));
    }
    bytes
}

/// The examples again; none if the bytes are not those of examples.
fn from_bytes(mut bytes: &[u8]) -> Option<Vec<Example>> {
    let mut examples = Vec::new();
    while !bytes.is_empty() {
        let lengths = numbers(&mut bytes, 4)?;
        let mut part = |place: usize| numbers(&mut bytes, usize::try_from(lengths[place]).ok()?);
        let [source, types, target, labels] = [part(0)?, part(1)?, part(2)?, part(3)?];
        examples.push(Example { source, types, target, labels, ..Example::default() });
    }
    Some(examples)
}

/// Takes so many numbers from the front, if there are as many.
fn numbers(bytes: &mut &[u8], count: usize) -> Option<Vec<i32>> {
    let (taken, rest) = bytes.split_at_checked(count.checked_mul(size_of::<i32>())?)?;
    *bytes = rest;
    let number = |bytes: &[u8]| i32::from_le_bytes(bytes.try_into().expect("four bytes"));
    Some(taken.chunks_exact(size_of::<i32>()).map(number).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_the_same_after_the_journey_and_half_of_one_is_none() {
        let examples = vec![
            Example { source: vec![5, -1, 7], target: vec![2], ..Example::default() },
            Example::default(),
            Example { source: vec![9], types: vec![1], labels: vec![-100, 3], ..Example::default() },
        ];
        let bytes = to_bytes(&examples);
        assert_eq!(from_bytes(&bytes), Some(examples));
        assert_eq!(from_bytes(&bytes[..bytes.len() - 1]), None);
        assert_eq!(from_bytes(&[255; 16]), None);
    }
}
