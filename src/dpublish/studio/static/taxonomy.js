// The taxonomy editor: a tree that is changed by mouse, by keys and by buttons.
//
// A node is {id, name, children}; a value has no children, and a group without a name has the
// name null.  Every change makes a new tree, so that undo and redo are lists of trees.  The server
// checks each tree and saves it; what is right or wrong is decided there alone.
"use strict";

const editor = document.getElementById("editor");
const list = document.getElementById("tree");
const field = document.getElementById("tree-field");
const save = document.getElementById("save-tree");
const hasRanges = editor.dataset.ranges === "yes";

let counter = 0;
let root = { id: 0, name: list.dataset.name ?? null, children: readItems(list) };
let past = [];
let future = [];
let selected = new Set();
let current = root.children.length ? root.children[0].id : null;
let renaming = null;
let dragged = null;
const folded = new Set();

function readItems(ul) {
  return [...ul.children].map((item) => {
    const inner = item.querySelector(":scope > ul");
    const node = { id: ++counter, name: item.dataset.name ?? null };
    return inner ? { ...node, children: readItems(inner) } : node;
  });
}

// ---- what a tree says ----

function* walk(nodes, parent = root, depth = 1) {
  for (const node of nodes) {
    yield { node, parent, depth };
    if (node.children) yield* walk(node.children, node, depth + 1);
  }
}
const find = (id) => [...walk(root.children)].find((each) => each.node.id === id);
const leaves = (node) => (node.children ? node.children.flatMap(leaves) : [node]);
const holds = (node, id) => node.id === id || (node.children ?? []).some((x) => holds(x, id));

