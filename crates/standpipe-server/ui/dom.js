// Making and keeping elements. What the server sends only ever becomes text. Elements stay from one
// snapshot to the next, and with them focus and scroll positions.

// An element. Of its attributes, `on…` are listeners and `text` is its text.
export const h = (tag, attributes, ...children) =>
	fill(document.createElement(tag), attributes, children);

export const s = (tag, attributes, ...children) =>
	fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function fill(element, attributes, children) {
	for (const [name, value] of Object.entries(attributes ?? {})) {
		if (name === "text") element.textContent = visible(value);
		else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
		else attr(element, name, value);
	}
	element.append(...children.map((child) => (typeof child === "string" ? visible(child) : child)));
	return element;
}

export function put(element, text) {
	const shown = visible(text);
	if (element.textContent !== shown) element.textContent = shown;
}

// The same text with its control and format characters written out, as the command line does it:
// what came from outside must not turn or hide what stands beside it.
const invisible = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

export function visible(text) {
	return String(text ?? "").replace(invisible, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

// Sets an attribute if it is another; `null` takes it away.
export function attr(element, name, value) {
	if (value === null || value === undefined) element.removeAttribute(name);
	else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

export function show(element, visible) {
	if (element.hidden === visible) element.hidden = !visible;
}

const kept = new WeakMap();

// One child for each item, found again by its key. A focus in one that goes moves to `refuge`.
export function keyed(parent, items, keyOf, make, update = () => {}, refuge = null) {
	const before = kept.get(parent) ?? new Map();
	const after = new Map();
	for (const item of items) {
		let key = String(keyOf(item));
		while (after.has(key)) key += "+";
		after.set(key, before.get(key) ?? make(item));
	}
	for (const [key, element] of before) {
		if (after.has(key)) continue;
		if (element.contains(document.activeElement)) refuge?.focus();
		element.remove();
	}
	let [next, at] = [parent.firstChild, 0];
	for (const element of after.values()) {
		if (element === next) next = next.nextSibling;
		else parent.insertBefore(element, next);
		update(element, items[at++]);
	}
	kept.set(parent, after);
}

// A table, shown as cards on a phone: hence the roles, and the heads again at every cell.
export class Table {
	constructor(caption, heads) {
		this.heads = heads;
		this.body = h("tbody", { role: "rowgroup" });
		this.root = h("table", { role: "table" }, h("caption", { text: caption }),
			h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, ...heads.map(([text, kind]) =>
				h("th", { role: "columnheader", scope: "col", class: kind, text })))), this.body);
	}

	// `fit(row)` once for each new row; `texts(item, row)` are the texts of its cells; `null` keeps
	// what the cell has.
	rows(items, keyOf, fit, texts, refuge) {
		const make = () => {
			const row = h("tr", { role: "row" }, ...this.heads.map(([head, kind], at) => at === 0
				? h("th", { role: "rowheader", scope: "row", class: kind, "data-head": head })
				: h("td", { role: "cell", class: kind, "data-head": head })));
			fit?.(row);
			return row;
		};
		keyed(this.body, items, keyOf, make, (row, item) => texts(item, row).forEach((text, at) => {
			const cell = row.cells[at];
			if (text === null) return;
			put(cell, text || "–");
			attr(cell, "data-none", text ? null : "");
		}), refuge);
	}
}

// An instant: in local time, with UTC as the tooltip.
export function setTime(element, instant, text) {
	attr(element, "datetime", instant);
	attr(element, "title", instant && `${instant.replace("T", " ").replace(/(\.\d+)?Z$/, "")} UTC`);
	put(element, text);
}
