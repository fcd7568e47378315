//! Errors as responses to a client.
//!
//! Everywhere it is OpenAI's form, `{"error": {"message", "type", "param", "code"}}`, where `param` is the field that is wrong.
//! LibreTranslate's routes have LibreTranslate's, `{"error": "message"}`, and those of text-embeddings-inference have its form,
//! `{"error": "message", "error_type": "Validation"}`, and its statuses. A handler returns a [`Refusal`]; which form it takes is
//! decided where the answer leaves the server (`finish`).

use attentive_image::Fault;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub status: StatusCode,
    /// One sentence that says what is wrong and what would be right.
    pub message: String,
    /// The field that is wrong.
    pub field: Option<String>,
    /// After how many seconds it may go better.
    pub retry_after: Option<u64>,
    /// What some clients tell apart and a status does not.
    pub cause: Cause,
}

/// What kind of refusal it is, where text-embeddings-inference has a status for it that others do not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Other,
    /// The queue is full.
    Full,
    /// The model does something else.
    Unable,
    /// A text has more tokens than the model reads.
    LongText,
    /// The tokenizer failed.
    Tokenizer,
}

impl Refusal {
    fn new(status: StatusCode, message: impl Into<String>) -> Refusal {
        Refusal { status, message: message.into(), field: None, retry_after: None, cause: Cause::Other }
    }

    /// A field has a value that cannot be.
    pub fn field(field: impl Into<String>, problem: impl std::fmt::Display) -> Refusal {
        let field = field.into();
        let message = format!("`{field}`: {problem}");
        Refusal { field: Some(field), ..Refusal::new(StatusCode::BAD_REQUEST, message) }
    }

