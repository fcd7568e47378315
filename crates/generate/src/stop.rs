//! Stopping rules: they end a sequence before the model writes its end token.

use crate::context::Context;
use std::sync::Arc;

/// Ends sequences.
pub trait Stop: Send + Sync {
    /// Whether the sequence, with its newest token, is complete.
    fn stop(&self, context: &Context) -> bool;
}

/// Ends a sequence after any of these tokens. The token stays in the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopTokens(pub Vec<u32>);

impl Stop for StopTokens {
    fn stop(&self, context: &Context) -> bool {
        context.tokens.last().is_some_and(|token| self.0.contains(token))
    }
}

impl<S: Stop + ?Sized> Stop for Arc<S> {
    fn stop(&self, context: &Context) -> bool {
        (**self).stop(context)
    }
}
