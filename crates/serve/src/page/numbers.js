// Numbers as people read them.

/** With so many digits behind the point, and a real minus sign. */
export const fixed = (x, digits = 3) => (x === -Infinity ? "−∞" : x.toFixed(digits).replace("-", "−"));

/** A probability in percent: `99.8 %`, `0.03 %`. */
export function percent(p) {
  const x = 100 * p;
  const digits = x >= 10 ? 1 : x >= 1 ? 1 : x >= 0.01 ? 2 : 0;
  return x > 0 && x < 0.01 ? "< 0.01 %" : `${x.toFixed(digits)} %`;
}

/** In thousands: `12,000`. */
export const grouped = (x) => x.toLocaleString("en");

/** `7.0 · 10⁻⁴` */
export function scientific(x) {
  if (x === 0) return "0";
  const [digits, exponent] = x.toExponential(2).split("e");
  return `${digits} · 10${superscript(Number(exponent))}`;
}

/** Round numbers from 0 to `most`, about `count` of them. */
export function ticks(most, count) {
  const rough = most / count;
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 5, 10].map((n) => n * power).find((step) => step >= rough);
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step);
}

const superscript = (n) => [...String(n)].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])).join("");
