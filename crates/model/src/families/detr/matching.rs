//! Hungarian matching: assigns a column to each row, so that the sum of the costs is least.
//!
//! Rows are assigned one after the other. For each row, the search finds the cheapest path to a free column; rows along the path change
//! their columns (shortest augmenting paths, after Jonker and Volgenant). Potentials of rows and columns keep the reduced costs `cost - row
//! - column` at zero or more, so that Dijkstra's search finds the path.

/// The column that is assigned to each row of `costs: [rows, columns]`. If there are more rows than columns, the rows that are left over
/// have none. Costs must be finite.
///
/// ```
/// use attentive_model::families::detr::assign;
///
/// // The first column is the cheapest for both rows. The second row loses more without it.
/// assert_eq!(assign(&[1.0, 2.0, 9.0, 0.0, 5.0, 9.0], 2, 3), [Some(1), Some(0)]);
/// ```
///
/// # Panics
/// If there are not `rows · columns` costs.
pub fn assign(costs: &[f64], rows: usize, columns: usize) -> Vec<Option<usize>> {
    assert_eq!(costs.len(), rows * columns, "assign: {} costs for {rows} × {columns}", costs.len());
    if rows <= columns {
        return assign_all(|row, column| costs[row * columns + column], rows, columns);
    }
    let mut found = vec![None; rows];
    let of_columns = assign_all(|column, row| costs[row * columns + column], columns, rows);
    for (column, row) in of_columns.into_iter().enumerate() {
        if let Some(row) = row {
            found[row] = Some(column);
        }
    }
    found
}

/// The same with at least as many columns as rows.
fn assign_all(cost: impl Fn(usize, usize) -> f64, rows: usize, columns: usize) -> Vec<Option<usize>> {
    let (mut of_row, mut of_column) = (vec![0.0; rows], vec![0.0; columns]);
    let (mut column_of, mut row_of) = (vec![None; rows], vec![None; columns]);
    for first in 0..rows {
        let mut shortest = vec![f64::INFINITY; columns];
        let mut before = vec![first; columns];
        let mut seen = vec![false; columns];
        let mut rows_seen = vec![first];
        let (mut row, mut reached) = (first, 0.0);
        let free = loop {
            let mut next: Option<usize> = None;
            for column in (0..columns).filter(|&column| !seen[column]) {
                let length = reached + cost(row, column) - of_row[row] - of_column[column];
                if length < shortest[column] {
                    (shortest[column], before[column]) = (length, row);
                }
                // Of equally near columns, a free one ends the search.
                let nearer = next.is_none_or(|best: usize| {
                    shortest[column] < shortest[best]
                        || shortest[column] == shortest[best]
                            && row_of[column].is_none()
                            && row_of[best].is_some()
                });
                if nearer {
                    next = Some(column);
                }
            }
            let column = next.expect("there are at least as many columns as rows");
            (reached, seen[column]) = (shortest[column], true);
            match row_of[column] {
                None => break column,
                Some(taken_by) => {
                    rows_seen.push(taken_by);
                    row = taken_by;
                }
            }
        };
        of_row[first] += reached;
        for &row in &rows_seen[1..] {
            let column: usize = column_of[row].expect("a row that was reached has a column");
            of_row[row] += reached - shortest[column];
        }
        for column in (0..columns).filter(|&column| seen[column]) {
            of_column[column] -= reached - shortest[column];
        }
        // Along the path, from its end, each row takes over the column that follows it.
        let mut column = free;
        loop {
            let row = before[column];
            row_of[column] = Some(row);
            match column_of[row].replace(column) {
                Some(left) => column = left,
                // The row that began the search had none.
                None => break,
            }
        }
    }
    column_of
}

#[cfg(test)]
mod tests {
    use super::*;
    use attentive_tensor::Random;

    /// The least sum over all assignments of the rows from `row` on.
    fn least(costs: &[f64], columns: usize, row: usize, taken: &mut Vec<bool>) -> f64 {
        if row * columns == costs.len() {
            return 0.0;
        }
        let mut best = f64::INFINITY;
        for column in 0..columns {
            if !taken[column] {
                taken[column] = true;
                best = best.min(costs[row * columns + column] + least(costs, columns, row + 1, taken));
                taken[column] = false;
            }
        }
        best
    }

    #[test]
    fn no_other_assignment_costs_less() {
        for seed in 0..300u64 {
            let (rows, columns) = (1 + seed as usize % 5, 1 + seed as usize / 5 % 6);
            let random = Random::new(seed);
            // Every third matrix has many equal costs.
            let cost = |i: u32| match seed % 3 {
                0 => f64::from(random.bits(i) % 3),
                _ => f64::from(random.normal(i)),
            };
            let costs: Vec<f64> = (0..(rows * columns) as u32).map(cost).collect();
            let found = assign(&costs, rows, columns);
            let mut used: Vec<usize> = found.iter().flatten().copied().collect();
            assert_eq!(used.len(), rows.min(columns));
            used.sort_unstable();
            used.dedup();
            assert_eq!(used.len(), rows.min(columns), "a column has two rows");
            let places =
                found.iter().enumerate().filter_map(|(row, column)| Some(row * columns + (*column)?));
            let sum: f64 = places.map(|place| costs[place]).sum();
            let expected = if rows <= columns {
                least(&costs, columns, 0, &mut vec![false; columns])
            } else {
                let transposed: Vec<f64> =
                    (0..rows * columns).map(|i| costs[i % rows * columns + i / rows]).collect();
                least(&transposed, rows, 0, &mut vec![false; rows])
            };
            assert!((sum - expected).abs() < 1e-9, "{seed}: {sum}, not {expected}");
        }
    }

    #[test]
    fn nothing_is_assigned_to_nothing() {
        assert_eq!(assign(&[], 0, 4), []);
        assert_eq!(assign(&[], 2, 0), [None, None]);
    }
}
