// Walking through the film: the slider, the buttons, the keys, and what is next to the drawings.
"use strict";

const $ = (id) => document.getElementById(id);
const films = JSON.parse($("films").textContent);
const view = { part: 1, at: 0, grain: "command", sides: ["auto", "auto"], timer: 0, since: 0, small: false, noting: 0 };
let film, player, stops;

// Begin with a part, at its opening.
function load(part) {
  view.part = part;
  film = unpack(films[part - 1]);
  player = new Player(film);
  stops = stopsOf(film);
  view.at = film.opening;
  view.since = stops.shown.findLast((n) => n < view.at) ?? film.first;
  $("slider").min = String(film.first);
  $("slider").max = String(film.last);
  if ($("part")) $("part").value = String(part);
}

// The columns of the data as objects.
function unpack(data) {
  const text = (i) => data.texts[i];
  const events = data.events.number.map((number, i) => ({
    number, kind: text(data.events.kind[i]), what: text(data.events.what[i]), field: text(data.events.field[i]),
    old: text(data.events.old[i]), now: text(data.events.now[i]), note: text(data.events.note[i]),
    fn: text(data.events.fn[i]), shown: data.events.shown[i] === "1", before: data.events.before[i], rule: text(data.events.rule[i]),
  }));
  const calls = data.calls.map(([depth, fn, path, first, last]) => ({ depth, fn: text(fn), path: text(path), first, last }));
  const vmas = data.vmas.map(([start, end, perm, offset, inode, name]) => ({ start: Number(start), end: Number(end), perm, offset: Number(offset), inode, name }));
  const named = (rows, names) => rows.map((row) => Object.fromEntries(names.map((name, i) => [name, row[i]])));
  return {
    ...data, events, calls, vmas,
    machine: { ...data.machine, userEnd: Number(data.machine.userEnd) },
    words: named(data.words, ["base", "letters", "kind", "leaf", "special"]),
    looks: named(data.looks, ["state", "refcount", "mapcount", "exclusive", "preview"]),
    spaces: named(data.spaces, ["id", "label", "users", "pids", "root", "vmas", "making"]),
    tasks: named(data.tasks, data.taskFields),
    commands: named(data.commands, ["text", "first", "last", "now", "ok"]),
  };
}

const eventAt = (number) => film.events[number - film.first - 1];
const commandAt = (number) => film.commands.find((command) => film.first <= command.first && command.first < number && number <= command.last);
const textOf = (event) => [`${event.what} ${event.field}`.trim(), event.old || event.now ? `${event.old} -> ${event.now}` : "", event.note && `(${event.note})`].filter(Boolean).join(" ");
const address = (number) => (films.length > 1 ? `#p${view.part}e${number}` : `#e${number}`);
const link = (number, words) => `<a href="${address(number)}">${words === undefined ? `#${number}` : words}</a>`;

// ---------------------------------------------------------------- moving

// The moments to stop at, for each size of step.
const stopsOf = (film) => ({
  all: Array.from({ length: film.last - film.first + 1 }, (_, i) => film.first + i),
  shown: [film.first, ...film.events.filter((event) => event.shown || event.number === film.last).map((event) => event.number)],
  call: [...new Set([film.first, ...film.calls.map((call) => call.first), film.last])].sort((a, b) => a - b),
  command: [...new Set([film.first, ...film.commands.filter((c) => c.last > c.first).map((command) => command.last), film.last])].sort((a, b) => a - b),
});

function neighbour(direction, grain) {
  const list = stops[grain];
  return direction > 0 ? list.find((n) => n > view.at) : list.findLast((n) => n < view.at);
}

function step(direction, grain = view.grain) {
  const to = neighbour(direction, grain);
  if (to !== undefined) go(to, grain);
}

function go(moment, grain = "all") {
  const to = Math.min(Math.max(moment, film.first), film.last);
  if (grain === "command") view.since = Math.min(commandAt(to)?.first ?? to, to);
  else view.since = stops[grain].findLast((n) => n < to) ?? film.first;
  view.at = to;
  draw();
  clearTimeout(view.noting);
  view.noting = setTimeout(noteAddress, 500);
}

// The address of the moment, once it stays: browsers refuse to change it at every step of a held key.
function noteAddress() {
  history.replaceState(null, "", address(view.at));
}

