//! Many clients at once: how long answers take, how many come, what is refused, and what the server's memory does.
//!
//! ```sh
//! attentive serve --log off &
//! cargo run --release -p attentive-serve --example load -- 127.0.0.1:8080 --pid $! --clients 200 --seconds 60
//! ```
//!
//! Each client keeps a connection open and asks for one sentence after the other, from `--sentences FILE` (a line
//! each) or of a few that are built in. It ends after `--seconds` or `--requests`, whichever comes first. With `--pid`
//! it tells how much memory the server has at ten points on the way. `--idle N` opens N connections more, which ask for nothing
//! (more than a thousand need `ulimit -n 4096`).

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const NUMBERS: [&str; 6] = [
    "twenty-one",
    "ninety-seven",
    "two hundred and one",
    "four thousand three hundred and twenty-one",
    "seventy-one thousand two hundred",
    "seven hundred and seventy-seven thousand seven hundred and seventy-seven",
];

struct Load {
    address: String,
    clients: usize,
    idle: usize,
    seconds: f64,
    requests: usize,
    pid: Option<u32>,
    sentences: Vec<String>,
}

impl Load {
    fn from_arguments() -> Result<Load, String> {
        let mut arguments = std::env::args().skip(1);
        let address = arguments.next().ok_or("an address such as 127.0.0.1:8080 is needed")?;
        let sentences = NUMBERS.map(str::to_owned).into();
        let mut load = Load {
            address,
            clients: 200,
            idle: 0,
            seconds: 10.0,
            requests: usize::MAX,
            pid: None,
            sentences,
        };
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or(format!("{name} needs a value"))?;
            let wrong = |error: &dyn std::fmt::Display| format!("{name} {value}: {error}");
            match &*name {
                "--clients" => load.clients = value.parse().map_err(|error| wrong(&error))?,
                "--idle" => load.idle = value.parse().map_err(|error| wrong(&error))?,
                "--seconds" => load.seconds = value.parse().map_err(|error| wrong(&error))?,
                "--requests" => load.requests = value.parse().map_err(|error| wrong(&error))?,
                "--pid" => load.pid = Some(value.parse().map_err(|error| wrong(&error))?),
                "--sentences" => {
                    let text = std::fs::read_to_string(&value).map_err(|error| wrong(&error))?;
                    load.sentences = text.lines().map(str::to_owned).collect();
                }
                _ => return Err(format!("there is no {name}")),
            }
        }
        Ok(load)
    }
}

/// What one client has seen.
#[derive(Default)]
struct Seen {
    /// How long answers took that were translations.
    times: Vec<Duration>,
    /// How many answers there were of each status; 0 stands for connections that broke.
    statuses: BTreeMap<u16, usize>,
}

fn main() -> Result<(), String> {
    let load = Load::from_arguments()?;
    let failed = |error: Error| format!("{}: {error}", load.address);
    let before = counters(&load).map_err(failed)?;
    let idle = (0..load.idle)
        .map(|_| TcpStream::connect(&load.address))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    let begin = Instant::now();
    let asked = AtomicUsize::new(0);
    let seen: Vec<Seen> = std::thread::scope(|scope| {
        let clients: Vec<_> =
            (0..load.clients).map(|_| scope.spawn(|| client(&load, begin, &asked))).collect();
        let mut next = Duration::ZERO;
        while clients.iter().any(|client| !client.is_finished()) {
            if let Some(pid) = load.pid
                && begin.elapsed() >= next
            {
                let (seconds, asked) = (begin.elapsed().as_secs_f64(), asked.load(Ordering::Relaxed));
                println!("{seconds:6.1} s  {asked:8} requests  {:8} kB", memory(pid));
                next += Duration::from_secs_f64(load.seconds / 10.0);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        clients.into_iter().map(|client| client.join().unwrap_or_default()).collect()
    });
    let seconds = begin.elapsed().as_secs_f64();
    drop(idle);
    report(seen, seconds, &before, &counters(&load).map_err(failed)?);
    Ok(())
}

/// Asks again and again.
fn client(load: &Load, begin: Instant, asked: &AtomicUsize) -> Seen {
    let mut seen = Seen::default();
    let mut connection = None;
    while begin.elapsed().as_secs_f64() < load.seconds {
        let number = asked.fetch_add(1, Ordering::Relaxed);
        if number >= load.requests {
            break;
        }
        let text = &load.sentences[number % load.sentences.len()];
        let body = serde_json::json!({ "text": text }).to_string();
        let start = Instant::now();
        match ask(&mut connection, &load.address, "POST", "/v1/translate", &body) {
            Ok(answer) => {
                *seen.statuses.entry(answer.status).or_default() += 1;
                match answer.retry_after {
                    Some(seconds) => std::thread::sleep(Duration::from_secs(seconds)),
                    None => seen.times.push(start.elapsed()),
                }
            }
            Err(_) => {
                connection = None;
                *seen.statuses.entry(0).or_default() += 1;
            }
        }
    }
    seen
}

struct Answer {
    status: u16,
    retry_after: Option<u64>,
    body: String,
}

/// Asks on a connection that stays open, and opens it first if there is none.
fn ask(
    connection: &mut Option<BufReader<TcpStream>>,
    address: &str,
    method: &str,
    path: &str,
    body: &str,
) -> Result<Answer, Error> {
    let stream = match connection {
        Some(stream) => stream,
        None => {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            connection.insert(BufReader::new(stream))
        }
    };
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n");
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    stream.get_mut().write_all(request.as_bytes())?;
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| Error::new(ErrorKind::UnexpectedEof, "the answer has no status"))?;
    let (mut length, mut retry_after) = (0, None);
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        match line.trim_end().split_once(": ") {
            Some(("content-length", value)) => length = value.parse().unwrap_or(0),
            Some(("retry-after", value)) => retry_after = value.parse().ok(),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(Answer { status, retry_after, body: String::from_utf8_lossy(&body).into_owned() })
}

/// The server's own counters, by name.
fn counters(load: &Load) -> Result<BTreeMap<String, f64>, Error> {
    let text = ask(&mut None, &load.address, "GET", "/metrics", "")?.body;
    let counter = |line: &str| {
        let (name, value) = line.strip_prefix("attentive_")?.rsplit_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    Ok(text.lines().filter_map(counter).collect())
}

/// The memory of a process in kilobytes, as Linux tells it.
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

fn report(seen: Vec<Seen>, seconds: f64, before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>) {
    let mut times: Vec<Duration> = seen.iter().flat_map(|seen| seen.times.iter().copied()).collect();
    times.sort_unstable();
    let mut statuses: BTreeMap<u16, usize> = BTreeMap::new();
    for (status, count) in seen.iter().flat_map(|seen| &seen.statuses) {
        *statuses.entry(*status).or_default() += count;
    }
    for (status, count) in &statuses {
        println!("{count:8} × {}", if *status == 0 { "broken".to_owned() } else { status.to_string() });
    }
    for (name, part) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)] {
        let place = (times.len() as f64 * part) as usize;
        let time = times.get(place.min(times.len().saturating_sub(1))).copied().unwrap_or_default();
        println!("{name} {:9.1} ms", time.as_secs_f64() * 1e3);
    }
    let more = |name: &str| after.get(name).unwrap_or(&0.0) - before.get(name).unwrap_or(&0.0);
    println!("{:10.1} requests/s", times.len() as f64 / seconds);
    println!("{:10.1} sentences/s", more("sentences_total") / seconds);
    println!("{:10.1} target tokens/s", more("target_tokens_total") / seconds);
    println!("{:10.1} sentences in a step, on average", more("step_sentences_total") / more("steps_total"));
}
