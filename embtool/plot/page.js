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

// Points with their labels: where each stood at first, and how wide the browser draws it.
const spots = [...svg.querySelectorAll(".spot")].map((spot) => {
  const text = spot.querySelector("text");
  const { e: x, f: y } = spot.transform.baseVal.getItem(0).matrix;
  const anchor = text.getAttribute("text-anchor") ?? "start";
  const home = { x: +text.getAttribute("x"), y: +text.getAttribute("y"), anchor };
  const width = text.getComputedTextLength();
  const placed = !text.classList.contains("crowded");
  return { x, y, text, width, home, placed, leader: spot.querySelector("line") };
});
const near = [
  { x: 9, y: 5, anchor: "start" }, { x: -9, y: 5, anchor: "end" },
  { x: 0, y: -10, anchor: "middle" }, { x: 0, y: 20, anchor: "middle" },
];

function place() {
  marks.setAttribute("transform", `translate(${left} ${top_}) scale(${scale})`);
  svg.style.setProperty("--inverse", 1 / scale);
}

// The room of a label at a place beside its point, as large as the point stands.
function room(spot, { x, y, anchor }) {
  const start = { start: 0, middle: spot.width / 2, end: spot.width }[anchor];
  const box = { left: spot.x * scale + x - start, top: spot.y * scale + y - 12 };
  return { ...box, right: box.left + spot.width, bottom: box.top + 16 };
}

function free(box, taken) {
  return taken.every((other) => box.right <= other.left || other.right <= box.left ||
    box.bottom <= other.top || other.bottom <= box.top);
}

// Each label stands where it covers no other and no point, first come first served: where it
// stood, and after zooming beside its point if it can; else it is hidden.
function arrange() {
  const dots = spots.map(({ x, y }) => ({
    left: x * scale - 4, right: x * scale + 4, top: y * scale - 4, bottom: y * scale + 4,
  }));
  const taken = [];
  for (const spot of spots) {
    const home = spot.placed ? [spot.home] : [];
    const places = scale === 1 ? [...home, ...near] : [...near, ...home];
    const chosen = places.find((at) => {
      const box = room(spot, at);
      return free(box, taken) && (at === spot.home || free(box, dots));
    });
    spot.text.classList.toggle("crowded", !chosen);
    spot.leader?.classList.toggle("crowded", chosen !== spot.home);
    const { x, y, anchor } = chosen ?? near[0];
    spot.text.setAttribute("x", x);
    spot.text.setAttribute("y", y);
    spot.text.setAttribute("text-anchor", anchor);
    if (chosen) taken.push(room(spot, chosen));
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
  arrange();
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
  arrange();
}
svg.addEventListener("dblclick", reset);
addEventListener("keydown", (event) => {
  const { x, y, width, height } = svg.viewBox.baseVal;
  const middle = { x: x + width / 2, y: y + height / 2 };
  if (event.key === "+" || event.key === "=") zoom(middle, 1.25);
  if (event.key === "-") zoom(middle, 0.8);
  if (event.key === "0") reset();
});
reset();