function play(on) {
  clearInterval(view.timer);
  view.timer = 0;
  if (on) {
    if (view.at === film.last) go(film.first);
    const grain = view.grain === "command" ? "shown" : view.grain;
    view.timer = setInterval(() => (view.at === film.last ? play(false) : step(1, grain)), 1000 / Number($("speed").value));
  }
  $("play").textContent = on ? "pause" : "play";
  $("play").setAttribute("aria-pressed", String(on));
}

const KEYS = {
  ArrowRight: () => step(1), ArrowLeft: () => step(-1), ArrowUp: () => step(-1), ArrowDown: () => step(1),
  PageDown: () => step(1, "command"), PageUp: () => step(-1, "command"), Home: () => go(film.first), End: () => go(film.last),
};

function onKey(event) {
  const at = event.target, tag = at.tagName;
  if (event.ctrlKey || event.altKey || event.metaKey || tag === "SELECT" || at.closest(".scroll, pre")) return;
  const vertical = ["ArrowUp", "ArrowDown"].includes(event.key);
  if (!KEYS[event.key] || (vertical && !at.closest(".player"))) return;
  event.preventDefault();
  KEYS[event.key]();
}

// ---------------------------------------------------------------- what is shown

// The two address spaces: those chosen, else the oldest that a user process has, and that of the running process; if
// these are the same, the newest.
function sides() {
  const people = player.spaces.filter((space) => !space.pids.length || space.pids.some((pid) => pid > 2));
  const all = people.length ? people : player.spaces;
  if (!all.length) return [];
  const running = player.tasks.filter((task) => task.running_on !== null && task.mm !== all[0].id).map((task) => task.mm);
  const auto = [all[0], all.find((space) => running.includes(space.id)) || all[all.length - 1]];
  const chosen = view.sides.map((id, i) => (id === "none" ? undefined : player.spaces.find((space) => String(space.id) === id) || auto[i]));
  return [...new Set(chosen.filter(Boolean).map((space) => space.id))];
}

function draw() {
  player.goto(view.at);
  const changed = player.changed(view.since), ids = sides();
  drawPlayer();
  drawEvent();
  $("calls").innerHTML = callLines();
  $("changes").innerHTML = changeLines();
  drawState(ids, changed);
  drawCommands();
  requestAnimationFrame(showOpenCall);
}

// The innermost open call in the middle of its panel.
function showOpenCall() {
  const here = $("calls").querySelector(".here");
  if (here) $("calls").scrollTop = here.offsetTop - $("calls").offsetTop - 120;
}

function drawPlayer() {
  const slider = $("slider"), command = commandAt(view.at);
  slider.value = String(view.at);
  slider.setAttribute("aria-valuetext", `event ${view.at} of ${film.last}${command ? `, in ${command.text}` : ""}`);
  $("where").textContent = `#${view.at} of ${film.last}`;
  for (const [id, off] of [["first", view.at === film.first], ["back", view.at === film.first], ["cback", view.at === film.first],
    ["next", view.at === film.last], ["cnext", view.at === film.last], ["last", view.at === film.last]]) {
    $(id).setAttribute("aria-disabled", String(off));
  }
}

function drawEvent() {
  const event = eventAt(view.at), command = commandAt(view.at), mark = film.marks.find(([, at]) => at === view.at);
  const place = mark ? ` <span class="soft">mark ${esc(mark[0])}</span>` : "";
  $("command").innerHTML = command ? `<code>${esc(command.text)}</code> <span class="soft">#${command.first + 1}-#${command.last}</span>${place}` : `<span class="soft">${view.at === 0 ? "the machine has booted" : "before the first command of this report"}</span>${place}`;
  $("text").innerHTML = event ? `<b>#${event.number}</b> ${event.fn ? `<code>${esc(event.fn)}()</code> ` : ""}${esc(textOf(event))}` : "<b>#" + view.at + "</b> no event yet";
  $("rule").textContent = event ? event.rule : "";
  $("why").innerHTML = event ? whyLines(event) : "";
  const note = film.notes.findLast(([at]) => at <= view.at);
  $("note").innerHTML = note ? `<h2>${esc(note[1])}</h2><pre>${esc(note[2])}</pre>` : "";
}

