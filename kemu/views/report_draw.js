// The drawings of the report at one moment. The same as report_player.py, report_tables.py and report_panels.py, character for
// character where nothing has changed; what the last step changed is marked with * and shown old -> new.
"use strict";

const ENTRY = 0, NO_ENTRY = 1, NO_TABLE = 2, FRAMES = 3, SPACES = 4;
const ROW = 20, CAPTION = 22, GAP = 10, HEAD = 30, LINE = 16, PAD = 8;
const MOST_ROWS = 12, FIRST_ROWS = 5, LAST_ROWS = 2;
const WIDE = { column: 291, way: 44, frames: 190, step: 8, full: true, width: 860 };
const NARROW = { column: 118, way: 14, frames: 94, step: 3, full: false, width: 358 };
const WIDE_GRID = { columns: 64, cell: 12, label: 62, line: 16 };
const NARROW_GRID = { columns: 32, cell: 9, label: 58, line: 16 };
const OWNERS = "abcdefghijklmnopqrstuvwxyz0123456789";
const FIXED = { free: ".", kernel: "K", table: "T", zero: "Z", released: "R" };
const FREE = { state: "free", refcount: 0, mapcount: 0, exclusive: false, preview: "" };
const STATES = { R: "runnable", S: "sleeping", D: "waiting", Z: "zombie", X: "dead", T: "stopped" };
const MEANINGS = {
  ".": "free", K: "kernel", T: "page table", Z: "the zero page", F: "page cache, not mapped",
  R: "released, still in a batch", S: "mapped more than once", "+": "of a process without a letter",
};
const NOTHING = { entries: new Set(), frames: new Map(), tasks: new Set(), vmas: new Set() };

