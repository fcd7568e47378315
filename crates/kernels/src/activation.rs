//! Activation functions and their slopes.
