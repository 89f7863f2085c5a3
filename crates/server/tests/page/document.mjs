// As much of a document as the page's modules build their parts with: elements that keep what is put into them, and
// pens that draw nothing. Imported before them.

export class FakeElement {
  /** @param {string} name @param {string} [text] */
  constructor(name, text = "") {
    this.name = name;
    this.text = text;
    /** @type {FakeElement|null} */ this.parent = null;
    /** @type {FakeElement[]} */ this.childNodes = [];
    /** @type {Map<string, string>} */ this.attributes = new Map();
    /** @type {Record<string, string>} */ this.dataset = {};
    this.className = "";
    this.hidden = false;
    this.disabled = false;
  }

  /** @returns {string} */
  get textContent() {
    return this.text + this.childNodes.map((node) => node.textContent).join("");
  }

  set textContent(text) {
    this.replaceChildren();
    this.text = text;
  }

  setAttribute(/** @type {string} */ name, /** @type {string} */ value) {
    this.attributes.set(name, value);
  }

  addEventListener() {}

  append(/** @type {(FakeElement|string)[]} */ ...nodes) {
    for (const node of nodes) {
      this.insertBefore(typeof node === "string" ? new FakeElement("#text", node) : node, null);
    }
  }

  insertBefore(/** @type {FakeElement} */ node, /** @type {FakeElement|null} */ next) {
    node.remove();
    this.childNodes.splice(next ? this.childNodes.indexOf(next) : this.childNodes.length, 0, node);
    node.parent = this;
  }

  remove() {
    const nodes = this.parent?.childNodes ?? [];
    if (this.parent) nodes.splice(nodes.indexOf(this), 1);
    this.parent = null;
  }

  replaceChildren(/** @type {FakeElement[]} */ ...nodes) {
    for (const node of [...this.childNodes]) node.remove();
    this.append(...nodes);
  }

  /** @param {FakeElement|null} node @returns {boolean} */
  contains(node) {
    return node !== null && (node === this || this.contains(node.parent));
  }

  focus() {
    /** @type {any} */ (document).activeElement = this;
  }

  isEqualNode(/** @type {FakeElement} */ other) {
    return this.name === other.name && this.textContent === other.textContent;
  }

  getContext() {
    const nothing = () => {};
    return new Proxy({}, { get: () => nothing, set: () => true });
  }
}

Object.assign(globalThis, {
  document: {
    activeElement: null,
    documentElement: new FakeElement("html"),
    addEventListener: () => {},
    getElementById: () => null,
    createElement: (/** @type {string} */ name) => new FakeElement(name),
    createElementNS: (/** @type {string} */ _, /** @type {string} */ name) => new FakeElement(name),
    createTextNode: (/** @type {string} */ text) => new FakeElement("#text", text),
  },
});
