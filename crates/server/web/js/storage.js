// Keeps small texts in the browser: per tab, or for good. A browser may forbid both, or be full;
// then they are kept until the page is left, and `remembers` says so.

/** A store like `sessionStorage` that never throws. */
class Store {
  /** @param {"sessionStorage"|"localStorage"} name */
  constructor(name) {
    this.name = name;
    /** @type {Map<string, string>} */ this.memory = new Map();
  }

  /** The browser's own store; `null` where it is forbidden, which reading the property tells. */
  get real() {
    try {
      return window[this.name];
    } catch {
      return null;
    }
  }

  /** @param {string} key @returns {string|null} */
  get(key) {
    return this.memory.get(key) ?? this.real?.getItem(key) ?? null;
  }

  /** @param {string} key @param {string} value */
  set(key, value) {
    try {
      const { real } = this;
      if (!real) throw new Error("forbidden");
      real.setItem(key, value);
      this.memory.delete(key);
    } catch {
      this.memory.set(key, value);
    }
  }

  /** @param {string} key */
  remove(key) {
    this.memory.delete(key);
    this.real?.removeItem(key);
  }

  /** The value that was stored as JSON; `null` for none and for what cannot be read. @param {string} key */
  getJson(key) {
    try {
      return JSON.parse(this.get(key) ?? "null");
    } catch {
      return null;
    }
  }

  /** @param {string} key @param {unknown} value */
  setJson(key, value) {
    this.set(key, JSON.stringify(value));
  }
}

/** Outlives the tab. */
export const lasting = new Store("localStorage");
/** Ends with the tab. */
export const ofTab = new Store("sessionStorage");

/** Whether the browser keeps anything for this page at all. */
export const remembers = () => lasting.real !== null && navigator.cookieEnabled;
