//! Length penalties: the divisor of a hypothesis's score, without which short hypotheses would win.

/// The divisor of a sum of log-probabilities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LengthPenalty {
    /// `((5 + |Y|) / 6)^α` with this α, as in the paper (after Wu et al. 2016).
    Paper(f32),
    /// `|Y|^p` with this p, as in transformers.
    Power(f32),
}

impl LengthPenalty {
    /// The divisor for `length` tokens, those of the prefix left out and the end token counted.
    pub fn divisor(self, length: usize) -> f32 {
        let (base, exponent) = match self {
            LengthPenalty::Paper(alpha) => ((5.0 + length as f64) / 6.0, alpha),
            LengthPenalty::Power(power) => (length as f64, power),
        };
        base.powf(f64::from(exponent)) as f32
    }

    /// Whether the divisor grows with the length, so that a longer hypothesis may be better than a shorter one.
    pub(crate) fn favours_length(self) -> bool {
        let (LengthPenalty::Paper(exponent) | LengthPenalty::Power(exponent)) = self;
        exponent > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formulas_are_as_they_are_written() {
        assert_eq!(LengthPenalty::Power(1.0).divisor(7), 7.0);
        assert_eq!(LengthPenalty::Power(0.0).divisor(7), 1.0);
        assert_eq!(LengthPenalty::Paper(1.0).divisor(7), 2.0);
        assert_eq!(LengthPenalty::Paper(0.6).divisor(1), 1.0);
        assert!((LengthPenalty::Paper(0.6).divisor(25) - 5f32.powf(0.6)).abs() < 1e-6);
    }
}
