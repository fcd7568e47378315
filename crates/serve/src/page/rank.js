// Texts in the order of how well they fit a query.

import * as api from "./api.js";
import { scores } from "./scores.js";

export const title = "The best first";
export const fields = [{ id: "query", name: "Query", rows: 2 }, { id: "texts", name: "Texts, one on each line", rows: 6 }];
export const hint = () => "The model reads the query together with each text, and says from 0 to 100 % how well they fit.";
export const example = {
  query: "Where is the dog running?",
  texts: "The train to the city is late.\nA dog runs through the snow.\nThe cat is in the house.",
};
export const text = ({ query }) => query;

export async function ask({ query, texts }, { id }, signal) {
  const documents = texts.split("\n").map((line) => line.trim()).filter((line) => line);
  const { results } = await api.rerank({ model: id, query, documents }, signal);
  return [scores(results.map(({ index, relevance_score }) => [documents[index], relevance_score]))];
}
