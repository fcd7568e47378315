//! How good a translation is: BLEU, chrF and TER.
