//! Activation functions by the names that configurations of transformers have for them.

use crate::error::Error;
use attentive_tensor::Activation;

/// Names in `config.json`; of several for one function, the first is written.
const NAMES: [(&str, Activation); 14] = [
    ("relu", Activation::Relu),
    ("gelu", Activation::Gelu),
    ("gelu_new", Activation::GeluTanh),
    ("swish", Activation::Silu),
    ("silu", Activation::Silu),
    ("tanh", Activation::Tanh),
    ("sigmoid", Activation::Sigmoid),
    ("quick_gelu", Activation::QuickGelu),
    ("relu2", Activation::ReluSquared),
    // Other ways to compute the same functions.
    ("gelu_python", Activation::Gelu),
    ("gelu_pytorch_tanh", Activation::GeluTanh),
    ("gelu_fast", Activation::GeluTanh),
    ("gelu_accurate", Activation::GeluTanh),
    ("gelu_python_tanh", Activation::GeluTanh),
];

/// The function that transformers calls `name`. A name that is not known is refused together with those that are; `field` is where
/// it stands in the configuration.
pub fn activation_named(field: &'static str, name: &str) -> Result<Activation, Error> {
    let found = NAMES.iter().find(|(known, _)| *known == name);
    found.map(|(_, activation)| *activation).ok_or_else(|| {
        let known = NAMES.map(|(known, _)| known).join(", ");
        Error::config(field, format!("`{name}` is not supported; supported are {known}"))
    })
}

/// What transformers calls a function.
pub fn name_of_activation(activation: Activation) -> &'static str {
    let found = NAMES.iter().find(|(_, known)| *known == activation);
    found.expect("every activation has a name").0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_a_name_that_leads_back_to_it() {
        for activation in Activation::ALL {
            let name = name_of_activation(activation);
            assert_eq!(activation_named("hidden_act", name).unwrap(), activation);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = activation_named("hidden_act", "mish").unwrap_err().to_string();
        assert!(
            error.starts_with(
                "hidden_act: `mish` is not supported; supported are relu, gelu, gelu_new, swish, silu"
            ),
            "{error}"
        );
    }
}