function shownName(node) {
  if (node.name !== null) return node.name;
  const inside = leaves(node);
  if (!inside.length) return "empty group";
  const first = inside[0].name;
  const last = inside[inside.length - 1].name;
  if (!hasRanges) return `${first}..${last}`;
  const numbers = (text) => text.match(/[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?/gi) ?? [text];
  return `${numbers(first)[0]} to ${numbers(last).at(-1)}`;
}

function plain(node) {
  return node.children
    ? { name: node.name, children: node.children.map(plain) }
    : { name: node.name };
}

// ---- changes: each makes a new tree ----

function rebuild(node, change) {
  if (!node.children) return node;
  const children = change(node, node.children.map((child) => rebuild(child, change)));
  return { ...node, children };
}
const without = (tree, ids) =>
  rebuild(tree, (_, children) => children.filter((child) => !ids.has(child.id)));
const withNodes = (tree, parentId, index, nodes) =>
  rebuild(tree, (node, children) =>
    node.id === parentId ? [...children.slice(0, index), ...nodes, ...children.slice(index)] : children
  );

// The chosen nodes in the order of the tree; what lies within a chosen group comes with it.
function chosen() {
  const ids = selected.size ? selected : new Set(current === null ? [] : [current]);
  const found = [];
  for (const each of walk(root.children)) {
    if (ids.has(each.node.id) && !found.some((x) => holds(x.node, each.node.id))) found.push(each);
  }
  return found;
}

function change(tree, words) {
  past.push(root);
  future = [];
  root = tree;
  show(words);
  changed();
}

function changed() {
  field.value = JSON.stringify(plain(root));
  save.hidden = false;
  document.body.dispatchEvent(new CustomEvent("drawn"));
}

function move(nodes, parentId, index, words) {
  const ids = new Set(nodes.map((node) => node.id));
  if (nodes.some((node) => holds(node, parentId))) return say("A group cannot be moved into itself.");
  const parent = parentId === root.id ? root : find(parentId).node;
  const before = parent.children.slice(0, index).filter((child) => ids.has(child.id)).length;
  const kept = without(root, ids);
  change(withNodes(kept, parentId, index - before, nodes), words);
}

function shift(step) {
  const [first, ...more] = chosen();
  if (!first || more.some((each) => each.parent !== first.parent)) {
    return say("Choose nodes of one group to move them up or down.");
  }
  const nodes = [first, ...more].map((each) => each.node);
  const siblings = first.parent.children;
  const at = siblings.indexOf(step < 0 ? nodes[0] : nodes[nodes.length - 1]);
  if (siblings[at + step] === undefined) return say(step < 0 ? "It is the first." : "It is the last.");
  move(nodes, first.parent.id, step < 0 ? at - 1 : at + 2, `Moved ${names(nodes)} ${step < 0 ? "up" : "down"}.`);
}

function indent() {
  const [first] = chosen();
  if (!first) return;
  const siblings = first.parent.children;
  const before = siblings[siblings.indexOf(first.node) - 1];
  if (!before || !before.children) return say("To indent, put a group before it.");
  const nodes = chosen().map((each) => each.node);
  folded.delete(before.id);
  move(nodes, before.id, before.children.length, `Moved ${names(nodes)} into ${shownName(before)}.`);
}

function outdent() {
  const [first] = chosen();
  if (!first || first.parent === root) return say("It is at the top already.");
  const above = find(first.parent.id).parent;
  const nodes = chosen().map((each) => each.node);
  const at = above.children.indexOf(first.parent);
  move(nodes, above.id, at + 1, `Moved ${names(nodes)} out of ${shownName(first.parent)}.`);
}

function group() {
  const found = chosen();
  if (!found.length) return;
  if (hasRanges && found.length < 2) {
    return say("Choose at least two neighbors: Space, or Ctrl and a click, chooses several.");
  }
  const nodes = found.map((each) => each.node);
  const { parent } = found[0];
  const ids = new Set(nodes.map((node) => node.id));
  const at = parent.children.indexOf(nodes[0]);
  const made = { id: ++counter, name: hasRanges ? null : newName(), children: nodes };
  const kept = without(root, ids);
  selected = new Set();
  current = made.id;
  renaming = hasRanges ? null : made.id;
  change(withNodes(kept, parent.id, at, [made]), `Grouped ${names(nodes)}.`);
}

function newName() {
  const taken = new Set([...walk(root.children)].map((each) => each.node.name));
  let number = 1;
  while (taken.has(`Group ${number}`)) number += 1;
  return `Group ${number}`;
}

function groupEvery(width) {
  if (!(width >= 2)) return say("Write how many neighbors go into a group, at least 2.");
  const [first] = chosen();
  const parent = first ? first.parent : root;
  const children = [];
  for (let at = 0; at < parent.children.length; at += width) {
    const part = parent.children.slice(at, at + width);
    children.push(part.length === 1 ? part[0] : { id: ++counter, name: null, children: part });
  }
  if (children.length < 2) return say("All of them would be in one group.");
  selected = new Set();
  current = children[0].id;
  change(
    rebuild(root, (node, inside) => (node.id === parent.id ? children : inside)),
    `Made ${children.length} nodes of ${parent.children.length}.`
  );
}

function ungroup() {
  const found = chosen().filter((each) => each.node.children);
  if (!found.length) return say("Only groups can be deleted; values stay.");
  const ids = new Set(found.map((each) => each.node.id));
  const tree = rebuild(root, (_, children) =>
    children.flatMap((child) => (ids.has(child.id) ? child.children : [child]))
  );
  const words = `Deleted the group ${names(found.map((each) => each.node))}; what was in it stays.`;
  selected = new Set();
  current = found[0].node.children[0]?.id ?? found[0].parent.children[0]?.id ?? null;
  change(tree, words);
}

function flatten() {
  selected = new Set();
  const inside = leaves(root);
  current = inside[0].id;
  change({ ...root, children: inside }, "Removed all groups.");
}

function rename(id, name) {
  renaming = null;
  const text = name.trim();
  const { node } = find(id);
  if (text === (node.name ?? "")) return show();
  const tree = rebuild(root, (_, children) =>
    children.map((child) => (child.id === id ? { ...child, name: text || null } : child))
  );
  change(tree, text ? `Renamed to ${text}.` : "It is named by what is in it.");
}

function startRename() {
  const [first] = chosen();
  if (!first || !first.node.children) return say("Only groups have names of their own.");
  current = first.node.id;
  renaming = current;
  show();
}

function undo() {
  if (!past.length) return say("There is nothing to undo.");
  future.push(root);
  root = past.pop();
  recall("Undone.");
}

function redo() {
  if (!future.length) return say("There is nothing to redo.");
  past.push(root);
  root = future.pop();
  recall("Done again.");
}

function recall(words) {
  selected = new Set();
  if (!find(current)) current = root.children[0]?.id ?? null;
  show(words);
  changed();
}

const names = (nodes) =>
  nodes.length > 3 ? `${nodes.length} nodes` : nodes.map(shownName).join(", ");

// ---- what is shown ----

const spoken = document.createElement("p");
spoken.className = "spoken";
spoken.setAttribute("role", "status");
function say(words) {
  spoken.textContent = words;
}

const tools = document.createElement("div");
tools.className = "tools";
tools.setAttribute("role", "toolbar");
tools.setAttribute("aria-label", "Change the tree");
const buttons = [
  ["Move up", () => shift(-1), "Alt+ArrowUp"],
  ["Move down", () => shift(1), "Alt+ArrowDown"],
  ["Indent", indent, "Alt+ArrowRight"],
  ["Outdent", outdent, "Alt+ArrowLeft"],
  ["Group", group, "G"],
  ["Rename", startRename, "F2"],
  ["Delete group", ungroup, "Delete"],
  ["Remove all groups", flatten, ""],
  ["Undo", undo, "Control+Z"],
  ["Redo", redo, "Control+Y"],
];
for (const [text, act, keys] of buttons) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet";
  button.textContent = text;
  if (keys) {
    button.title = keys;
    button.setAttribute("aria-keyshortcuts", keys);
  }
  button.addEventListener("click", act);
  tools.append(button);
}
const every = document.createElement("label");
every.textContent = "neighbors into groups of ";
const width = document.createElement("input");
width.type = "number";
width.min = "2";
width.value = "2";
const makeGroups = document.createElement("button");
makeGroups.type = "button";
makeGroups.className = "quiet";
makeGroups.textContent = "Group in order";
makeGroups.addEventListener("click", () => groupEvery(Number.parseInt(width.value, 10)));
every.append(width);
tools.append(every, makeGroups);