// The chain that `why` shows: the events that wrote the same thing before, newest first.
function whyLines(event) {
  const lines = [], names = openCalls(event.number).map((call) => call.fn), command = commandAt(event.number);
  let at = event;
  for (let i = 0; at && i < 6; i++) {
    lines.push(`<li>${at === event ? `<b>#${at.number}</b>` : link(at.number)} ${esc(at.fn ? at.fn + " " : "")}${esc(textOf(at))}</li>`);
    at = at.before > film.first ? eventAt(at.before) : undefined;
  }
  const chain = lines.length > 1 ? `<p>What wrote it, newest first:</p><ol class="chain">${lines.join("")}</ol>` : "<p>Nothing wrote it before, since it was created.</p>";
  const older = at ? `<p>older ones: ${link(at.number)}</p>` : "";
  const inside = names.length ? `<p>Inside <code>${names.map(esc).join(" &gt; ")}</code></p>` : "";
  return chain + older + inside + (command ? `<p>Because of <code>${esc(command.text)}</code></p>` : "");
}

function callRange(command) {
  return film.calls.filter((call) => call.first >= command.first && call.last <= command.last);
}

// The calls that are open while the event happens, outermost first.
function openCalls(number) {
  return film.calls.filter((call) => call.first < number && number <= call.last);
}

const FEW = 60, MOST_CHANGES = 60;

function callLines() {
  const command = commandAt(view.at);
  if (!command) return '<p class="soft">no command runs here</p>';
  const calls = callRange(command), open = new Set(openCalls(view.at)), inner = openCalls(view.at).at(-1);
  const lines = [], base = calls.length ? calls[0].depth : 0;
  let hiddenBelow = Infinity;
  for (const call of calls) {
    if (call.depth > hiddenBelow) continue;
    hiddenBelow = open.has(call) || calls.length <= FEW ? Infinity : call.depth;
    const names = ["call", open.has(call) ? "open" : "", call === inner ? "here" : "", call.last === call.first ? "empty" : ""].filter(Boolean).join(" ");
    const range = call.last === call.first ? "" : `#${call.first + 1}${call.last > call.first + 1 ? `-${call.last}` : ""}`;
    const name = call.last > call.first ? link(call.first + 1, esc(call.fn) + "()") : esc(call.fn) + "()";
    const here = call === inner ? ' <span class="soft">(here)</span>' : "";
    lines.push(`<li class="${names}" style="padding-left:${(call.depth - base) * 12}px"${call === inner ? ' aria-current="step"' : ""}>${open.has(call) ? "&gt; " : ""}${name}${here} <span class="soft">${range}</span></li>`);
    if (call === inner) lines.push(...eventLines(call, calls, (call.depth - base + 1) * 12));
  }
  if (!inner && eventAt(view.at)) lines.push(`<li class="call here" aria-current="step">outside of any function: #${view.at}</li>`);
  return `<ol class="calls">${lines.join("")}</ol>`;
}

// The events of the innermost open call itself, around this one.
function eventLines(call, calls, indent) {
  const below = calls.filter((other) => other.depth === call.depth + 1 && other.first >= call.first && other.last <= call.last);
  const own = film.events.slice(call.first - film.first, call.last - film.first)
    .filter((event) => (event.shown || event.number === view.at) && !below.some((other) => other.first < event.number && event.number <= other.last));
  const at = own.findIndex((event) => event.number === view.at);
  return own.slice(Math.max(at - 4, 0), Math.max(at - 4, 0) + 9).map((event) => `<li class="event${event.number === view.at ? " here" : ""}" style="padding-left:${indent}px">${event.number === view.at ? "*" : ""}${link(event.number)} ${esc(textOf(event))}</li>`);
}

// What differs between the beginning of the command and this moment, field by field.
function changeLines() {
  const command = commandAt(view.at);
  if (!command) return '<p class="soft">nothing</p>';
  const fields = new Map();
  for (let n = command.first + 1; n <= view.at; n++) {
    const event = eventAt(n), key = event.what + "\n" + event.field;
    if (!event.shown) continue;
    const known = fields.get(key);
    fields.set(key, { ...event, old: known ? known.old : event.old });
  }
  const all = [...fields.values()].filter((event) => event.old !== event.now || event.number === view.at);
  const rows = all.reverse().slice(0, MOST_CHANGES).map((event) => {
    const here = event.number === view.at;
    return `<tr${here ? ' class="new"' : ""}><td>${here ? "*" : ""}${link(event.number)}</td><td>${esc(`${event.what} ${event.field}`.trim())}</td><td>${esc(event.old)} -&gt; ${esc(event.now)}</td></tr>`;
  });
  const left = all.length > rows.length ? `<p class="soft">and ${all.length - rows.length} older ones</p>` : "";
  return rows.length ? `<table><thead><tr><th>event<th>what<th>old -&gt; new</tr></thead><tbody>${rows.join("")}</tbody></table>${left}` : '<p class="soft">nothing yet</p>';
}

function drawState(ids, changed) {
  $("joined").innerHTML = ids.length ? joined(player, ids, view.small ? NARROW : WIDE, changed) : '<p class="soft">no address space</p>';
  $("mappings").innerHTML = mappingsOf(player, ids, changed);
  $("memory").innerHTML = memoryOf(player, view.small ? NARROW_GRID : WIDE_GRID, changed);
  $("tasks").innerHTML = tasksOf(player, changed);
  for (const [id, words] of [["joinedtext", () => inWords(player, ids)], ["memorytext", () => memoryInWords(player)]]) {
    if ($(id).parentElement.open) $(id).textContent = words();
  }
  ["left", "right"].forEach((id, side) => {
    const options = player.spaces.map((space) => [String(space.id), `${space.users.join(", ") || space.label} (mm#${space.id})`]);
    const list = [["auto", side ? "running, else newest" : "oldest process"], ...(side ? [["none", "nothing"]] : []), ...options];
    $(id).innerHTML = list.map(([value, words]) => `<option value="${value}"${view.sides[side] === value ? " selected" : ""}>${esc(words)}</option>`).join("");
  });
}

function drawCommands() {
  const now = commandAt(view.at);
  document.querySelectorAll("ol.commands > li").forEach((item) => item.classList.remove("here"));
  document.querySelectorAll(`ol.commands[data-part="${view.part}"] > li`).forEach((item, i) => {
    const here = film.commands[i] === now;
    item.classList.toggle("here", here);
    if (here) item.setAttribute("aria-current", "step");
    else item.removeAttribute("aria-current");
  });
}

// ---------------------------------------------------------------- start

function fromHash() {
  const found = /^#(?:p(\d+))?e(\d+)$/.exec(location.hash);
  if (!found) return;
  const part = Math.min(Math.max(Number(found[1] || 1), 1), films.length);
  if (part !== view.part) load(part);
  else if (Number(found[2]) === view.at) return;
  go(Number(found[2]));
}

// Whether the answer to "is there room for the wide drawings?" changed. On paper there is room.
function measure() {
  const small = $("state").clientWidth < 700, other = small !== view.small;
  view.small = small;
  return other;
}

function look() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches, root = document.documentElement;
  const now = root.dataset.look || (dark ? "dark" : "light");
  root.dataset.look = now === "dark" ? "light" : "dark";
}

function start() {
  for (const [id, act] of [["first", () => go(film.first)], ["cback", () => step(-1, "command")], ["back", () => step(-1)], ["play", () => play(!view.timer)],
    ["next", () => step(1)], ["cnext", () => step(1, "command")], ["last", () => go(film.last)], ["look", look]]) $(id).addEventListener("click", act);
  $("slider").addEventListener("input", () => go(Number($("slider").value)));
  if ($("part")) $("part").addEventListener("change", () => { load(Number($("part").value)); draw(); });
  $("grain").addEventListener("change", () => { view.grain = $("grain").value; });
  $("speed").addEventListener("change", () => { if (view.timer) play(true); });
  ["left", "right"].forEach((id, side) => $(id).addEventListener("change", () => { view.sides[side] = $(id).value; draw(); }));
  document.addEventListener("keydown", onKey);
  document.querySelectorAll("details.alt").forEach((item) => item.addEventListener("toggle", draw));
  addEventListener("hashchange", fromHash);
  addEventListener("resize", () => { if (measure()) draw(); });
  addEventListener("beforeprint", () => { view.small = false; draw(); });
  addEventListener("afterprint", () => { measure(); draw(); });
  load(1);
  measure();
  draw();
  fromHash();
}

start();
