// Draws the API description from openapi.json. Text is only ever set as text, never as markup.

/** An element with a class and children. @param {string} tag @param {...(Node|string|null)} children */
function el(tag, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  element.classList.add(...classes);
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** A text whose `code` marks are elements. @param {string} text */
function marked(text) {
  const parts = text.split("`").map((part, at) => (at % 2 === 1 ? el("code", part) : part));
  return el("span", ...parts);
}

/** @param {string} href @param {...(Node|string)} children */
function link(href, ...children) {
  const element = el("a", ...children);
  element.setAttribute("href", href);
  return element;
}

const refName = (/** @type {string} */ ref) => ref.split("/").at(-1) ?? "";

/** The type of a schema in a few words. @param {any} schema @returns {Node} */
function typeOf(schema) {
  if (!schema) return el("span", "anything");
  if (schema.$ref) return link(`#schema-${refName(schema.$ref)}`, refName(schema.$ref));
  const choices = schema.oneOf ?? schema.anyOf ?? schema.allOf;
  if (choices) {
    const parts = choices.flatMap((/** @type {any} */ choice, /** @type {number} */ at) =>
      at > 0 ? [" or ", typeOf(choice)] : [typeOf(choice)],
    );
    return el("span", ...parts);
  }
  if (schema.enum) return el("code", schema.enum.map((/** @type {any} */ word) => JSON.stringify(word)).join(" | "));
  const types = [schema.type ?? "anything"].flat().join(" or ");
  if (schema.items) return el("span", `${types} of `, typeOf(schema.items));
  if (schema.additionalProperties?.type) return el("span", `${types} of `, typeOf(schema.additionalProperties));
  return el("span", schema.format ? `${types} (${schema.format})` : types);
}

/** @param {any[]} rows @param {(row: any) => (Node|string|null)[]} cells */
function table(rows, cells) {
  return el("table", el("tbody", ...rows.map((row) => el("tr", ...cells(row).map((cell) => el("td", cell))))));
}

/** @param {any} schema */
function properties(schema) {
  const required = new Set(schema.required ?? []);
  return table(Object.entries(schema.properties ?? {}), ([name, property]) => [
    el("code", name),
    typeOf(property),
    required.has(name) ? "always" : "sometimes",
    marked(property.description ?? ""),
  ]);
}

/** @param {string} method @param {string} path @param {any} operation */
function operation(method, path, operation) {
  const inside = el("div.inside");
  inside.append(el("p.about", `For ${admissions[operation["x-admission"]] ?? operation["x-admission"]}.`));
  if (operation.parameters) {
    inside.append(el("h3", "Parameters"));
    inside.append(
      table(operation.parameters, (parameter) => [
        el("code", parameter.name),
        parameter.in,
        parameter.required ? "required" : "optional",
        marked(parameter.description ?? ""),
      ]),
    );
  }
  const body = operation.requestBody?.content?.["application/json"]?.schema;
  if (body) inside.append(el("h3", "Body"), typeOf(body));
  inside.append(el("h3", "Answers"));
  inside.append(
    table(Object.entries(operation.responses), ([status, answer]) => {
      const [media, content] = Object.entries(answer.content ?? {})[0] ?? ["", null];
      return [el("code", status), marked(answer.description), media, content ? typeOf(content.schema) : null];
    }),
  );
  const details = el(
    "details",
    el("summary", el(`span.method.${method}`, method.toUpperCase()), el("code", path), el("span.about", operation.summary)),
    inside,
  );
  details.id = operation.operationId;
  return details;
}

/** @type {Record<string, string>} */
const admissions = {
  anyone: "anybody",
  new_shopper: "anybody, while shoppers are let in",
  look: "every key and session, and anybody while shoppers are let in",
  buy: "sessions, and keys with the scope sell or admin",
  sell: "keys with the scope sell or admin",
  lease: "keys with the scope lease or admin",
  staff: "keys with the scope read or admin",
  admin: "keys with the scope admin",
};

/** @param {any} api */
function draw(api) {
  const contents = document.getElementById("contents");
  const description = document.getElementById("description");
  if (!contents || !description) return;
  description.replaceChildren(el("h1", `${api.info.title} API`), el("p", api.info.description));
  const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => ({ path, method, one })),
  );
  for (const tag of api.tags) {
    const own = operations.filter(({ one }) => one.tags.includes(tag.name));
    description.append(el("h2", tag.name), el("p.about", tag.description));
    description.append(...own.map(({ path, method, one }) => operation(method, path, one)));
    contents.append(el("strong", tag.name));
    contents.append(el("ul", ...own.map(({ one }) => el("li", link(`#${one.operationId}`, one.summary)))));
  }
  description.append(el("h2", "Problems"), el("p.about", "Every refusal is one of these."));
  description.append(
    table(api["x-problems"], (problem) => [
      link(`/problems/${problem.code.replaceAll("_", "-")}`, el("code", problem.code)),
      String(problem.status),
      problem.title,
      marked(problem.fix),
    ]),
  );
  description.append(el("h2", "Shapes"), el("p.about", "Fields that may come and those that always do."));
  for (const [name, schema] of Object.entries(api.components.schemas)) {
    const inside = el("div.inside", marked(schema.description ?? ""));
    inside.append(schema.properties ? properties(schema) : typeOf(schema));
    const example = api.components.examples[name]?.value;
    if (example) inside.append(el("pre", JSON.stringify(example, null, 2)));
    const details = el("details", el("summary", el("code", name)), inside);
    details.id = `schema-${name}`;
    description.append(details);
  }
  reveal();
}

/** Opens what the address names. */
function reveal() {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (named instanceof HTMLDetailsElement) {
    named.open = true;
    named.scrollIntoView();
  }
}

addEventListener("hashchange", reveal);
fetch("/openapi.json")
  .then((reply) => reply.json())
  .then(draw)
  .catch(() => {
    document.getElementById("description")?.replaceChildren(el("p", "The description could not be read."));
  });