const help = document.createElement("p");
help.className = "hint";
help.textContent =
  "Drag nodes with the mouse, or use the buttons. Keys: arrows go through the tree, Space " +
  "chooses several, Alt with an arrow moves, G groups, F2 renames, Delete deletes a group, " +
  "Ctrl+Z undoes.";

function item({ node, depth }, position, setSize) {
  const li = document.createElement("li");
  li.setAttribute("role", "treeitem");
  li.setAttribute("aria-level", depth);
  li.setAttribute("aria-posinset", position);
  li.setAttribute("aria-setsize", setSize);
  li.setAttribute("aria-selected", selected.has(node.id));
  li.dataset.id = node.id;
  li.tabIndex = node.id === current ? 0 : -1;
  const row = document.createElement("span");
  row.className = "row";
  if (node.children) {
    li.className = node.name === null ? "group auto" : "group";
    li.setAttribute("aria-expanded", !folded.has(node.id));
    const fold = document.createElement("span");
    fold.className = "fold";
    fold.textContent = folded.has(node.id) ? "▸" : "▾";
    fold.setAttribute("aria-hidden", "true");
    row.append(fold);
  }
  row.append(node.id === renaming ? nameInput(node) : nameText(node));
  if (node.children) {
    const size = document.createElement("span");
    size.className = "size";
    size.textContent = `${leaves(node).length}`;
    row.append(size);
  }
  row.draggable = node.id !== renaming;
  li.append(row);
  li.setAttribute("aria-label", node.children ? `group ${shownName(node)}, ${leaves(node).length} values` : node.name);
  if (node.children && !folded.has(node.id)) {
    const inner = document.createElement("ul");
    inner.setAttribute("role", "group");
    node.children.forEach((child, i) =>
      inner.append(item({ node: child, depth: depth + 1 }, i + 1, node.children.length))
    );
    li.append(inner);
  }
  return li;
}

function nameText(node) {
  const name = document.createElement("span");
  name.className = "name";
  name.textContent = shownName(node);
  return name;
}

function nameInput(node) {
  const input = document.createElement("input");
  input.value = node.name ?? "";
  input.setAttribute("aria-label", "Name of the group");
  input.placeholder = "named by what is in it";
  input.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter") {
      event.preventDefault();
      rename(node.id, input.value);
    } else if (event.key === "Escape") {
      renaming = null;
      show();
    }
  });
  input.addEventListener("blur", () => {
    if (renaming === node.id) rename(node.id, input.value);
  });
  return input;
}

function show(words) {
  const hadFocus = editor.contains(document.activeElement) || document.activeElement === document.body;
  const scrolled = list.scrollTop;
  list.replaceChildren(
    ...root.children.map((node, i) => item({ node, depth: 1 }, i + 1, root.children.length))
  );
  list.scrollTop = scrolled;
  if (renaming !== null) {
    const input = list.querySelector("input");
    input?.focus();
    input?.select();
  } else if (hadFocus && past.length + future.length) {
    list.querySelector('[tabindex="0"]')?.focus({ preventScroll: false });
  }
  if (words) say(words);
}

// ---- mouse ----

const itemOf = (event) => event.target.closest?.("[data-id]");
const idOf = (element) => Number(element.dataset.id);

list.addEventListener("click", (event) => {
  const element = itemOf(event);
  if (!element || event.target.tagName === "INPUT") return;
  const id = idOf(element);
  current = id;
  if (event.target.classList.contains("fold")) {
    if (!folded.delete(id)) folded.add(id);
  } else if (event.ctrlKey || event.metaKey) {
    if (!selected.delete(id)) selected.add(id);
  } else if (event.shiftKey && selected.size) {
    chooseTo(id);
  } else {
    selected = new Set([id]);
  }
  show();
  list.querySelector('[tabindex="0"]')?.focus();
});
list.addEventListener("dblclick", (event) => {
  if (itemOf(event) && event.target.tagName !== "INPUT") startRename();
});

