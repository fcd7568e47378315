//! The parts that families after the paper need, composed: the stacks of T5 and of GPT-2, held against transformers, and decoded with
//! a cache to the same bits as without.

use crate::common::{
    Golden, assert_gradient_near, assert_near, backend, backends, backends_in, bits, gradients_of, random,
    relative,
};
use attentive_model::layers::{
    Branch, Cache, Decoder, Embedding, EmbeddingConfig, Encoder, FeedForwardKind, Head, MultiHeadConfig,
    Norm, NormKind, NormPlacement, PositionKind, Positions, ProjectionBiases, RelativeConfig,
    RelativePositions, StackConfig,
};
use attentive_model::{Builder, Error, Sequences};
use attentive_tensor::sealed::SealedBackend;
use attentive_tensor::{Activation, Backend, Gradients, Isa, Parameter, Precision, Tape, Tensor, Var};
use std::sync::Arc;

/// PyTorch in f32 comes within 3e-6.
const LIMIT: f64 = 1e-5;

/// T5 v1.1 without its embeddings: RMS norms first and at the end, a gated network, no biases, no scale, and for each side a table
/// over relative positions.
struct T5 {
    encoder: Encoder,
    encoder_norm: Norm,
    encoder_positions: RelativePositions,
    decoder: Decoder,
    decoder_norm: Norm,
    decoder_positions: RelativePositions,
}

impl T5 {
    fn new(builder: &Builder) -> Result<T5, Error> {
        let attention = MultiHeadConfig {
            scale: Some(1.0),
            biases: ProjectionBiases::None,
            ..MultiHeadConfig::with_widths(24, 4, 7, 7)
        };
        let stack = StackConfig {
            feed_forward: FeedForwardKind::Gated,
            feed_forward_bias: false,
            activation: Activation::GeluTanh,
            norm: NormPlacement::Pre,
            norm_kind: NormKind::Rms,
            epsilon: 1e-3,
            dropout: 0.0,
            ..StackConfig::new(2, attention, 40)
        };
        let (encoder, decoder) = (builder.at("encoder"), builder.at("decoder"));
        let positions = |builder: &Builder, bidirectional| {
            let config = RelativeConfig { h: 4, buckets: 10, max_distance: 20, bidirectional };
            RelativePositions::new(&builder.at("relative_attention_bias"), &config)
        };
        Ok(T5 {
            encoder: Encoder::new(&encoder, &stack)?,
            encoder_norm: stack.final_norm(&encoder)?.expect("norms come first"),
            encoder_positions: positions(&encoder, true)?,
            decoder: Decoder::new(&decoder, &stack)?,
            decoder_norm: stack.final_norm(&decoder)?.expect("norms come first"),
            decoder_positions: positions(&decoder, false)?,
        })
    }

    fn encode(&self, tape: &Tape, x: &Var, sequences: &Sequences) -> Var {
        let bias = self.encoder_positions.bias(tape);
        let layout = sequences.attending(&**tape.backend(), sequences);
        self.encoder_norm.forward(tape, &self.encoder.forward(tape, x, &layout, Some(&bias)))
    }

    fn decode(&self, tape: &Tape, x: &Var, sequences: &Sequences, memory: (&Var, &Sequences)) -> Var {
        let bias = self.decoder_positions.bias(tape);
        let [own, cross] = [sequences, memory.1].map(|keys| sequences.attending(&**tape.backend(), keys));
        let x = self.decoder.forward(tape, x, &own, Some(&bias), Some((memory.0, &cross)));
        self.decoder_norm.forward(tape, &x)
    }

    fn step(&self, tape: &Tape, x: &Var, branches: &[Branch], cache: &mut Cache) -> Var {
        let (bias, step) = (self.decoder_positions.bias(tape), self.decoder.begin(tape, branches, cache));
        self.decoder_norm.forward(tape, &self.decoder.step(tape, x, &step, Some(&bias), cache))
    }
}

/// GPT-2: learned positions, norms first and one at the end, GELU by tanh, no memory, a tied output.
struct Gpt2 {
    tokens: Embedding,
    positions: Positions,
    decoder: Decoder,
    norm: Norm,
    head: Head,
}

const VOCABULARY: usize = 37;

