// What every page has around its contents: the address, sections, figures, the theme, the way around.

/** @typedef {{ title: string, date: string, version: string, command: string, notes: string[] }} Top */

// What the address says after "#", so that a view can be linked, and gone back from.
let options = new URLSearchParams();

function readOptions() {
  options = new URLSearchParams(location.hash.slice(1));
}

/** The page follows the address, never the other way round: the back button needs nothing more. */
function goTo(changes) {
  const next = new URLSearchParams(options);
  for (const [key, value] of Object.entries(changes)) {
    if (value === null) next.delete(key);
    else next.set(key, value);
  }
  // An empty address after "#" would scroll to the top.
  location.hash = next.size ? next.toString().replaceAll("%2C", ",") : "all";
}

/** A select, kept in the address as `key`. It is updated in place, so that it keeps the focus. */
function chooser(key, label) {
  const select = element("select", { onchange: () => goTo({ [key]: select.value }) });
  const node = element("label", { class: "chooser" }, `${label} `, select);
  return {
    node,
    /** Shows the choices, [[value, label], ...], and returns the chosen value, or else the first. */
    update(choices) {
      const values = choices.map(([value]) => `${value}`);
      const wanted = options.get(key);
      const value = values.includes(wanted) ? wanted : values[0];
      select.replaceChildren(
        ...choices.map(([each, text]) => element("option", { value: each, selected: `${each}` === value }, text)),
      );
      node.hidden = choices.length < 2;
      return value;
    },
  };
}

// --- sections and figures ---

const INDEX = []; // sections, for the navigation: [id, title]

function section(id, title, ...children) {
  INDEX.push([id, title]);
  return element("section", { id, "aria-labelledby": `${id}-heading` },
    element("h2", { id: `${id}-heading`, tabindex: -1 }, title), ...children);
}

/** @param {Top} top */
function header({ title, date, version }) {
  return [
    element("h1", {}, title),
    element("p", { class: "muted" }, `${date} · piaget ${version}`),
  ];
}

/** What was found when runs were read; open, if there is little of it. */
function noteList(notes) {
  if (!notes.length) return null;
  return element("details", { class: "notes", open: notes.length < 3 },
    element("summary", {}, count(notes.length, "note")),
    element("ul", {}, ...notes.map((note) => element("li", {}, note))));
}

const figures = [];

/**
 * A figure draws its panels from what is chosen, and returns what stands around them: {table: what is drawn, as
 * numbers; legend; note}, or null if there is nothing.
 * `when`: does the report have what it shows? `choosers`: its own selects, {key: label}. `beside`: where there is room, words
 * stand beside the panels, not above.
 * `draw(panels, controls)` is called whenever something has changed.
 */
function figure({ id, title, caption, when = true, choosers = {}, beside = false, draw }) {
  if (!when) return null;
  const controls = Object.fromEntries(
    Object.entries(choosers).map(([key, label]) => [key, chooser(`${id}-${key}`, label)]));
  const panels = element("div", { class: "panels" });
  const key = element("div", { class: "key" });
  const note = element("p", { class: "note" });
  const numbers = numbersBelow(title);
  const node = element("figure", { id, class: beside ? "beside" : null, "aria-labelledby": `${id}-title` },
    element("h3", { id: `${id}-title` }, title),
    element("figcaption", {}, caption),
    element("div", { class: "controls" }, ...Object.values(controls).map((control) => control.node)),
    key, panels, note, numbers.node);
  lazily(node, () => signatureOf(id, node), () => {
    panels.replaceChildren();
    const around = draw(panels, controls);
    panels.classList.add("drawn");
    key.replaceChildren(...(around?.legend ? [around.legend] : []));
    note.textContent = around ? around.note ?? "" : "Nothing here for what is chosen.";
    note.hidden = !note.textContent;
    numbers.update(around?.table ?? null);
  });
  figures.push(node);
  return node;
}

// --- everything ---

const THEMES = { light: "dark", dark: "light" };

function themeButton() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const wished = () => options.get("theme") ?? "";
  const now = () => (THEMES[wished()] ? wished() : system.matches ? "dark" : "light");
  const switchOver = () => goTo({ theme: THEMES[now()] });
  const button = element("button", { type: "button", class: "small theme", onclick: switchOver });
  const update = () => {
    if (THEMES[wished()]) document.documentElement.dataset.theme = wished();
    else delete document.documentElement.dataset.theme;
    button.textContent = now() === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `${button.textContent} colours`);
  };
  system.addEventListener("change", update);
  return { button, update };
}

function navigation(button) {
  const link = ([id, title]) => element("a", { href: `#at=${id}` }, title);
  document.addEventListener("click", (event) => {
    const anchor = /** @type {Element} */ (event.target).closest?.('a[href^="#at="]');
    if (!anchor) return;
    event.preventDefault();
    const at = String(anchor.getAttribute("href")).slice(4);
    if (options.get("at") === at) showSection(at);
    else goTo({ at });
  });
  return [...scrolled(element("ul", {}, ...INDEX.map((each) => element("li", {}, link(each))))), button];
}

/** On narrow screens the list of sections is one line that scrolls: it fades where it goes on, and an arrow goes there. */
function scrolled(list) {
  const go = () => list.scrollBy({ left: 0.8 * list.clientWidth, behavior: "smooth" });
  const more = element("button", { type: "button", class: "small more", "aria-hidden": "true", tabindex: -1, onclick: go }, "›");
  const update = () => {
    const rest = list.scrollWidth - list.clientWidth - list.scrollLeft;
    list.classList.toggle("before", list.scrollLeft > 4);
    list.classList.toggle("after", rest > 4);
    more.disabled = rest <= 4;
  };
  list.addEventListener("scroll", update, { passive: true });
  new ResizeObserver(update).observe(list);
  return [list, more];
}

function showSection(id) {
  const place = id && document.getElementById(id);
  const heading = place?.matches("main section, main figure, main .given") && place.querySelector("h2, h3");
  if (!heading) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  // What is above may only be drawn now, and push it down: so once more, for a moment.
  for (const wait of [0, 50, 100, 200, 400]) setTimeout(() => heading.scrollIntoView(), wait);
}

/**
 * `content`: sections; `controls`: what is above them, or null; `update()`: is called when the address changed.
 * @param {Top} top
 */
function frame(top, content, controls, update) {
  part("#top").append(...header(top));
  part("#main").append(...content);
  content[0].append(...[noteList(top.notes)].filter(known));
  const theme = themeButton();
  part("nav").append(...navigation(theme.button));
  part(".toolbar section").append(...(controls ? [controls] : []));
  part("footer").append(
    element("p", { class: "muted" }, `Made by piaget ${top.version}. This page needs no network.`),
    commandLine(top.command));

  let at = null;
  const follow = () => {
    readOptions();
    update();
    theme.update();
    redraw();
    if (at !== options.get("at")) showSection(options.get("at"));
    at = options.get("at");
  };
  addEventListener("hashchange", follow);
  new ResizeObserver(coalesced(() => redraw())).observe(part("#main"));
  addEventListener("beforeprint", () => redraw({ everything: true }));
  follow();
}
