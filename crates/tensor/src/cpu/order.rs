//! The order in which heads lie in the columns of queries, keys and values.
//!
//! Weights are learned head after head, and so attention takes them. A cache has another order, in which sums over keys are sums of
//! whole vectors. Projections that are [prepared](crate::ProductOps::prepare) for a cache have their rows in its order, so that
//! nothing is turned at each step. What they give remembers its order, and is turned back where somebody needs it head after
//! head.

use crate::backend::{Form, Role};
use attentive_kernels::attention::{Attention, fits_int8, heads_side_by_side, key_order, value_order};
use attentive_kernels::{Cpu, Real};
use std::sync::Arc;

/// An order of columns that is not that of heads one after the other.
#[derive(Debug, Clone)]
pub(super) enum Order {
    /// Element by element, the heads side by side.
    SideBySide {
        /// Elements of a head.
        d: usize,
        heads: usize,
    },
    /// As a cache in int8 has it: which column of heads one after the other each place has.
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

    /// Rows of weights, or the numbers of a bias, brought from the usual order to this one.
    pub(super) fn arrange<T: Copy>(&self, rows: &[T]) -> Vec<T> {
        let columns: Arc<[usize]> = match self {
            &Order::SideBySide { d, heads } => {
                (0..heads * d).map(|place| place % heads * d + place / heads).collect()
            }
            Order::Int8(columns) => Arc::clone(columns),
        };
        let width = rows.len() / columns.len().max(1);
        columns.iter().flat_map(|row| &rows[row * width..][..width]).copied().collect()
    }

    /// Rows of `x` brought from this order to the usual one.
    pub(super) fn turn_back<T: Real>(&self, cpu: &Cpu, x: &[T], y: &mut [T]) {
        match self {
            // Elements and heads change places, as they do on the way there.
            &Order::SideBySide { d, heads } => heads_side_by_side(cpu, x, d, heads * d, y),
            Order::Int8(columns) => {
                for (x, y) in x.chunks_exact(columns.len()).zip(y.chunks_exact_mut(columns.len())) {
                    x.iter().zip(&columns[..]).for_each(|(&x, &column)| y[column] = x);
                }
            }
        }
    }
}