    /// The body as a whole makes no sense.
    pub fn body(problem: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, problem)
    }

    /// There is more of something than is taken.
    pub fn too_large(field: &str, problem: impl std::fmt::Display) -> Refusal {
        Refusal { status: StatusCode::PAYLOAD_TOO_LARGE, ..Refusal::field(field, problem) }
    }

    /// There is no such thing.
    pub fn missing(field: &str, problem: impl std::fmt::Display) -> Refusal {
        Refusal { status: StatusCode::NOT_FOUND, ..Refusal::field(field, problem) }
    }

    /// There is no such address.
    pub fn no_route() -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, "there is no such address; see /openapi.json")
    }

    /// What has no reason but its status.
    pub fn general(status: StatusCode) -> Refusal {
        let message = match status {
            StatusCode::METHOD_NOT_ALLOWED => "this address does not support this method; see /openapi.json",
            StatusCode::BAD_REQUEST => "the address is invalid",
            status => status.canonical_reason().unwrap_or("refused"),
        };
        Refusal::new(status, message)
    }

    /// The body is of a type that is not read here.
    pub fn media_type(expected: &str) -> Refusal {
        let message = format!("the body must be {expected}, and `Content-Type` must name this type");
        Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
    }

    /// The body is compressed.
    pub fn encoding(encoding: &str) -> Refusal {
        let message =
            format!("`Content-Encoding: {encoding}` is not supported: send the body without compression");
        Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
    }

    /// The request was meant for a server of another name.
    pub fn host(host: &str) -> Refusal {
        let message = format!("this server does not answer to the host `{host}`; --allow-host adds a name");
        Refusal::new(StatusCode::FORBIDDEN, message)
    }

    /// Nobody is let in without a key.
    pub fn key(given: bool) -> Refusal {
        let message = if given {
            "the API key is invalid"
        } else {
            "an API key is needed: `Authorization: Bearer KEY`, or `api_key` in LibreTranslate's requests"
        };
        Refusal::new(StatusCode::UNAUTHORIZED, message)
    }

    /// It took too long.
    pub fn time(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::REQUEST_TIMEOUT, message)
    }

    /// Not now.
    pub fn busy(message: impl Into<String>, retry_after: u64) -> Refusal {
        let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message);
        Refusal { retry_after: Some(retry_after), ..refusal }
    }

    /// The queue has no place left.
    pub fn full(retry_after: u64) -> Refusal {
        Refusal { cause: Cause::Full, ..Refusal::busy("the queue is full: try again later", retry_after) }
    }

    /// The model does something else.
    pub fn unable(problem: impl std::fmt::Display) -> Refusal {
        Refusal { cause: Cause::Unable, ..Refusal::field("model", problem) }
    }

    /// A text that an encoder cannot read; `field` is what texts are called in the request.
    pub fn of_text(field: &str, error: attentive_tasks::Error) -> Refusal {
        use attentive_tasks::Error;
        match error {
            Error::TooLong { text, tokens, limit } => {
                // OpenAI's requests cannot ask for it.
                let cut = if field == "input" { "" } else { ", or set `truncate` to true" };
                let problem = format!(
                    "text {text} has {tokens} tokens, but the model's maximum context length is {limit} tokens: shorten the text{cut}"
                );
                Refusal { cause: Cause::LongText, ..Refusal::field(field, problem) }
            }
            Error::NoTokens { .. } | Error::Token { .. } | Error::LongQuestion { .. } => {
                Refusal::field(field, error)
            }
            Error::TokenTypes { .. } => Refusal::field(field, "the model cannot read pairs of texts"),
            Error::Tokenizer(error) => Refusal::tokenizer(&error),
            other => {
                tracing::error!(error = %other, "a request failed");
                Refusal::fault()
            }
        }
    }

    /// A picture that a model cannot read; `field` is what pictures are called in the request.
    pub fn of_picture(field: &str, number: usize, problem: &attentive_image::Problem) -> Refusal {
        let status = match problem.fault() {
            Fault::Broken => StatusCode::BAD_REQUEST,
            Fault::Format => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Fault::Size => StatusCode::PAYLOAD_TOO_LARGE,
        };
        Refusal { status, ..Refusal::field(field, format!("picture {}: {problem}", number + 1)) }
    }

    fn tokenizer(error: &attentive_text::tokenizer::Error) -> Refusal {
        tracing::error!(%error, "a text cannot be tokenized");
        let message = "the tokenizer of the model failed on this text; see the log of the server";
        Refusal { cause: Cause::Tokenizer, ..Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, message) }
    }

    /// An error that has to do with files, and is none of a client's business.
    fn hidden(error: &dyn std::error::Error) -> Refusal {
        tracing::error!(%error, "a request failed");
        Refusal::fault()
    }

    /// It is our fault, and the log knows more.
    pub fn fault() -> Refusal {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "internal server error; see the log of the server")
    }

    /// OpenAI's form.
    pub fn openai(&self) -> Value {
        let kind = match self.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        json!({"error": {"message": self.message, "type": kind, "param": self.field, "code": null}})
    }

    /// LibreTranslate's form.
    pub fn libretranslate(&self) -> Value {
        json!({"error": self.message})
    }

    /// The status and the form of text-embeddings-inference.
    pub fn tei(&self) -> (StatusCode, Value) {
        let (status, kind) = match (self.cause, self.status) {
            (Cause::Full, _) => (StatusCode::TOO_MANY_REQUESTS, "Overloaded"),
            (Cause::Unable, _) => (StatusCode::FAILED_DEPENDENCY, "Backend"),
            (Cause::LongText, _) => (StatusCode::PAYLOAD_TOO_LARGE, "Validation"),
            (Cause::Tokenizer, _) => (StatusCode::UNPROCESSABLE_ENTITY, "Tokenizer"),
            (Cause::Other, StatusCode::BAD_REQUEST) => (StatusCode::UNPROCESSABLE_ENTITY, "Validation"),
            (Cause::Other, StatusCode::SERVICE_UNAVAILABLE) => (self.status, "Unhealthy"),
            (Cause::Other, status) if status.is_server_error() => (status, "Backend"),
            (Cause::Other, StatusCode::REQUEST_TIMEOUT) => (self.status, "Overloaded"),
            (Cause::Other, status) => (status, "Validation"),
        };
        (status, json!({"error": self.message, "error_type": kind}))
    }
}

impl From<attentive_tasks::Error> for Refusal {
    fn from(error: attentive_tasks::Error) -> Refusal {
        match error {
            attentive_tasks::Error::Generate(error) => error.into(),
            attentive_tasks::Error::Tokenizer(error) => Refusal::tokenizer(&error),
            other => Refusal::hidden(&other),
        }
    }
}

impl From<attentive_generate::Error> for Refusal {
    fn from(error: attentive_generate::Error) -> Refusal {
        use attentive_generate::Error;
        match error {
            Error::Option { option, problem } => Refusal::field(option, problem),
            Error::LongSource { .. } | Error::EmptySource => Refusal::field("text", error),
            Error::LongPrefix { .. } => Refusal::field("prefix", error),
            Error::Token { .. } => Refusal::field("prefix_tokens", error),
            other => Refusal::hidden(&other),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