impl Gpt2 {
    fn new(builder: &Builder) -> Result<Gpt2, Error> {
        let config =
            EmbeddingConfig { vocab_size: VOCABULARY, d_emb: 24, d_model: 24, padding: None, scaled: false };
        let stack = StackConfig {
            activation: Activation::GeluTanh,
            norm: NormPlacement::Pre,
            dropout: 0.0,
            ..StackConfig::new(2, MultiHeadConfig::new(24, 4)?, 40)
        };
        let tokens = Embedding::new(&builder.at("embed_tokens"), &config)?.tied(builder)?;
        Ok(Gpt2 {
            positions: Positions::new(&builder.at("embed_positions"), PositionKind::Learned, 40, 24)?,
            decoder: Decoder::without_memory(builder, &stack, |_| None)?,
            norm: stack.final_norm(builder)?.expect("norms come first"),
            head: Head::tied(builder, &tokens, &config)?,
            tokens,
        })
    }

    fn hidden(&self, tape: &Tape, ids: &Tensor, sequences: &Sequences) -> Var {
        let x = self.positions.forward(tape, &self.tokens.forward(tape, ids), &sequences.positions());
        let layout = sequences.attending(&**tape.backend(), sequences);
        self.norm.forward(tape, &self.decoder.forward(tape, &x, &layout, None, None))
    }

    fn step(&self, tape: &Tape, ids: &[i32], branches: &[Branch], cache: &mut Cache) -> Vec<f32> {
        let step = self.decoder.begin(tape, branches, cache);
        let x = self.tokens.forward(tape, &tape.backend().upload_i32(ids));
        let x = self.positions.forward(tape, &x, step.positions());
        let x = self.norm.forward(tape, &self.decoder.step(tape, &x, &step, None, cache));
        tape.backend().download_f32(self.head.logits(tape, &x).value())
    }
}

/// Holds gradients against the golden ones.
fn assert_gradients(
    golden: &Golden,
    backend: &Arc<dyn Backend>,
    gradients: &Gradients,
    parameters: &[Parameter],
    name: impl Fn(&str) -> String,
) {
    for (parameter, gradient) in parameters.iter().zip(gradients_of(&**backend, gradients, parameters)) {
        let name = name(parameter.name());
        assert_gradient_near(&name, &gradient, &golden.numbers(&name), LIMIT);
    }
}

#[test]
fn the_stacks_of_t5_are_those_of_transformers() {
    let golden = Golden::open("parts");
    let (sources, targets) = (golden.sequences("t5.source.lengths"), golden.sequences("t5.target.lengths"));
    for backend in backends() {
        let builder = Builder::checkpoint(&backend, &golden.0);
        let model = T5::new(&builder.at("t5")).unwrap();
        let inputs = ["t5.source", "t5.target"].map(|name| golden.parameter(&*backend, name));
        let tape = Tape::training(&backend, 0);
        let [source, target] = inputs.each_ref().map(|input| tape.parameter(input));
        let memory = model.encode(&tape, &source, &sources);
        let y = model.decode(&tape, &target, &targets, (&memory, &sources));
        assert_near("memory", &backend.download_f32(memory.value()), &golden.numbers("t5.memory"), LIMIT);
        assert_near("y", &backend.download_f32(y.value()), &golden.numbers("t5.y"), LIMIT);
        let loss = tape.sum(&tape.mul(&y, &tape.constant(golden.tensor(&*backend, "t5.probe"))));
        let mut gradients = Gradients::default();
        tape.backward(&loss, &mut gradients);
        let parameters = [builder.parameters(), inputs.to_vec()].concat();
        assert_gradients(&golden, &backend, &gradients, &parameters, |name| {
            name.replacen("t5.", "t5.grad.", 1)
        });
    }
}

#[test]
fn a_decoder_of_its_own_is_gpt2() {
    let golden = Golden::open("parts");
    let sequences = golden.sequences("gpt2.lengths");
    for backend in backends() {
        let builder = Builder::checkpoint(&backend, &golden.0);
        let model = Gpt2::new(&builder.at("gpt2")).unwrap();
        let [ids, targets] = ["gpt2.ids", "gpt2.targets"].map(|name| backend.upload_i32(&golden.ids(name)));
        let tape = Tape::inference(&backend);
        let logits = model.head.logits(&tape, &model.hidden(&tape, &ids, &sequences));
        assert_near("logits", &backend.download_f32(logits.value()), &golden.numbers("gpt2.logits"), LIMIT);
        let tape = Tape::training(&backend, 0);
        let loss = model.head.loss(&tape, &model.hidden(&tape, &ids, &sequences), &targets, 0.0);
        assert_near("loss", &backend.download_f32(loss.value()), &golden.numbers("gpt2.loss"), LIMIT);
        let mut gradients = Gradients::default();
        tape.backward(&loss, &mut gradients);
        let name = |name: &str| name.replacen("gpt2.", "gpt2.grad.", 1);
        assert_gradients(&golden, &backend, &gradients, &builder.parameters(), name);
    }
}

