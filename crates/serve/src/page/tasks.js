// What models can do: a tab for each task, and the models that can do it.

import { arrows, byId, html } from "./dom.js";
import * as link from "./link.js";
import { change, state } from "./state.js";

/** Every task, in the order of the tabs: its name, and `of`, which says whether a model can do it. */
const TASKS = [
  { id: "translate", name: "Translate", of: ({ task }) => task === "translate" },
  { id: "write", name: "Write", of: ({ task }) => task === "generate" },
  { id: "summarize", name: "Summarize", of: ({ routes }) => routes?.includes("/v1/summarize") },
  { id: "answer", name: "Answer", of: ({ routes }) => routes?.includes("/v1/answer") },
  { id: "fill", name: "Fill masks", of: ({ task }) => task === "fill-mask" },
  { id: "classify", name: "Classify", of: ({ task }) => task === "classify" },
  { id: "tag", name: "Tag words", of: ({ task }) => task === "tag" },
  { id: "similar", name: "Compare texts", of: ({ routes, reads }) => routes?.includes("/v1/embeddings") && !reads },
  { id: "rank", name: "Rank", of: ({ task }) => task === "rerank" },
  { id: "see", name: "Pictures", of: ({ reads }) => reads === "pictures" },
];

/** Whether it is known that a model translates: T5 and BART write a text for a text, whatever they were trained for. */
const knowsLanguages = ({ details }) => details.targets.length > 0;

/** The models that can do a task. */
const modelsOf = (task) => state.models.filter(({ details }) => task.of(details));

/** Shows a tab for each task that one of the models can do, and chooses what the address asks for, or the first. */
export function offer(models) {
  state.models = models;
  const tasks = TASKS.filter((task) => modelsOf(task).length > 0);
  const tabs = tasks.map((task) => html("button", {
    type: "button", role: "tab", id: `tab-${task.id}`, "aria-controls": task.id, "aria-selected": "false", tabindex: -1,
    onclick: () => choose(task),
  }, task.id === "translate" && !modelsOf(task).some(knowsLanguages) ? "Text to text" : task.name));
  byId("tasks").replaceChildren(...tabs);
  byId("tasks").onkeydown = (event) => arrows(event, tabs, tabs.length);
  byId("model").onchange = () => choose(state.task, state.models.find(({ id }) => id === byId("model").value));
  const asked = { task: link.take("task"), model: link.take("model") };
  const task = tasks.find(({ id }) => id === asked.task) ?? tasks[0];
  if (task) choose(task, modelsOf(task).find(({ id }) => id === asked.model));
}

/** Chooses a task and a model for it: the one that is chosen already, if it can do it, or the first that can. */
export function choose(task, model) {
  const able = modelsOf(task);
  const wanted = model ?? (able.includes(state.model) ? state.model : able[0]);
  const isNew = task !== state.task;
  state.task = task;
  document.querySelectorAll("[role=tab]").forEach((tab) => {
    const isChosen = tab.id === `tab-${task.id}`;
    tab.setAttribute("aria-selected", String(isChosen));
    tab.tabIndex = isChosen ? 0 : -1;
  });
  document.querySelectorAll("[role=tabpanel]").forEach((panel) => (panel.hidden = panel.id !== task.id));
  byId("model").replaceChildren(...able.map(({ id }) => html("option", { value: id, selected: id === wanted.id }, id)));
  document.querySelector(".model").hidden = able.length < 2;
  if (isNew || wanted !== state.model) change("model", wanted);
}