const hex = (n) => "0x" + n.toString(16);
const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;" };
// eslint-disable-next-line no-control-regex
const esc = (text) => String(text)
  .replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/g, (c) => "\\x" + c.charCodeAt(0).toString(16).padStart(2, "0"))
  .replace(/[&<>"']/g, (c) => ENTITIES[c]);
const bytes = (text) => text.match(/../g) || [];
const preview = (data, room) => {
  const codes = data.map((byte) => parseInt(byte, 16));
  if (codes.every((code) => code >= 32 && code < 127)) return `"${String.fromCharCode(...codes.slice(0, room))}"`;
  return data.slice(0, room / 2).join(" ");
};

// ---------------------------------------------------------------- the state

class Player {
  constructor(film) {
    this.film = film;
    this.tables = new Map();
    this.frames = new Map();
    this.spaces = [];
    this.tasks = [];
    this.at = film.first;
    this.undo = [];
    for (const op of film.start) this.apply(op);
  }

  // Do one op. Returns what it replaced, as lists: [what, key, ..., old].
  apply(op) {
    const [kind, a, b, c, d, e] = op, old = [];
    if (kind === ENTRY || kind === NO_ENTRY) {
      if (!this.tables.has(a)) this.tables.set(a, new Map());
      const table = this.tables.get(a);
      for (let i = 0; i < c; i++) {
        old.push(["entry", a, b + i, table.get(b + i)]);
        if (kind === ENTRY) table.set(b + i, [this.film.words[d], e + i]);
        else table.delete(b + i);
      }
    } else if (kind === NO_TABLE) {
      old.push(["table", a, this.tables.get(a)]);
      this.tables.delete(a);
    } else if (kind === FRAMES) {
      for (let i = 0; i < b; i++) {
        old.push(["frame", a + i, this.frames.get(a + i)]);
        this.frames.set(a + i, this.film.looks[c]);
      }
    } else if (kind === SPACES) {
      old.push(["spaces", 0, this.spaces]);
      this.spaces = op.slice(1).map((place) => this.film.spaces[place]);
    } else {
      old.push(["tasks", 0, this.tasks]);
      this.tasks = op.slice(1).map((place) => this.film.tasks[place]);
    }
    return old;
  }

  back(old) {
    for (const [what, key, a, b] of old.slice().reverse()) {
      if (what === "entry") {
        if (b === undefined) this.tables.get(key).delete(a);
        else this.tables.get(key).set(a, b);
      } else if (what === "table") this.tables.set(key, a);
      else if (what === "frame") {
        if (a === undefined) this.frames.delete(key);
        else this.frames.set(key, a);
      } else this[what] = a;
    }
  }

  goto(moment) {
    while (this.at < moment) {
      this.undo[this.at + 1] = this.film.changes[this.at - this.film.first].flatMap((op) => this.apply(op));
      this.at += 1;
    }
    while (this.at > moment) {
      this.back(this.undo[this.at]);
      this.at -= 1;
    }
    return this;
  }

  // What differs between the moment `since` and this one, in terms of the drawings.
  changed(since) {
    const found = { entries: new Set(), frames: new Map(), tasks: new Set(), vmas: new Set() };
    let spaces = null, tasks = null;
    for (let n = this.at; n > since; n--) {
      for (const [what, key, a] of this.undo[n] || []) {
        if (what === "entry") found.entries.add(key + ":" + a);
        else if (what === "frame") found.frames.set(key, a || FREE);
        else if (what === "spaces") spaces = a;
        else if (what === "tasks") tasks = a;
      }
    }
    for (const task of tasks === null ? [] : this.tasks) if (!tasks.includes(task)) found.tasks.add(task.pid);
    const before = new Set((spaces || []).flatMap((space) => space.vmas.map((place) => space.id + ":" + place)));
    for (const space of spaces === null ? [] : this.spaces) {
      for (const place of space.vmas) {
        if (!before.has(space.id + ":" + place)) found.vmas.add(space.id + ":" + this.film.vmas[place].start);
      }
    }
    return found;
  }

  space(id) { return this.spaces.find((space) => space.id === id); }
  vmas(id) { return this.space(id).vmas.map((place) => this.film.vmas[place]); }
  look(pfn) { return this.frames.get(pfn) || FREE; }

  entriesOf(table, level, base) {
    const shift = this.film.machine.levels[level][1], last = level === this.film.machine.levels.length - 1, found = [];
    for (const [slot, [look, pfn]] of [...(this.tables.get(table) || [])].sort((x, y) => x[0] - y[0])) {
      const va = base + slot * 2 ** shift;
      if (va >= this.film.machine.userEnd) break;
      const kind = look.kind !== "present" ? look.kind : last ? "page" : look.leaf ? "huge" : "table";
      found.push({ level, table, slot, va, look, pfn, kind, leads: kind === "page" || kind === "huge" || kind === "protnone" });
    }
    return found;
  }

  * walk(table, level = 0, base = 0) {
    for (const entry of this.entriesOf(table, level, base)) {
      yield entry;
      if (entry.kind === "table") yield* this.walk(entry.pfn, level + 1, entry.va);
    }
  }

  // The 64 bits of an entry, as text.
  value(entry) {
    const framed = entry.leads || entry.kind === "table";
    return hex(BigInt(entry.look.base) | (framed ? BigInt(entry.pfn) << BigInt(this.film.machine.pfnShift) : 0n));
  }

  note(entry) {
    if (entry.kind === "marker") return "guard page";
    if ((entry.kind === "page" || entry.kind === "protnone") && entry.pfn === this.film.machine.zero) return "zero page";
    return entry.kind === "page" && entry.look.special ? "special" : "";
  }

  // The ids of the address spaces that map each frame; the newest answer is kept.
  mappedBy() {
    if (this.mapped && this.mapped.at === this.at) return this.mapped.by;
    const found = new Map();
    for (const space of this.spaces) {
      for (const entry of this.walk(space.root)) {
        if (!entry.leads) continue;
        if (!found.has(entry.pfn)) found.set(entry.pfn, []);
        if (!found.get(entry.pfn).includes(space.id)) found.get(entry.pfn).push(space.id);
      }
    }
    this.mapped = { at: this.at, by: found };
    return found;
  }

  owners() {
    return this.spaces.filter((space) => !space.making).slice(0, OWNERS.length).map((space, i) => [OWNERS[i], space]);
  }

  letters() {
    const owner = new Map(), found = new Map();
    const letterOf = new Map(this.owners().map(([letter, space]) => [space.id, letter]));
    for (const [pfn, who] of this.mappedBy()) {
      for (const id of who) if (letterOf.has(id)) owner.set(pfn, letterOf.get(id));
    }
    for (const [pfn, look] of [...this.frames].sort((x, y) => x[0] - y[0])) {
      let letter = FIXED[look.state];
      if (letter === undefined) letter = look.mapcount > 1 ? "S" : owner.get(pfn) || (look.state === "anon" ? "+" : "F");
      if (letter !== ".") found.set(pfn, letter);
    }
    return found;
  }
}

// ---------------------------------------------------------------- page tables joined at frames

function joined(player, ids, shape, changed = NOTHING) {
  const mapped = player.mappedBy();
  const columns = ids.map((id) => columnOf(player, player.space(id), mapped, changed));
  const cells = cellsOf(player, columns, mapped, ids, shape, changed);
  const bottoms = [...columns.flat().map((box) => box.y + box.height), ...cells.map((cell) => cell.y + cell.height)];
  const height = Math.max(HEAD, ...bottoms) + GAP;
  const title = `<title>${esc(summary(player, ids))}</title>`;
  return [
    `<div class="joined${shape.full ? "" : " small"}" style="width:${shape.width}px;height:${height}px">`,
    `<svg width="${shape.width}" height="${height}" role="img">${title}${arrows(columns, cells, shape, changed)}</svg>`,
    ...ids.map((id, side) => headOf(player.space(id), side, shape)),
    ...columns.flatMap((column, side) => column.map((box) => tableOf(player, box, side, shape, changed))),
    ...cells.map((cell) => frameOf(cell, shape, changed)),
    "</div>",
  ].join("");
}

function columnOf(player, space, mapped, changed) {
  const boxes = [];
  const place = (table, level, base, parentY, top) => {
    const entries = player.entriesOf(table, level, base);
    const rows = folded(grouped(player, entries, mapped, changed), changed).map((row, i) => ({ ...row, y: top + CAPTION + i * ROW }));
    const height = CAPTION + rows.length * ROW;
    boxes.push({ level, pfn: table, used: entries.length, rows, depth: level, y: top, height, parentY });
    let y = top + height + GAP;
    for (const row of rows) {
      if (row.entry && row.entry.kind === "table") y = place(row.entry.pfn, level + 1, row.entry.va, row.y + ROW / 2, y);
    }
    return y;
  };
  if (player.tables.has(space.root)) place(space.root, 0, 0, 0, HEAD);
  return boxes;
}

function grouped(player, entries, mapped, changed) {
  const rows = [];
  const who = (pfn) => (mapped.get(pfn) || []).join();
  for (const entry of entries) {
    const row = rows[rows.length - 1], first = row && row.entry;
    const same = first && first.kind === entry.kind && first.look === entry.look && first.slot + row.times === entry.slot &&
      first.pfn + row.times === entry.pfn && (entry.kind === "page" || entry.kind === "protnone") &&
      player.look(first.pfn) === player.look(entry.pfn) && who(first.pfn) === who(entry.pfn) &&
      isNew(first, changed) === isNew(entry, changed);
    if (same) row.times += 1;
    else rows.push({ entry, times: 1 });
  }
  return rows;
}

const isNew = (entry, changed) => changed.entries.has(entry.table + ":" + entry.slot);

function folded(rows, changed) {
  if (rows.length <= MOST_ROWS) return rows;
  const kept = [];
  rows.forEach((row, i) => {
    const shown = i < FIRST_ROWS || i >= rows.length - LAST_ROWS || (isNew(row.entry, changed) && changed.entries.size < MOST_ROWS);
    const last = kept[kept.length - 1];
    if (shown) kept.push(row);
    else if (last && !last.entry) last.times += row.times;
    else kept.push({ entry: null, times: row.times });
  });
  return kept;
}

function cellsOf(player, columns, mapped, ids, shape, changed) {
  const wanted = [], known = new Set();
  for (const row of columns.flat().flatMap((box) => box.rows)) {
    if (!row.entry || !row.entry.leads || known.has(row.entry.pfn)) continue;
    for (let i = 0; i < row.times; i++) known.add(row.entry.pfn + i);
    wanted.push([row.y, row.entry.pfn, row.times]);
  }
  wanted.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
  let bottom = HEAD;
  return wanted.map(([y, pfn, times]) => {
    const others = (mapped.get(pfn) || []).filter((id) => !ids.includes(id)).map((id) => player.space(id).label);
    const lines = frameLines(pfn, times, player.look(pfn), others, shape.full, changed.frames.get(pfn));
    const top = Math.max(y - PAD, bottom), height = lines.length * LINE + PAD;
    bottom = top + height + GAP;
    return { pfn, times, lines, y: top, height };
  });
}

function frameLines(pfn, times, look, others, full, old) {
  const words = { anon: look.exclusive ? "exclusive" : "not exclusive", file: "page cache", shmem: "page cache" };
  const was = (name) => (old && old[name] !== look[name] ? old[name] + "\u2192" : "") + look[name];
  const counts = full ? `refcount ${was("refcount")}, mapcount ${was("mapcount")}` : `ref ${was("refcount")} map ${was("mapcount")}`;
  const lines = [`${times === 1 ? hex(pfn) : `${hex(pfn)} x${times}`} ${look.state}`, counts];
  if (words[look.state]) lines.push(words[look.state]);
  if (look.preview) lines.push(preview(bytes(look.preview), full ? 16 : 8));
  if (others.length) lines.push(`also: ${others.join(", ")}`);
  return lines;
}

function leftOf(side, depth, shape) {
  return [side === 0 ? 6 + depth * shape.step : shape.width - shape.column, shape.column - depth * shape.step - 6];
}

function headOf(space, side, shape) {
  const [left, width] = leftOf(side, 0, shape);
  const made = space.users.length ? "" : " (being made or gone)";
  const words = `${esc(space.users.join(", ") || space.label)}${made} <span class="soft">mm#${space.id}</span>`;
  return `<div class="who" style="left:${left}px;top:0;width:${width}px">${words}</div>`;
}

function tableOf(player, box, side, shape, changed) {
  const [left, width] = leftOf(side, box.depth, shape);
  const level = player.film.machine.levels[box.level];
  const caption = `${level[0]} ${hex(box.pfn)}` + (shape.full ? `, ${box.used} of ${level[2]} used` : "");
  const rows = box.rows.map((row) => rowOf(player, row, shape, changed)).join("");
  return `<table class="pt" data-table="${box.pfn}" style="left:${left}px;top:${box.y}px;width:${width}px">` +
    `<caption>${esc(caption)}</caption><tbody>${rows}</tbody></table>`;
}

const indexOf = (row) => (row.times === 1 ? `[${row.entry.slot}]` : `[${row.entry.slot}-${row.entry.slot + row.times - 1}]`);

function rowOf(player, row, shape, changed) {
  const entry = row.entry;
  if (!entry) return `<tr class="more"><td colspan="${shape.full ? 4 : 3}">${row.times} more entries</td></tr>`;
  const fresh = isNew(entry, changed);
  const letters = shape.full ? entry.look.letters : entry.look.letters.replaceAll("-", "");
  const address = shape.full ? `<td>${hex(entry.va)}</td>` : "";
  return `<tr${fresh ? ' class="new"' : ""} data-entry="${entry.table}:${entry.slot}"><td>${fresh ? "*" : ""}${indexOf(row)}</td>` +
    `${address}<td>${letters}</td><td>${esc(targetOf(player, row, shape))}</td></tr>`;
}

function targetOf(player, row, shape) {
  const entry = row.entry;
  if (!entry.leads && entry.kind !== "table") return player.note(entry) || entry.kind;
  const words = shape.full ? { huge: "huge ", protnone: "none " } : {};
  return (words[entry.kind] || "") + hex(entry.pfn) + (row.times > 1 && shape.full ? ` x${row.times}` : "");
}

function frameOf(cell, shape, changed) {
  const fresh = changed.frames.has(cell.pfn);
  const style = `left:${shape.column + shape.way}px;top:${cell.y}px;width:${shape.frames}px;height:${cell.height}px`;
  return `<div class="frame${fresh ? " new" : ""}" data-frame="${cell.pfn}" style="${style}">` +
    `${fresh ? "*" : ""}${cell.lines.map(esc).join("<br>")}</div>`;
}

function arrows(columns, cells, shape, changed) {
  const marks = [];
  columns.forEach((column, side) => {
    for (const box of column) {
      if (box.depth) marks.push(elbow(box, side, shape));
      for (const row of box.rows) {
        for (const cell of cells) {
          if (row.entry && row.entry.leads && cell.pfn <= row.entry.pfn && row.entry.pfn < cell.pfn + cell.times) {
            marks.push(arrow(row, cell, side, shape, changed));
          }
        }
      }
    }
  });
  return marks.join("");
}

function elbow(box, side, shape) {
  const [above, width] = leftOf(side, box.depth - 1, shape), [here, own] = leftOf(side, box.depth, shape);
  const [start, margin, end] = side === 0 ? [above, above - 4, here] : [above + width, above + width + 4, here + own];
  return `<path class="down" d="M${start} ${box.parentY}H${margin}V${box.y + CAPTION / 2}H${end}"></path>`;
}

function arrow(row, cell, side, shape, changed) {
  const x1 = side === 0 ? shape.column : shape.width - shape.column, x2 = x1 + (side === 0 ? shape.way : -shape.way);
  const y1 = row.y + ROW / 2, y2 = cell.y + PAD / 2 + LINE / 2;
  const half = side === 0 ? shape.way / 2 : -shape.way / 2, tip = side === 0 ? 6 : -6;
  const names = "to" + (row.entry.look.letters.includes("W") ? "" : " readonly") + (isNew(row.entry, changed) ? " new" : "");
  return `<path class="${names}" d="M${x1} ${y1}C${x1 + half} ${y1} ${x2 - half} ${y2} ${x2 - tip} ${y2}"></path>` +
    `<path class="tip" d="M${x2} ${y2}l${-tip} -4v8z"></path>`;
}

function summary(player, ids) {
  const mapped = player.mappedBy(), names = ids.map((id) => player.space(id).label);
  const own = ids.map((id) => [...mapped].filter(([, who]) => who.includes(id)).map(([pfn]) => pfn).sort((a, b) => a - b));
  if (ids.length === 1) return `Page tables of ${names[0]}, which lead to ${framesOf(own[0])}.`;
  const second = new Set(own[1]), both = new Set(own[0].filter((pfn) => second.has(pfn)));
  const [left, right] = own.map((pfns) => framesOf(pfns.filter((pfn) => !both.has(pfn))));
  return `Page tables of ${names[0]} and ${names[1]}: both lead to ${framesOf([...both])}; only ${names[0]} to ${left}; only ${names[1]} to ${right}.`;
}

function framesOf(pfns) {
  if (!pfns.length) return "no frame";
  const many = pfns.length > 5, shown = pfns.slice(0, many ? 4 : 5).map(hex);
  return `the frame${pfns.length > 1 ? "s" : ""} ${shown.join(", ")}${many ? ` and ${pfns.length - 4} more` : ""}`;
}

function inWords(player, ids) {
  const mapped = player.mappedBy(), lines = [], frames = new Map();
  for (const id of ids) {
    const space = player.space(id);
    lines.push(`${space.users.join(", ") || space.label} (mm#${space.id})`);
    for (const box of columnOf(player, space, mapped, NOTHING)) {
      lines.push(`  ${player.film.machine.levels[box.level][0]} ${hex(box.pfn)}, ${box.used} used`);
      for (const row of box.rows) {
        const entry = row.entry;
        if (!entry) { lines.push(`    ${row.times} more entries`); continue; }
        lines.push(`    ${indexOf(row)} ${hex(entry.va)} ${entry.look.letters} -> ${targetOf(player, row, WIDE)}`);
        if (!entry.leads) continue;
        if (!frames.has(entry.pfn)) frames.set(entry.pfn, []);
        frames.get(entry.pfn).push(`${space.label} ${hex(entry.va)} ${entry.look.letters}${row.times > 1 ? ` x${row.times}` : ""}`);
      }
    }
  }
  for (const [pfn, ways] of [...frames].sort((a, b) => a[0] - b[0])) {
    const others = (mapped.get(pfn) || []).filter((id) => !ids.includes(id)).map((id) => player.space(id).label);
    lines.push(["frame " + frameLines(pfn, 1, player.look(pfn), others, true).join(", "), ...ways].join("; "));
  }
  return lines.join("\n");
}

// ---------------------------------------------------------------- the other panels

function tasksOf(player, changed = NOTHING) {
  const head = "<tr><th>pid<th>name<th>state<th>mm<th>pages<th>rss<th>faults<th>CPU</tr>";
  const rows = player.tasks.map((task) => {
    const mm = task.mm ? `mm#${task.mm}` : task.active_mm ? `(mm#${task.active_mm})` : "none";
    const state = task.blocked_in ? `waits in ${task.blocked_in}` : STATES[task.state] || task.state;
    const cpu = task.running_on !== null ? `runs on ${task.running_on}` : "";
    const fresh = changed.tasks.has(task.pid);
    const cells = [(fresh ? "*" : "") + task.pid, task.name, state, mm, task.size, task.rss, `${task.minor} + ${task.major}`, cpu];
    return `<tr${fresh ? ' class="new"' : ""} data-pid="${task.pid}">${cells.map((cell) => `<td>${esc(cell)}</td>`).join("")}</tr>`;
  });
  return `<table class="tasks"><thead>${head}</thead><tbody>${rows.join("")}</tbody></table>`;
}

function mappingsOf(player, ids, changed = NOTHING) {
  const head = "<tr><th>from<th>to<th>rights<th>pages<th>what</tr>";
  return ids.map((id) => {
    const space = player.space(id);
    const rows = player.vmas(id).map((vma) => {
      const what = vma.inode ? vma.name + (vma.offset ? ` from ${hex(vma.offset)}` : "") : vma.name || "anonymous";
      const fresh = changed.vmas.has(space.id + ":" + vma.start);
      return `<tr${fresh ? ' class="new"' : ""} data-vma="${space.id}:${vma.start}"><td>${fresh ? "*" : ""}${hex(vma.start)}</td><td>${hex(vma.end)}</td>` +
        `<td>${esc(vma.perm)}</td><td class="n">${(vma.end - vma.start) / 4096}</td><td>${esc(what)}</td></tr>`;
    });
    const who = space.users.join(", ") || space.label;
    return `<table class="vmas"><caption>${esc(who)} (mm#${space.id})</caption><thead>${head}</thead><tbody>${rows.join("")}</tbody></table>`;
  }).join("");
}

function* runsOf(letters, frames, columns) {
  const last = Math.floor((frames - 1) / columns), used = new Set();
  for (const pfn of letters.keys()) used.add(Math.floor(pfn / columns));
  used.delete(last);
  let after = 0;
  for (const line of [...[...used].sort((a, b) => a - b), last]) {
    if (line > after) yield [after * columns, ".".repeat(columns), line - after];
    let text = "";
    for (let pfn = line * columns; pfn < Math.min((line + 1) * columns, frames); pfn++) text += letters.get(pfn) || ".";
    yield [line * columns, text, 1];
    after = line + 1;
  }
}

function mapLines(letters, frames, columns) {
  const lines = [];
  for (const [at, text, count] of runsOf(letters, frames, columns)) {
    const last = lines[lines.length - 1];
    if (last && last.letters === text) last.more += count;
    else lines.push({ at, letters: text, more: count - 1 });
  }
  const shown = lines.map((line, i) => ({ at: line.at, letters: line.letters, skipped: i ? lines[i - 1].more : 0 }));
  const end = lines[lines.length - 1];
  if (end.more) shown.push({ at: Math.floor((frames - 1) / columns) * columns, letters: end.letters, skipped: end.more - 1 });
  return shown;
}

const more = (count) => `${count} more line${count === 1 ? "" : "s"} like this`;

function memoryOf(player, grid, changed = NOTHING) {
  const letters = player.letters(), parts = [];
  let y = 0;
  for (const line of mapLines(letters, player.film.machine.frames, grid.columns)) {
    if (line.skipped) {
      parts.push(`<text class="soft" x="${grid.label}" y="${y + 12}">${more(line.skipped)}</text>`);
      y += grid.line;
    }
    parts.push(mapLine(line, y, grid, changed));
    y += grid.line;
  }
  const width = grid.label + grid.columns * grid.cell + 2, height = y + 2, words = legendOf(player, letters);
  const title = `<title>${esc("RAM, one letter per frame: " + words)}</title>`;
  return `<svg class="ram" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">${title}${parts.join("")}</svg>` +
    `<p class="soft">${esc(words)}</p>`;
}

function mapLine(line, y, grid, changed) {
  const row = line.letters, parts = [`<text x="0" y="${y + 12}">${hex(line.at)}</text>`];
  const box = (from, to) => `x="${grid.label + from * grid.cell}" y="${y}" width="${(to - from) * grid.cell}" height="${grid.line - 1}"`;
  let start = 0;
  for (let i = 1; i <= row.length; i++) {
    if (i < row.length && row[i] === row[start]) continue;
    if (row[start] !== ".") parts.push(`<rect class="${"KTZFRS".includes(row[start]) ? "m" + row[start] : "mo"}" ${box(start, i)}></rect>`);
    start = i;
  }
  for (const pfn of changed.frames.keys()) {
    if (pfn >= line.at && pfn < line.at + row.length) parts.push(`<rect class="fresh" ${box(pfn - line.at, pfn - line.at + 1)}></rect>`);
  }
  const places = [...row].map((_, i) => grid.label + i * grid.cell + Math.floor(grid.cell / 2)).join(" ");
  return parts.join("") + `<text class="cells" x="${places}" y="${y + 12}">${row}</text>`;
}

function legendOf(player, letters) {
  const names = new Map([...Object.entries(MEANINGS), ...player.owners().map(([letter, space]) => [letter, space.label])]);
  const counts = new Map();
  for (const letter of letters.values()) counts.set(letter, (counts.get(letter) || 0) + 1);
  counts.set(".", player.film.machine.frames - letters.size);
  return [...names].filter(([letter]) => counts.get(letter)).map(([letter, name]) => `${letter} ${name} ${counts.get(letter)}`).join("; ");
}

function memoryInWords(player) {
  const lines = [];
  for (const line of mapLines(player.letters(), player.film.machine.frames, 64)) {
    if (line.skipped) lines.push(`     ...  ${more(line.skipped)}`);
    lines.push(`${hex(line.at).padStart(8)}  ${line.letters}`);
  }
  return lines.join("\n");
}
