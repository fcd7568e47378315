// A page with the attention of one sentence and nothing else, which needs no server: `attentive inspect` writes it.

import * as attention from "./attention.js";
import { byId } from "./dom.js";
import { change, state } from "./state.js";
import * as theme from "./theme.js";

const data = JSON.parse(byId("data").textContent);
const kinds = [...new Set(data.attention.map(({ kind }) => kind))];

/** The part of the data that has one kind of attention. */
const fetchAttention = async (kind) => ({ ...data, attention: data.attention.filter((matrix) => matrix.kind === kind) });

attention.offer(kinds);
theme.start();
attention.start(fetchAttention, (error) => {
  byId("trouble").textContent = error.message;
  byId("trouble").hidden = false;
});
const last = data.attention.at(-1);
state.look = { kind: last.kind, layer: last.layer, head: last.head };
change("translation", { number: 1 });
