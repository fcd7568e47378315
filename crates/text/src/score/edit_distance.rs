//! The edit distance between two lists of words, as far as TER looks for it.
//!
//! ```text
//! D[i][j] = min( D[i-1][j-1] + [wᵢ ≠ rⱼ],  D[i-1][j] + 1,  D[i][j-1] + 1 )
//! ```
//!
//! Tercom, and sacreBLEU after it, compute only a beam of columns around the diagonal from corner to corner:
//! for a long pair the result can be more than the true distance, and it must be the same here. The words of
//! a hypothesis are moved about but never change in number, so the beam is the same for all its versions. Only
//! the beam is stored: a whole document may stand on one line.

use std::ops::Range;

/// What is added to nothing, and less than nothing is added to it.
const FAR: u32 = u32::MAX / 2;
/// Half the columns of the beam.
const BEAM: usize = 25;

/// The distances of versions of one hypothesis to a reference.
pub(super) struct EditDistance<'a> {
    reference: &'a [u32],
    /// The columns that are computed in each of `words + 1` rows; of the first all.
    beam: Vec<Range<usize>>,
    /// The words of the current version, and these columns of `D` for it, row after row.
    words: Vec<u32>,
    rows: Vec<u32>,
    /// Where each row begins in `rows`, and the end of the last.
    begins: Vec<usize>,
    /// Two rows for a version that is only tried.
    tried: [Vec<u32>; 2],
}

/// How the words of a hypothesis stand to those of a reference.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Alignment {
    /// For each word of the reference, how many words of the hypothesis come before its place or are in it.
    pub(super) after: Vec<usize>,
    /// Whether a word of the reference has no equal in its place.
    pub(super) reference_errors: Vec<bool>,
    /// Whether a word of the hypothesis has no equal in its place.
    pub(super) hypothesis_errors: Vec<bool>,
}

