//! Numbers about the server, as Prometheus reads them.

use crate::queue::Queue;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What has happened since the server began.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// By route and status.
    requests: Mutex<BTreeMap<(String, u16), u64>>,
    seconds: Histogram,
    source_tokens: AtomicU64,
    target_tokens: AtomicU64,
    sentences: AtomicU64,
    steps: AtomicU64,
    step_nanoseconds: AtomicU64,
    rows: AtomicU64,
    texts: AtomicU64,
    text_tokens: AtomicU64,
    batches: AtomicU64,
    batch_texts: AtomicU64,
    batch_nanoseconds: AtomicU64,
    pub connections: AtomicU64,
}

/// The ends of a histogram's buckets, in seconds.
const BUCKETS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

#[derive(Debug, Default)]
struct Histogram {
    /// How many were in each bucket, and above all.
    counts: [AtomicU64; BUCKETS.len() + 1],
    microseconds: AtomicU64,
}

fn add(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Ordering::Relaxed);
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl Metrics {
    /// A request was answered.
    pub fn answered(&self, route: &str, status: u16, time: Duration) {
        let mut requests = self.requests.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match requests.get_mut(&(route.to_owned(), status)) {
            Some(count) => *count += 1,
            None => drop(requests.insert((route.to_owned(), status), 1)),
        }
        self.seconds.count(time);
    }

    /// A text was translated or continued.
    pub fn written(&self, source_tokens: usize, target_tokens: usize) {
        add(&self.source_tokens, source_tokens as u64);
        add(&self.target_tokens, target_tokens as u64);
    }

    /// A step of decoding was made, for so many sentences, of which some were finished with it.
    pub fn stepped(&self, rows: usize, finished: usize, time: Duration) {
        add(&self.steps, 1);
        add(&self.rows, rows as u64);
        add(&self.sentences, finished as u64);
        add(&self.step_nanoseconds, time.as_nanos() as u64);
    }

    /// Texts were answered by an encoder.
    pub fn encoded(&self, texts: usize, tokens: usize) {
        add(&self.texts, texts as u64);
        add(&self.text_tokens, tokens as u64);
    }

    /// A batch of an encoder was computed.
    pub fn computed(&self, texts: usize, time: Duration) {
        add(&self.batches, 1);
        add(&self.batch_texts, texts as u64);
        add(&self.batch_nanoseconds, time.as_nanos() as u64);
    }

    /// All of it, in Prometheus' words.
    pub fn text(&self, queue: &Queue) -> String {
        let mut text = String::new();
        head(&mut text, "attentive_requests_total", "counter", "Requests by route and status.");
        let requests = self.requests.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        for ((route, status), count) in requests {
            let _ =
                writeln!(text, "attentive_requests_total{{route=\"{route}\",status=\"{status}\"}} {count}");
        }
        self.seconds.write(
            &mut text,
            "attentive_request_seconds",
            "Time from a request to the first byte of its answer.",
        );
        let seconds = get(&self.step_nanoseconds) as f64 / 1e9;
        for (name, kind, help, value) in [
            (
                "source_tokens_total",
                "counter",
                "Tokens of sources and prompts that were read.",
                get(&self.source_tokens) as f64,
            ),
            (
                "target_tokens_total",
                "counter",
                "Tokens of the best translations and of continuations.",
                get(&self.target_tokens) as f64,
            ),
            (
                "sentences_total",
                "counter",
                "Sentences that were translated, and prompts that were continued.",
                get(&self.sentences) as f64,
            ),
            ("steps_total", "counter", "Decoding steps.", get(&self.steps) as f64),
            (
                "step_sentences_total",
                "counter",
                "Sum of the batch sizes of all decoding steps; divided by the steps it is the mean batch size.",
                get(&self.rows) as f64,
            ),
            ("step_seconds_total", "counter", "Time spent in decoding steps.", seconds),
            ("texts_total", "counter", "Texts that encoders answered.", get(&self.texts) as f64),
            ("text_tokens_total", "counter", "Tokens of these texts.", get(&self.text_tokens) as f64),
            ("batches_total", "counter", "Batches of encoders.", get(&self.batches) as f64),
            (
                "batch_texts_total",
                "counter",
                "Texts in all batches of encoders; divided by the batches it is the mean batch size.",
                get(&self.batch_texts) as f64,
            ),
            (
                "batch_seconds_total",
                "counter",
                "Time spent in batches of encoders.",
                get(&self.batch_nanoseconds) as f64 / 1e9,
            ),
            (
                "queue_sentences",
                "gauge",
                "Sentences, and texts of encoders, that wait or are being computed.",
                queue.len() as f64,
            ),
            (
                "queue_size",
                "gauge",
                "Maximum number of sentences and texts in the queue.",
                queue.size() as f64,
            ),
            ("connections", "gauge", "Open connections.", get(&self.connections) as f64),
        ] {
            head(&mut text, &format!("attentive_{name}"), kind, help);
            let _ = writeln!(text, "attentive_{name} {value}");
        }
        text
    }
}

impl Histogram {
    fn count(&self, time: Duration) {
        let bucket = BUCKETS.iter().position(|end| time.as_secs_f64() <= *end).unwrap_or(BUCKETS.len());
        add(&self.counts[bucket], 1);
        add(&self.microseconds, time.as_micros() as u64);
    }

    fn write(&self, text: &mut String, name: &str, help: &str) {
        head(text, name, "histogram", help);
        let mut sum = 0;
        for (end, count) in BUCKETS.iter().zip(&self.counts) {
            sum += get(count);
            let _ = writeln!(text, "{name}_bucket{{le=\"{end}\"}} {sum}");
        }
        sum += get(&self.counts[BUCKETS.len()]);
        let seconds = get(&self.microseconds) as f64 / 1e6;
        let _ =
            writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {sum}\n{name}_sum {seconds}\n{name}_count {sum}");
    }
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_count_all_that_is_below_their_end() {
        let metrics = Metrics::default();
        for milliseconds in [1, 7, 7, 40_000] {
            metrics.answered("/translate", 200, Duration::from_millis(milliseconds));
        }
        metrics.answered("/translate", 503, Duration::ZERO);
        let text = metrics.text(&Queue::new(7).0);
        for line in [
            "attentive_requests_total{route=\"/translate\",status=\"200\"} 4",
            "attentive_requests_total{route=\"/translate\",status=\"503\"} 1",
            "attentive_request_seconds_bucket{le=\"0.005\"} 2",
            "attentive_request_seconds_bucket{le=\"0.01\"} 4",
            "attentive_request_seconds_bucket{le=\"30\"} 4",
            "attentive_request_seconds_bucket{le=\"+Inf\"} 5",
            "attentive_request_seconds_sum 40.015",
            "attentive_queue_size 7",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
