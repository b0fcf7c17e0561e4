"use strict";
// Pan by dragging, zoom by the wheel, two fingers or + and -, 0 goes back; hover shows what a mark is.
const svg = document.querySelector("svg");
const marks = svg.querySelector("#marks");
const tip = document.querySelector("#tip");
const pointers = new Map();
let scale = 1, left = 0, top_ = 0, spread = 0;

// The browser would show a title a second later, and in its own way.
for (const title of svg.querySelectorAll("#marks title")) {
  title.parentNode.dataset.tip = title.textContent;
  title.remove();
}

function place() {
  marks.setAttribute("transform", `translate(${left} ${top_}) scale(${scale})`);
  svg.style.setProperty("--inverse", 1 / scale);
  thin();
}

// A label is shown where it covers none that is shown already; those of words come first.
function thin() {
  const taken = [];
  for (const label of svg.querySelectorAll(".spot text")) {
    const box = label.getBoundingClientRect();
    const free = taken.every((other) => box.right <= other.left || other.right <= box.left ||
      box.bottom - 4 <= other.top || other.bottom - 4 <= box.top);
    if (free) taken.push(box);
    label.classList.toggle("crowded", !free);
  }
}

// A place on the screen in the picture's own units.
function inside(event) {
  return new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
}

function zoom(point, factor) {
  const next = Math.min(Math.max(scale * factor, 0.5), 200);
  left = point.x - (point.x - left) * next / scale;
  top_ = point.y - (point.y - top_) * next / scale;
  scale = next;
  place();
}

function distance() {
  const [a, b] = [...pointers.values()];
  return Math.hypot(a.x - b.x, a.y - b.y);
}

function show(event) {
  const mark = event.target.closest("[data-tip]");
  tip.hidden = !mark;
  if (!mark) return;
  tip.textContent = mark.dataset.tip;
  const right = Math.max(0, innerWidth - tip.offsetWidth - 8);
  tip.style.left = `${Math.min(event.clientX + 14, right)}px`;
  const below = event.clientY + 18 + tip.offsetHeight < innerHeight;
  tip.style.top = `${below ? event.clientY + 18 : event.clientY - tip.offsetHeight - 8}px`;
}

svg.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom(inside(event), Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)));
}, { passive: false });
svg.addEventListener("pointerdown", (event) => {
  pointers.set(event.pointerId, inside(event));
  show(event);
  if (event.isTrusted) svg.setPointerCapture(event.pointerId);
  if (pointers.size === 2) spread = distance();
});
svg.addEventListener("pointermove", (event) => {
  const before = pointers.get(event.pointerId);
  if (!before) return show(event);
  const now = inside(event);
  pointers.set(event.pointerId, now);
  if (pointers.size === 2) {
    const [a, b] = [...pointers.values()];
    zoom({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 }, distance() / spread);
    spread = distance();
  } else {
    left += now.x - before.x;
    top_ += now.y - before.y;
    place();
  }
});
for (const name of ["pointerup", "pointercancel"]) {
  svg.addEventListener(name, (event) => pointers.delete(event.pointerId));
}
svg.addEventListener("pointerleave", () => { tip.hidden = true; });
function reset() {
  [scale, left, top_] = [1, 0, 0];
  place();
}
svg.addEventListener("dblclick", reset);
addEventListener("keydown", (event) => {
  const { x, y, width, height } = svg.viewBox.baseVal;
  const middle = { x: x + width / 2, y: y + height / 2 };
  if (event.key === "+" || event.key === "=") zoom(middle, 1.25);
  if (event.key === "-") zoom(middle, 0.8);
  if (event.key === "0") reset();
});
addEventListener("resize", thin);
place();
