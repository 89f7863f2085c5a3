// A proxy between the browser and the server. It may be slow, and it may keep answers it was told not
// to keep: what it has once read below `/v1/events` it gives out for good, with the header fields of then.

import { createServer, request } from "node:http";

const PUBLIC = /^\/v1\/events\/[^/]+(\/seats)?$/;

export class Middleman {
  /** @type {Map<string, {status: number, headers: import("node:http").IncomingHttpHeaders, body: Buffer}>} */
  kept = new Map();
  /** How often something was given out again. */
  again = 0;
  /** How long a request takes on its way, milliseconds. */
  latency = 0;
  /** Where it listens. */
  url = "";
  keeps = false;

  /** @param {import("./server.mjs").Server} server @param {{keeps?: boolean}} [options] */
  static async before(server, { keeps = false } = {}) {
    const proxy = new Middleman();
    proxy.keeps = keeps;
    const listener = createServer((asked, answer) => {
      if (proxy.latency === 0) proxy.pass(server, asked, answer);
      else setTimeout(() => proxy.pass(server, asked, answer), proxy.latency);
    });
    await new Promise((resolve) => listener.listen(0, "127.0.0.1", () => resolve(null)));
    // It ends with its connections, which end with the browsers behind it.
    listener.unref();
    const { port } = /** @type {import("node:net").AddressInfo} */ (listener.address());
    proxy.url = `http://127.0.0.1:${port}`;
    return proxy;
  }

  /**
   * From now on answers of a path come in so many parts, each when it is called for.
   * @param {RegExp} path @param {number} parts
   */
  slowly(path, parts) {
    let called = 0;
    /** @type {(value?: any) => void} */ let come = () => {};
    const pace = { path, parts, requests: 0, called: () => called, wait: () => new Promise((resolve) => (come = resolve)) };
    this.pace = pace;
    return {
      get requests() {
        return pace.requests;
      },
      next() {
        called += 1;
        come();
      },
    };
  }

  /** @param {import("node:http").ServerResponse} answer @param {Buffer} body */
  async trickle(answer, body) {
    const { pace } = this;
    pace.requests += 1;
    const size = Math.ceil(body.length / pace.parts);
    for (let part = 0; part < pace.parts; part += 1) {
      while (pace.called() <= part) await pace.wait();
      answer.write(body.subarray(part * size, (part + 1) * size));
    }
    answer.end();
  }

  pass(server, asked, answer) {
    const keeps = this.keeps && asked.method === "GET" && PUBLIC.test(asked.url);
    const known = keeps && this.kept.get(asked.url);
    if (known) {
      this.again += 1;
      answer.writeHead(known.status, known.headers).end(known.body);
      return;
    }
    const headers = { ...asked.headers };
    // It asks for all of it, because it keeps all of it.
    if (keeps) delete headers["if-none-match"];
    const { method, url: path } = asked;
    const [host, port] = server.address.split(":");
    const onward = request({ host, port, method, path, headers }, (reply) => {
      const { statusCode: status, headers } = reply;
      /** @type {Buffer[]} */ const parts = [];
      reply.on("data", (part) => parts.push(part));
      reply.on("error", () => answer.destroy());
      reply.on("end", () => {
        if (keeps && status === 200) this.kept.set(path, { status, headers, body: Buffer.concat(parts) });
      });
      answer.writeHead(status, headers);
      if (this.pace?.path.test(path)) reply.on("end", () => this.trickle(answer, Buffer.concat(parts)));
      else reply.pipe(answer);
    });
    onward.on("error", () => answer.destroy());
    answer.on("close", () => onward.destroy());
    asked.pipe(onward);
  }
}