function chooseTo(id) {
  const ids = [...walk(root.children)].map((each) => each.node.id);
  const from = ids.indexOf([...selected][0]);
  const to = ids.indexOf(id);
  selected = new Set(ids.slice(Math.min(from, to), Math.max(from, to) + 1));
}

function dropPoint(event) {
  const element = itemOf(event);
  if (!element || dragged === null) return null;
  const id = idOf(element);
  const { node, parent } = find(id);
  if (dragged.some((each) => holds(each, id))) return null;
  const box = element.querySelector(":scope > .row").getBoundingClientRect();
  const part = (event.clientY - box.top) / box.height;
  const edge = node.children ? 0.3 : 0.5;
  const index = parent.children.indexOf(node);
  if (part < edge) return { element, kind: "before", parent: parent.id, index };
  if (node.children && part <= 1 - edge) {
    return { element, kind: "into", parent: node.id, index: node.children.length };
  }
  return { element, kind: "after", parent: parent.id, index: index + 1 };
}

function clearMarks() {
  for (const marked of list.querySelectorAll(".drop-before, .drop-after, .drop-into")) {
    marked.classList.remove("drop-before", "drop-after", "drop-into");
  }
}

list.addEventListener("dragstart", (event) => {
  const element = itemOf(event);
  if (!element) return;
  const id = idOf(element);
  if (!selected.has(id)) selected = new Set([id]);
  current = id;
  dragged = chosen().map((each) => each.node);
  event.dataTransfer.effectAllowed = "move";
  event.dataTransfer.setData("text/plain", names(dragged));
  for (const node of dragged) list.querySelector(`[data-id="${node.id}"]`)?.classList.add("moving");
});
list.addEventListener("dragover", (event) => {
  const point = dropPoint(event);
  clearMarks();
  if (!point) return;
  event.preventDefault();
  event.dataTransfer.dropEffect = "move";
  point.element.classList.add(`drop-${point.kind}`);
});
list.addEventListener("drop", (event) => {
  const point = dropPoint(event);
  if (!point) return;
  event.preventDefault();
  const nodes = dragged;
  dragged = null;
  selected = new Set();
  folded.delete(point.parent);
  const into = point.parent === root.id ? "the top" : shownName(find(point.parent).node);
  move(nodes, point.parent, point.index, `Moved ${names(nodes)} into ${into}.`);
});
list.addEventListener("dragend", () => {
  dragged = null;
  show();
});

// ---- keys ----

function step(by) {
  const shown = [...list.querySelectorAll("[data-id]")].map(idOf);
  const next = shown[shown.indexOf(current) + by];
  if (next !== undefined) current = next;
}

function end(at) {
  current = idOf([...list.querySelectorAll("[data-id]")].at(at));
}

const KEYS = {
  ArrowDown: () => step(1),
  ArrowUp: () => step(-1),
  Home: () => end(0),
  End: () => end(-1),
  ArrowRight: () => {
    const { node } = find(current);
    if (!node.children) return;
    if (!folded.delete(current)) step(1);
  },
  ArrowLeft: () => {
    const { node, parent } = find(current);
    if (node.children && !folded.has(current)) folded.add(current);
    else if (parent !== root) current = parent.id;
  },
  " ": () => {
    if (!selected.delete(current)) selected.add(current);
  },
};
const ALT_KEYS = {
  ArrowUp: () => shift(-1),
  ArrowDown: () => shift(1),
  ArrowRight: indent,
  ArrowLeft: outdent,
};
const CONTROL_KEYS = { z: undo, y: redo, Z: redo };
const PLAIN_KEYS = { g: group, G: group, F2: startRename, Enter: startRename, Delete: ungroup };

list.addEventListener("keydown", (event) => {
  if (event.target.tagName === "INPUT" || current === null) return;
  let act;
  if (event.altKey) act = ALT_KEYS[event.key];
  else if (event.ctrlKey || event.metaKey) act = CONTROL_KEYS[event.key];
  else act = PLAIN_KEYS[event.key];
  const look = !event.altKey && !event.ctrlKey && !event.metaKey ? KEYS[event.key] : undefined;
  if (!act && !look) return;
  event.preventDefault();
  if (act) return act();
  look();
  show();
  list.querySelector('[tabindex="0"]')?.focus();
});

list.setAttribute("role", "tree");
list.setAttribute("aria-label", "Taxonomy");
list.setAttribute("aria-multiselectable", "true");
editor.prepend(help, tools);
editor.append(spoken);
show();