impl<'a> EditDistance<'a> {
    pub(super) fn new(words: &[u32], reference: &'a [u32]) -> EditDistance<'a> {
        let beam = beam(words.len(), reference.len());
        let mut begins = vec![0];
        begins.extend(beam.iter().scan(0, |end, columns| {
            *end += columns.len();
            Some(*end)
        }));
        let mut rows: Vec<u32> = (0..=reference.len() as u32).collect();
        rows.resize(begins[beam.len()], FAR);
        let mut distance =
            EditDistance { reference, beam, words: words.to_vec(), rows, begins, tried: Default::default() };
        distance.fill(0);
        distance
    }

    /// The words of the current version.
    pub(super) fn words(&self) -> &[u32] {
        &self.words
    }

    /// The distance of the current version.
    pub(super) fn current(&self) -> u32 {
        self.rows[self.rows.len() - 1]
    }

    /// Goes over to another version, of which the first `same` words are those of the current one.
    pub(super) fn change(&mut self, words: &[u32], same: usize) {
        self.words.copy_from_slice(words);
        self.fill(same);
    }

    /// The distance of another version, of which the first `same` words are those of the current one; `None`
    /// if it is more than `most`.
    pub(super) fn of(&mut self, words: &[u32], same: usize, most: u32) -> Option<u32> {
        let [above, row] = &mut self.tried;
        above.clear();
        above.extend_from_slice(&self.rows[self.begins[same]..self.begins[same + 1]]);
        for i in same..words.len() {
            row.resize(self.beam[i + 1].len(), FAR);
            // No way to the end costs less than the cheapest place that it passes.
            let [first_above, first] = [i, i + 1].map(|row| self.beam[row].start);
            if next_row(above, first_above, row, first, words[i], self.reference) > most {
                return None;
            }
            std::mem::swap(above, row);
        }
        above.last().copied().filter(|&distance| distance <= most)
    }

    /// The best way through the current version: a match or a replacement before a word too many before one
    /// too few.
    pub(super) fn alignment(&self) -> Alignment {
        let (mut i, mut j) = (self.words.len(), self.reference.len());
        let at = |i: usize, j: usize| {
            let inside = self.beam[i].contains(&j);
            if inside { self.rows[self.begins[i] + j - self.beam[i].start] } else { FAR }
        };
        let mut alignment = Alignment {
            after: vec![0; j],
            reference_errors: vec![true; j],
            hypothesis_errors: vec![true; i],
        };
        while i > 0 || j > 0 {
            let diagonal = (i > 0 && j > 0).then(|| {
                let differs = self.words[i - 1] != self.reference[j - 1];
                (differs, at(i - 1, j - 1) + u32::from(differs))
            });
            match diagonal {
                Some((differs, distance)) if distance == at(i, j) => {
                    alignment.after[j - 1] = i;
                    alignment.reference_errors[j - 1] = differs;
                    alignment.hypothesis_errors[i - 1] = differs;
                    (i, j) = (i - 1, j - 1);
                }
                _ if i > 0 && at(i - 1, j) + 1 == at(i, j) => i -= 1,
                _ => {
                    alignment.after[j - 1] = i;
                    j -= 1;
                }
            }
        }
        alignment
    }

    /// Computes the rows of all words but the first `same`.
    fn fill(&mut self, same: usize) {
        for i in same..self.words.len() {
            let [begin, middle, end] = [i, i + 1, i + 2].map(|row| self.begins[row]);
            let (above, row) = self.rows[begin..end].split_at_mut(middle - begin);
            let [first_above, first] = [i, i + 1].map(|row| self.beam[row].start);
            next_row(above, first_above, row, first, self.words[i], self.reference);
        }
    }
}

/// Computes the columns of the beam in a row from the one above it, and gives the least of them. The first
/// columns of the two are given; beyond the beam everything is far.
fn next_row(
    above: &[u32],
    first_above: usize,
    row: &mut [u32],
    first: usize,
    word: u32,
    reference: &[u32],
) -> u32 {
    let above = |j: usize| j.checked_sub(first_above).and_then(|j| above.get(j)).copied().unwrap_or(FAR);
    let mut least = FAR;
    let mut left = FAR;
    let mut diagonal = first.checked_sub(1).map_or(FAR, above);
    for (j, cell) in (first..).zip(row) {
        let up = above(j);
        let mut distance = (up + 1).min(left + 1).min(FAR);
        if j > 0 {
            distance = distance.min(diagonal + u32::from(word != reference[j - 1]));
        }
        *cell = distance;
        (left, diagonal) = (distance, up);
        least = least.min(distance);
    }
    least
}

/// The columns of each row: all of the first, then those around the straight line between the corners. The
/// arithmetic is sacreBLEU's, rounding included.
fn beam(words: usize, reference: usize) -> Vec<Range<usize>> {
    let ratio = reference as f64 / words as f64;
    // Where the line is steep, rows of the usual width would not touch each other.
    let width = if BEAM as f64 >= ratio / 2.0 { BEAM } else { (ratio / 2.0 + BEAM as f64).ceil() as usize };
    let row = |i: usize| {
        let diagonal = (i as f64 * ratio).floor() as usize;
        let end = if i == words { reference + 1 } else { (reference + 1).min(diagonal + width) };
        diagonal.saturating_sub(width)..end
    };
    std::iter::once(0..reference + 1).chain((1..=words).map(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_what_must_be_inserted_deleted_and_replaced() {
        let distance = |words: &[u32], reference: &[u32]| EditDistance::new(words, reference).current();
        assert_eq!(distance(&[1, 2, 3], &[1, 2, 3]), 0);
        assert_eq!(distance(&[1, 9, 3, 4], &[1, 2, 3]), 2);
        assert_eq!(distance(&[], &[1, 2]), 2);
        assert_eq!(distance(&[1, 2], &[]), 2);
    }

    #[test]
    fn a_version_that_is_tried_has_the_distance_it_has_when_it_is_current() {
        let reference: Vec<u32> = (0..40).map(|i| i * 7 % 11).collect();
        let words: Vec<u32> = (0..37).map(|i| i * 5 % 11).collect();
        let mut distance = EditDistance::new(&words, &reference);
        for same in [0, 5, 36] {
            let mut other = words.clone();
            other[same..].reverse();
            let expected = EditDistance::new(&other, &reference).current();
            assert_eq!(distance.of(&other, same, FAR), Some(expected));
            assert_eq!(distance.of(&other, same, expected), Some(expected));
            assert_eq!(distance.of(&other, same, expected - 1), None);
            distance.change(&other, same);
            assert_eq!(distance.current(), expected);
            distance.change(&words, same);
        }
    }

    #[test]
    fn the_alignment_says_where_each_word_of_the_reference_stands() {
        let alignment = EditDistance::new(&[1, 8, 3, 9], &[1, 2, 3]).alignment();
        let expected = Alignment {
            after: vec![1, 2, 3],
            reference_errors: vec![false, true, false],
            hypothesis_errors: vec![false, true, false, true],
        };
        assert_eq!(alignment, expected);
        assert_eq!(EditDistance::new(&[3], &[1, 2, 3]).alignment().after, [0, 0, 1]);
    }

    #[test]
    fn a_document_on_one_line_takes_no_more_than_its_beam() {
        // All columns of all rows would take 40 GB.
        let reference: Vec<u32> = (0..100_000).collect();
        let mut words = reference.clone();
        words[77_777] = 0;
        let distance = EditDistance::new(&words, &reference);
        assert_eq!(distance.current(), 1);
        assert!(distance.rows.len() <= 100_001 + 100_000 * 2 * BEAM);
    }

    #[test]
    fn far_from_the_diagonal_nothing_is_found() {
        // 30 words that stand 30 places off, out of the beam: all of them are replaced.
        let reference: Vec<u32> = (1..=60).collect();
        let words: Vec<u32> = (31..=60).chain(101..=130).collect();
        assert_eq!(EditDistance::new(&words, &reference).current(), 60);
    }
}
