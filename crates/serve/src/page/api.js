// The server, asked.

let key = null;

/** Uses this API key from now on. */
export const useKey = (text) => (key = text || null);

/** An answer that is no result: the server's own sentence, its status, and the field of the request that is wrong. */
class Refused extends Error {
  constructor(message, status, field) {
    super(message);
    this.status = status;
    this.field = field;
  }
}

async function ask(path, body, signal) {
  // A browser names the type of a form itself.
  const isForm = body instanceof FormData;
  const headers = { ...(body && !isForm && { "content-type": "application/json" }), ...(key && { authorization: `Bearer ${key}` }) };
  let response;
  try {
    response = await fetch(path, { method: body ? "POST" : "GET", headers, body: isForm ? body : body && JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("", 0);
  }
  if (response.ok) return response;
  const text = await response.text();
  try {
    const { error } = JSON.parse(text);
    throw new Refused(error.message ?? error, response.status, error.param);
  } catch (error) {
    if (error instanceof Refused) throw error;
    // Something between the server and the page has answered.
    throw new Refused("", response.status);
  }
}

/** The models, each with what is known of it. */
export const models = async () => (await (await ask("v1/models")).json()).data;

/** The function that asks a route, and gives its answer. */
const post = (path) => async (request, signal) => (await ask(path, request, signal)).json();

export const translate = post("v1/translate");
export const attention = post("v1/attention");
export const next = post("v1/next");
export const predict = post("predict");
export const answer = post("v1/answer");
export const summarize = post("v1/summarize");
export const tag = post("v1/tag");
export const fillMask = post("v1/fill-mask");
export const embeddings = post("v1/embeddings");
export const rerank = post("v1/rerank");
export const classifyPicture = post("v1/classify");
export const detect = post("v1/detect");

/** A request that brings a file. */
export function form(fields) {
  const body = new FormData();
  Object.entries(fields).forEach(([name, value]) => body.append(name, value));
  return body;
}

/** `POST /v1/completions` as a stream: `ontext` hears each piece of the continuation. */
export async function complete(request, ontext, signal) {
  const response = await ask("v1/completions", { ...request, stream: true }, signal);
  for await (const { data } of events(response.body)) {
    if (data === END) return;
    if (data.error) throw new Refused(data.error.message, 500, data.error.param);
    data.choices.forEach(({ text }) => text && ontext(text));
  }
  throw new Refused("", 0);
}

/** `POST /v1/translate` as a stream: `onwritten` hears what has been written so far; the result is the whole answer. */
export async function stream(request, onwritten, signal) {
  const response = await ask("v1/translate", { ...request, stream: true }, signal);
  for await (const { event, data } of events(response.body)) {
    if (event === "written") onwritten(data);
    if (event === "done") return data;
    if (event === "error") throw new Refused(data.error.message, 500, data.error.param);
  }
  throw new Refused("", 0);
}

/** What ends OpenAI's streams, and is no JSON. */
const END = "[DONE]";

/** The server-sent events of a body. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    buffer += value;
    for (let end = buffer.indexOf("\n\n"); end >= 0; end = buffer.indexOf("\n\n")) {
      const lines = buffer.slice(0, end).split("\n");
      buffer = buffer.slice(end + 2);
      const field = (name) => lines.filter((line) => line.startsWith(name)).map((line) => line.slice(name.length));
      const data = field("data: ").join("\n");
      if (data) yield { event: field("event: ")[0] ?? "message", data: data === END ? END : JSON.parse(data) };
    }
  }
}
