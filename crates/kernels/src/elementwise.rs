//! Sums, products, scaling, dropout and sums over rows.
