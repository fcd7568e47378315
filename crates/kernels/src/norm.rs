//! Layer normalisation with residual and dropout.