/// Token by token, as a prompt and tokens behind it, and as branches of a beam that share their beginning: in the type of
/// activations, and with weights that were prepared for decoding.
#[test]
fn a_decoder_of_its_own_decodes_with_the_cache_to_the_same_logits() {
    let golden = Golden::open("parts");
    for (precision, packed) in [(Precision::F32, false), (Precision::F32, true), (Precision::Bf16, true)] {
        for backend in backends_in(precision) {
            let builder = Builder::checkpoint(&backend, &golden.0);
            let builder = if packed { builder.packed() } else { builder };
            let model = Gpt2::new(&builder.at("gpt2")).unwrap();
            let tape = Tape::inference(&backend);
            let whole = |ids: &[i32]| {
                let hidden = model.hidden(&tape, &backend.upload_i32(ids), &Sequences::new([ids.len()]));
                backend.download_f32(model.head.logits(&tape, &hidden).value())
            };
            let ids: Vec<i32> = golden.ids("gpt2.ids")[6..].to_vec();
            let expected = whole(&ids);

            let mut cache = Cache::default();
            for (position, expected) in expected.chunks(VOCABULARY).enumerate() {
                let branch = Branch::token(0, (position > 0).then_some(0));
                let logits = model.step(&tape, &ids[position..=position], &[branch], &mut cache);
                assert_eq!(bits(&logits), bits(expected), "{} packed {packed}", backend.name());
            }

            let mut cache = Cache::default();
            let prompt = Branch { slot: 0, parent: None, tokens: 20 };
            let logits = model.step(&tape, &ids[..20], &[prompt], &mut cache);
            assert_eq!(bits(&logits), bits(&expected[..20 * VOCABULARY]));
            let two = [Branch::token(0, Some(0)), Branch::token(0, Some(0))];
            let logits = model.step(&tape, &[ids[20], 5], &two, &mut cache);
            let other = whole(&[&ids[..20], &[5]].concat());
            assert_eq!(bits(&logits[..VOCABULARY]), bits(&expected[20 * VOCABULARY..][..VOCABULARY]));
            assert_eq!(bits(&logits[VOCABULARY..]), bits(&other[20 * VOCABULARY..]));
        }
    }
}

/// With a table over relative positions: the query of a step has the position behind all that is cached.
#[test]
fn a_decoder_with_relative_positions_decodes_with_the_cache_to_the_same_bits() {
    let golden = Golden::open("parts");
    let sources = golden.sequences("t5.source.lengths");
    for precision in [Precision::F32, Precision::Bf16] {
        for backend in backends_in(precision) {
            let builder = Builder::checkpoint(&backend, &golden.0).packed();
            let model = T5::new(&builder.at("t5")).unwrap();
            let tape = Tape::inference(&backend);
            let input = |x: Tensor| tape.constant(backend.cast(&x, backend.activations()));
            let memory = model.encode(&tape, &input(golden.tensor(&*backend, "t5.source")), &sources);
            let length = 70;
            let rows = random(&tape, 3, 3 * length, 24);
            let rows = input(rows.value().clone());
            let targets = Sequences::new([length; 3]);
            let expected = model.decode(&tape, &rows, &targets, (&memory, &sources));
            let expected = backend.download_f32(expected.value());

            let mut cache = Cache::default();
            model.decoder.admit(&tape, &memory, &sources, &[0, 1, 2], &mut cache);
            for position in 0..length {
                let numbers: Vec<usize> = (0..3).map(|sequence| sequence * length + position).collect();
                let ids: Vec<i32> = numbers.iter().map(|&row| row as i32).collect();
                let x = tape.embedding(&rows, &backend.upload_i32(&ids), 1.0, None);
                let branches = [0, 1, 2].map(|slot| Branch::token(slot, (position > 0).then_some(slot)));
                let y = backend.download_f32(model.step(&tape, &x, &branches, &mut cache).value());
                for (y, row) in y.chunks(24).zip(numbers) {
                    let name = format!("{} position {position}", backend.name());
                    assert_eq!(bits(y), bits(&expected[row * 24..][..24]), "{name}");
                }
            }
        }
    }
}

