// Helpers for the tests: what somebody sees of the page, as values.
const visible = (e) => {
  if (e.closest(".hidden, .skip, thead") && getComputedStyle(e.closest(".hidden, .skip, thead")).position === "absolute") return false; // for screen readers only, until it has the focus
  const style = getComputedStyle(e);
  const box = e.getBoundingClientRect();
  return style.visibility !== "hidden" && box.width > 1 && box.height > 1 && e.checkVisibility();
};
const describe = (e) => e.id || `${e.nodeName.toLowerCase()} ${e.textContent.trim().slice(0, 40)}`;
// All that is seen, in order; not what only screen readers are told.
const seen = () => {
  let words = "";
  let last;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!visible(e)) continue;
    words += (e === last ? "" : " ") + walker.currentNode.data; // a name is one word, whatever <wbr> it has
    last = e;
  }
  return words.replace(/\s+/g, " ");
};
const text = (selector) => [...document.querySelectorAll(selector)].map((e) => e.textContent.replace(/\s+/g, " ").trim());

const parse = (colour) => colour.match(/[\d.]+/g).map(Number);
const luminance = ([r, g, b]) => {
  const part = (c) => ((c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
};
const ground = (e) => {
  for (; e; e = e.parentElement) {
    const [r, g, b, a = 1] = parse(getComputedStyle(e).backgroundColor);
    if (a === 1) return [r, g, b];
    if (a > 0) throw new Error("a background that lets another one through");
  }
  return matchMedia("(prefers-color-scheme: dark)").matches ? [0, 0, 0] : [255, 255, 255];
};
// All visible text with less contrast than WCAG AA asks for, and how many texts there are.
const contrast = () => {
  const poor = [];
  let texts = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || ["NOSCRIPT", "SCRIPT"].includes(e.nodeName) || !visible(e)) continue;
    texts++;
    const [light, dark] = [luminance(parse(getComputedStyle(e).color)), luminance(ground(e))].sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05);
    if (ratio < 4.5) poor.push(`${ratio.toFixed(2)} ${describe(e)}`);
  }
  return { texts, poor };
};

// Elements that stick out of the window, unless they are in a box that scrolls.
const sticking = () => [...document.body.querySelectorAll("*")].filter((e) => {
  if (!visible(e) || e.closest("pre")) return false;
  const box = e.getBoundingClientRect();
  return box.right > document.documentElement.clientWidth + 0.5 || box.left < -0.5;
}).map(describe);

// What can be operated has to be reached by Tab.
const controls = () => [...document.querySelectorAll("a[href], button, summary, input, select, [tabindex='0']")]
  .filter((e) => visible(e) || e.matches(".skip")).map(describe);
const focused = () => {
  const e = document.activeElement;
  if (!e || e === document.body) return null;
  const style = getComputedStyle(e);
  return { what: describe(e), outlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2, seen: e.getBoundingClientRect().height > 1 };
};
