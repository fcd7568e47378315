// The terms of scores that are added to the products of queries and keys.

/** What each term is called above its column and in the table, what it says, and whether it is a product that is divided as `q · k` is. */
const TERMS = {
  distance: {
    short: "+ distance", isProduct: false,
    says: "This model adds to each product a number for the distance of the two tokens. The numbers were learned, one set for each head; all layers share them.",
  },
  content_to_position: {
    short: "+ q · pos", isProduct: true,
    says: "q · pos compares the query with a vector for the distance of the key (content to position).",
  },
  position_to_content: {
    short: "+ k · pos", isProduct: true,
    says: "k · pos compares the key with a vector for the distance of the query (position to content).",
  },
  pairs: { short: "+ bias", isProduct: false, says: "This model adds to each product a number for the two tokens." },
};

/** The terms of a row of queries as `attend` takes them: `vectors` are those of a head. Without the division products are larger. */
export const termsOf = ({ terms = [], scale }, row, divide) => terms.map(({ term, numbers }) => {
  const factor = TERMS[term].isProduct && !divide ? 1 / scale : 1;
  return { name: TERMS[term].short, numbers: numbers[row].map((x) => x * factor) };
});

/** What the terms of a head say, in a few sentences. */
export function sentencesOf({ terms = [] }) {
  if (terms.length === 0) return "";
  const said = terms.map(({ term }) => TERMS[term].says);
  return `${said.join(" ")} The score is the sum of the coloured columns before it: `
    + "blue cells raise it, brown ones lower it. The softmax takes the scores.";
}
