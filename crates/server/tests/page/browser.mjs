// The few things of a browser that the page's modules touch when they are loaded, or send and wait: for tests
// without one. Imported before them.

/** @type {Map<string, string>} */ const kept = new Map();
const storage = {
  getItem: (/** @type {string} */ key) => kept.get(key) ?? null,
  setItem: (/** @type {string} */ key, /** @type {string} */ value) => kept.set(key, value),
  removeItem: (/** @type {string} */ key) => kept.delete(key),
};

Object.assign(globalThis, {
  window: { localStorage: storage, sessionStorage: storage },
  matchMedia: () => ({ matches: false, addEventListener: () => {} }),
  addEventListener: () => {},
  removeEventListener: () => {},
});
Object.defineProperty(globalThis, "navigator", { value: { cookieEnabled: true } });
