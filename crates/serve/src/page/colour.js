// The colours of pictures: every picture is drawn with plain colours, so that it looks the same when it is saved.

const LIGHT = {
  paper: "#fbfaf6",
  ink: "#23211d",
  soft: "#6a655c",
  line: "#dcd7cb",
  accent: "#1d5f94",
  masked: "#e4e0d6",
  // Of heads: people who see colours in other ways can tell them apart, too.
  heads: ["#0f6cb3", "#d98200", "#00875f", "#c2185b", "#6a3fa0", "#7a5c1e", "#3aa0dd", "#8aa800"],
  // From no weight to all of it.
  heat: ["#f4f2ea", "#cfdfec", "#8fb8d8", "#4587b6", "#1c5c8f", "#0b3157"],
  // From -1 over 0 to 1.
  diverging: ["#8c3b0c", "#d1803f", "#f0d2b0", "#f7f5ee", "#bcd5e8", "#4b8cbb", "#123f6c"],
};
const DARK = {
  paper: "#14161a",
  ink: "#e9e5da",
  soft: "#a49f94",
  line: "#363a41",
  accent: "#86b9e4",
  masked: "#24272d",
  heads: ["#3f8cf4", "#f0a030", "#2fbf8f", "#f06aa0", "#b08ae6", "#b8864a", "#8fe3f0", "#cde05a"],
  heat: ["#1c1f25", "#1d3a55", "#2a628f", "#4b94c8", "#9ccaec", "#f4fafe"],
  diverging: ["#ffc48c", "#d27f38", "#6b3f1d", "#1c1f25", "#1f4568", "#4b94c8", "#c6e3f8"],
};

/** Whether the page is dark now. */
export function isDark() {
  const asked = document.documentElement.dataset.theme;
  return asked ? asked === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** The colours of the page as it is now. */
export const palette = () => (isDark() ? DARK : LIGHT);

/** How the lines of a head are drawn: eight colours, and then the same with gaps. The mean of all heads, null, has the ink. */
export function headStyle(head) {
  const { heads, ink } = palette();
  if (head === null) return { stroke: ink };
  const gaps = [null, "7 4", "2 3"][Math.floor(head / heads.length) % 3];
  return { stroke: heads[head % heads.length], "stroke-dasharray": gaps };
}

/** The colour of a weight from 0 to 1, of which `root` is the root: so that small weights can be seen. */
export const heat = (root) => between(palette().heat, clamp(root, 0, 1));

/** The colour of a number from -1 to 1. */
export const diverging = (x) => between(palette().diverging, (clamp(x, -1, 1) + 1) / 2);

const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

/** The colour at a place from 0 to 1 among stops, as `[r, g, b]`. */
function between(stops, place) {
  const at = place * (stops.length - 1);
  const first = Math.min(Math.floor(at), stops.length - 2);
  const [a, b] = [rgb(stops[first]), rgb(stops[first + 1])];
  return a.map((x, i) => Math.round(x + (b[i] - x) * (at - first)));
}

const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

/** Black or white, whichever can be read on a colour. */
export const inkOn = ([r, g, b]) => (0.299 * r + 0.587 * g + 0.114 * b > 130 ? "#000000" : "#ffffff");

/** `#rrggbb` */
export const css = (colour) => "#" + colour.map((x) => Math.round(x).toString(16).padStart(2, "0")).join("");
