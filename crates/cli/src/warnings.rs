//! Warnings of the libraries, a line each on stderr, as commands write their own.

use std::fmt;
use std::io::stderr;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Writes the message alone.
struct Plain;

impl<S, N> FormatEvent<S, N> for Plain
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<S, N>, mut writer: Writer, event: &Event) -> fmt::Result {
        write!(writer, "attentive: ")?;
        context.field_format().format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

/// Shows warnings from now on.
pub(crate) fn show() {
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::WARN)
        .event_format(Plain)
        .with_writer(stderr)
        .init();
}
