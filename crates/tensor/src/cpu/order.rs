//! The order of heads in the columns of queries, keys and values.
//!
//! Weights are learned head after head, and attention reads them so. A cache has another order, in which sums over keys are sums of whole
//! vectors. Projections that are [prepared](crate::ProductOps::prepare) for a cache have their rows in its order, so that no step has to
//! transpose anything. Their results remember the order, and are brought back to head after head where that is needed.

use crate::backend::{Form, Role};
use attentive_kernels::attention::{Attention, fits_int8, heads_side_by_side, key_order, value_order};
use attentive_kernels::{Cpu, Real};
use std::sync::Arc;

/// An order of columns that is not head after head.
#[derive(Debug, Clone)]
pub(super) enum Order {
    /// Element by element, the heads side by side.
    SideBySide {
        /// Elements of a head.
        d: usize,
        heads: usize,
    },
    /// The order of a cache in int8: `order[i]` is the column, head after head, that is stored at position `i`.
    Int8(Arc<[usize]>),
}

impl Order {
    /// The order for a role, if it is not the usual one.
    pub(super) fn of(role: Role, form: Form) -> Option<Order> {
        let (Role::Queries(rule) | Role::Keys(rule) | Role::Values(rule)) = role else { return None };
        let Attention { heads, d_k, d_v, .. } = rule;
        let is_value = matches!(role, Role::Values(_));
        match form {
            Form::Int8 if fits_int8(&rule) && is_value => Some(Order::Int8(value_order(heads, d_v).into())),
            Form::Int8 if fits_int8(&rule) => Some(Order::Int8(key_order(heads, d_k).into())),
            _ if is_value => None,
            _ => Some(Order::SideBySide { d: d_k, heads }),
        }
    }

    /// Brings rows of weights, or the numbers of a bias, from head after head to this order.
    pub(super) fn arrange<T: Copy>(&self, rows: &[T]) -> Vec<T> {
        let columns: Arc<[usize]> = match self {
            &Order::SideBySide { d, heads } => {
                (0..heads * d).map(|position| position % heads * d + position / heads).collect()
            }
            Order::Int8(columns) => Arc::clone(columns),
        };
        let width = rows.len() / columns.len().max(1);
        columns.iter().flat_map(|row| &rows[row * width..][..width]).copied().collect()
    }

    /// Brings rows of `x` from this order to head after head.
    pub(super) fn turn_back<T: Real>(&self, cpu: &Cpu, x: &[T], y: &mut [T]) {
        match self {
            // A transposition of elements and heads, as in the other direction.
            &Order::SideBySide { d, heads } => heads_side_by_side(cpu, x, d, heads * d, y),
            Order::Int8(columns) => {
                for (x, y) in x.chunks_exact(columns.len()).zip(y.chunks_exact_mut(columns.len())) {
                    x.iter().zip(&columns[..]).for_each(|(&x, &column)| y[column] = x);
                }
            }
        }
    }
}
