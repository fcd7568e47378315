//! How a server behaves.

use std::time::Duration;

/// How a server behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How many sentences are decoded together, by each translation model.
    pub batch: usize,
    /// How many sentences, and texts of encoders, may be in the server, waiting or being computed: whoever comes with more is told to
    /// come again.
    pub queue: usize,
    /// The keys of which a client must have one; none for everybody.
    pub keys: Vec<String>,
    /// The origins whose pages may use this server, or `*` for all; mostly none.
    pub origins: Vec<String>,
    /// Names that the server answers to. On loopback its own names are answered as well; elsewhere, without any, all are.
    pub hosts: Vec<String>,
    /// Whether logs have the texts.
    pub log_texts: bool,
    /// What a request may ask for.
    pub limits: Limits,
}

/// What a request may ask for at most.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a body.
    pub body: usize,
    /// Bytes of a body with pictures.
    pub picture_body: usize,
    /// Characters of a text.
    pub characters: usize,
    /// Texts of a request.
    pub texts: usize,
    /// Pictures of a request.
    pub pictures: usize,
    /// The size of a beam.
    pub beam: usize,
    /// Results for a text.
    pub results: usize,
    /// How long an answer may take.
    pub time: Duration,
    /// How long a client may take for the head of a request, for its body, and for the next bytes of an answer.
    pub patience: Duration,
    /// Connections at once. Whoever comes then takes the place of one that is idle, or waits where none is.
    pub connections: usize,
    /// Connections at once from one address; others are closed.
    pub connections_per_address: Option<usize>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            batch: 32,
            queue: 1024,
            keys: Vec::new(),
            origins: Vec::new(),
            hosts: Vec::new(),
            log_texts: false,
            limits: Limits::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body: 1 << 20,
            picture_body: 20 << 20,
            characters: 5_000,
            texts: 128,
            pictures: 16,
            beam: 16,
            results: 16,
            time: Duration::from_secs(60),
            patience: Duration::from_secs(20),
            connections: 4096,
            connections_per_address: None,
        }
    }
}