/// A training step on a device whose memory the host cannot read: the bias and its gradient stay there.
#[test]
fn the_parts_ask_a_device_for_none_of_its_numbers() {
    let golden = Golden::open("parts");
    let (sources, targets) = (golden.sequences("t5.source.lengths"), golden.sequences("t5.target.lengths"));
    let loss_and_gradient = |backend: &Arc<dyn Backend>| {
        let builder = Builder::checkpoint(backend, &golden.0);
        let model = T5::new(&builder.at("t5")).unwrap();
        let tape = Tape::training(backend, 0);
        let input = |name| tape.constant(golden.tensor(&**backend, name));
        let memory = model.encode(&tape, &input("t5.source"), &sources);
        let y = model.decode(&tape, &input("t5.target"), &targets, (&memory, &sources));
        let halves = [0..12, 12..24].map(|columns| tape.slice_columns(&y, columns));
        let loss = tape.sum(&tape.mul(&tape.concat_columns(&[&halves[1], &halves[0]]), &input("t5.probe")));
        let mut gradients = Gradients::default();
        tape.backward(&loss, &mut gradients);
        let named = |p: &&Parameter| p.name() == "t5.encoder.relative_attention_bias.weight";
        let gradient = gradients.get(builder.parameters().iter().find(named).unwrap()).unwrap().clone();
        [loss.value().clone(), gradient]
    };
    for backend in backends() {
        let sealed = Arc::new(SealedBackend::new(Arc::clone(&backend)));
        let found = loss_and_gradient(&(Arc::clone(&sealed) as Arc<dyn Backend>));
        assert_eq!(sealed.downloads(), 0);
        for (found, expected) in found.iter().zip(&loss_and_gradient(&backend)) {
            let found = (&*sealed as &dyn Backend).download_f32(found);
            assert_eq!(bits(&found), bits(&backend.download_f32(expected)), "{}", backend.name());
        }
    }
}

/// In bf16 the stacks are near to what they are in f32, and so are all gradients.
#[test]
fn the_stacks_of_t5_in_bf16_are_near_to_those_in_f32() {
    let golden = Golden::open("parts");
    let (sources, targets) = (golden.sequences("t5.source.lengths"), golden.sequences("t5.target.lengths"));
    let backend = backend(Isa::best(), Precision::Bf16, 2);
    let builder = Builder::checkpoint(&backend, &golden.0);
    let model = T5::new(&builder.at("t5")).unwrap();
    let tape = Tape::training(&backend, 0);
    let input = |name| tape.constant(backend.cast(&golden.tensor(&*backend, name), backend.activations()));
    let memory = model.encode(&tape, &input("t5.source"), &sources);
    let y = model.decode(&tape, &input("t5.target"), &targets, (&memory, &sources));
    assert_near("y in bf16", &backend.download_f32(y.value()), &golden.numbers("t5.y"), 0.03);
    let loss = tape.sum(&tape.mul(&y, &input("t5.probe")));
    let mut gradients = Gradients::default();
    tape.backward(&loss, &mut gradients);
    let parameters = builder.parameters();
    for (parameter, gradient) in parameters.iter().zip(gradients_of(&*backend, &gradients, &parameters)) {
        let name = parameter.name().replacen("t5.", "t5.grad.", 1);
        let error = relative(&gradient, &golden.numbers(&name));
        println!("{error:.1e} {name} in bf16");
        assert!(error < 0.15, "{name}: {error}");
    }
}

#[test]
fn a_large_table_that_the_output_shares_gives_the_bits_of_two() {
    let config = EmbeddingConfig { vocab_size: 1 << 18, d_emb: 64, d_model: 64, padding: None, scaled: true };
    let ids = [0, (1 << 18) - 1, 77, 130_000];
    for backend in backends() {
        let answers = |builder: &Builder| {
            let tokens = Embedding::new(builder, &config).unwrap().tied(builder).unwrap();
            let head = Head::tied(builder, &tokens, &config).unwrap();
            let tape = Tape::inference(&backend);
            let rows = tokens.forward(&tape, &backend.upload_i32(&ids));
            [&rows, &head.logits(&tape, &rows)].map(|x| bits(&backend.download_f32(x.value())))
        };
        let whole = Builder::random(&backend, 1);
        let packed = Builder::random(&backend, 1).packed();
        assert_eq!(answers(&packed), answers(&whole), "{}", backend.name());
    }
}
